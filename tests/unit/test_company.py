"""Benchmarks that are measured in one execution: who gets what, and what is measured again."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.config.benchmarks import BenchmarkSpec
from cachegrind_bench.errors import CommandFailedError
from cachegrind_bench.harness.engine import forks
from cachegrind_bench.harness.engine.company import Company, CompanyRunner, companies
from cachegrind_bench.harness.engine.loop import Loop
from cachegrind_bench.hermetic.execution import Execution
from cachegrind_bench.hermetic.scratch import Scratch
from cachegrind_bench.valgrind.options import WHOLE, Collect, Tool
from cachegrind_bench.valgrind.runner import Measurement
from tests.unit.samples import outcome
from tests.unit.test_run import measurement

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.launch import Outcome

LOOP = Loop(words={1: ("-n",)}, native=(), rehearsal=("", "-n"))


class Fake:
    def __init__(self, *found: Sequence[Measurement | None] | Exception, folder: Path = Path("/nonexistent")) -> None:
        self.found, self.log = [*found], list[Any]()
        self.scratch = Scratch(path=folder, lock=-1)

    def warm_up(self, execution: Execution) -> Outcome:
        self.log.append(("warm-up", execution.argv[1]))
        return outcome()

    def measure(self, execution: Execution, collect: Collect, tool: Tool) -> Measurement:
        assert collect is WHOLE
        self.log.append((tool.value, execution.argv[1]))
        return measurement()

    def measure_together(
        self, execution: Execution, collect: Collect, lines: Sequence[tuple[str, ...]]
    ) -> list[Measurement | None]:
        del execution, collect
        self.log.append(lines)
        found = self.found.pop(0)
        if isinstance(found, Exception):
            raise found
        return [*found]


def execution(word: str, **changes: Any) -> Execution:
    return Execution(argv=("/bin/p", word, "-n"), executable="/bin/p", variables={}, cwd="/", **changes)


def members(fake: Fake) -> list[CompanyRunner]:
    company = Company([("a",), ("b",)], ["x/a", "x/b"])
    return [CompanyRunner(fake, company, words) for words in company.members]  # type: ignore[arg-type]


def test_the_first_has_all_measured_and_each_gets_its_own() -> None:
    rounds = [[measurement(), measurement()], [measurement(), measurement()]]
    fake = Fake(*rounds)
    both = members(fake)
    assert all(one.warm_up(execution("a")) for one in both)
    found = [
        [one.measure(execution(word), WHOLE, Tool.CALLGRIND) for _ in range(2)]
        for word, one in zip("ab", both, strict=True)
    ]
    assert all(found[place][number] is rounds[number][place] for place in range(2) for number in range(2))
    assert fake.log == [("warm-up", "a"), *[[("a", "-n"), ("b", "-n")]] * 2]


@pytest.mark.parametrize("way", ["one", "all", "none", "late"])
def test_what_was_not_measured_together_is_measured_alone(way: str) -> None:
    results: dict[str, Any] = {"one": [measurement(), None], "all": CommandFailedError("x", exit_status=1), "none": []}
    fake = Fake(results.get(way, ()))
    for word, one in zip("ab", members(fake), strict=True):
        one.measure(execution(word, timeout_ms=1000 if way == "late" else None), WHOLE, Tool.CALLGRIND)
    together = [] if way == "late" else [[("a", "-n"), ("b", "-n")]]
    assert fake.log == [*together, *[("callgrind", word) for word in ("b" if way == "one" else "ab")]]


def test_one_that_fails_at_the_constant_path_is_warmed_up_and_measured_alone_where_it_is() -> None:
    fake = Fake([measurement(), measurement()])
    first, second = members(fake)
    first.warm_up(execution("a"))
    first.warm_up(execution("a", keep_place="it fails"))
    second.warm_up(execution("b"))
    first.measure(execution("a", keep_place="it fails"), WHOLE, Tool.CALLGRIND)
    second.measure(execution("b"), WHOLE, Tool.CALLGRIND)
    together = [("a", "-n"), ("b", "-n")]
    assert fake.log == [("warm-up", "a"), ("warm-up", "a"), ("callgrind", "a"), together]


def test_one_that_hangs_is_named_as_the_others_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    monkeypatch.setattr("cachegrind_bench.harness.engine.company._LOOK_S", 0.005)
    monkeypatch.setattr("cachegrind_bench.harness.engine.company._LONG_S", 0.05)
    fake = Fake(folder=tmp_path)

    def hanging(_execution: Execution, _collect: Collect, lines: Sequence[tuple[str, ...]]) -> list[Measurement | None]:
        for count, at in enumerate(("x/a", "x/b"), 1):
            (tmp_path / "forked").write_bytes(struct.pack("=2i", 1, 0) * count)
            deadline = time.monotonic() + 60
            while not any(line.startswith(at) for line in said):
                assert time.monotonic() < deadline
                time.sleep(0.001)
        return [measurement() for _ in lines]

    monkeypatch.setattr(fake, "measure_together", hanging)
    members(fake)[0].measure(execution("a"), WHOLE, Tool.CALLGRIND)
    for at in ("x/a", "x/b"):
        assert any(re.fullmatch(rf"{at} has run for \d+ s, while 1 other must wait", line) for line in said)
    (tmp_path / "forked").write_bytes(struct.pack("=6i", *range(6)))
    assert forks.running(tmp_path, 2) is forks.running(tmp_path / "none", 2) is None


def test_a_program_with_an_allocator_of_its_own_is_known(tmp_path: Path) -> None:
    for name, text, known in (("plain", b"\x7fELF malloc", False), ("own", b"\x7fELF _rjem_je_jemalloc", True)):
        (tmp_path / name).write_bytes(text)
        assert forks.has_own_allocator(str(tmp_path / name)) == known


def test_those_that_differ_in_their_arguments_only_are_in_one_company() -> None:
    spec = BenchmarkSpec(id="", command=("p", ""), cwd=Path(), parameters={}, place="", loop=LOOP)
    specs = [replace(spec, id=name, command=("p", name)) for name in "abcd"]
    specs += [replace(spec, id="q", command=("q", "a")), replace(spec, id="plain", loop=None)]
    specs += [replace(spec, id="prepared", prepare="make"), replace(spec, id="cleaned", cleanup="make clean")]
    found = companies(specs, 2, lambda name: name == "d")
    assert {name: [words[0] for words in company.members] for name, company in found.items()} == {
        "a": ["a", "c"],
        "b": ["b"],
        "c": ["a", "c"],
        "d": ["d"],
        "q": ["a"],
    }


@pytest.mark.parametrize("what", ["more", "short", "none"])
def test_ends_of_children_are_those_that_are_whole(tmp_path: Path, what: str) -> None:
    path, own = tmp_path / "forked", struct.pack("=4i", 1, 0, 2, 9)
    if what != "none":
        path.write_bytes(own * 12 if what == "more" else own[:-1])
    assert forks.ended(tmp_path, 1) == ([(2, 9)] if what == "more" else [])


def test_words_replace_as_many_others() -> None:
    assert forks.fits(("a", "b"), ("", "c"))
    assert not forks.fits(("a",), ("", "c"))
    assert not forks.fits(("a" * (1 << 16),), ("c",))
