"""Profiles of Python functions of regions and of suites, measured for real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cachegrind_bench.model.codec import decode
from cachegrind_bench.model.python_profile import TOP
from tests.pythons import each_python, python_of

if TYPE_CHECKING:
    from cachegrind_bench.model.python_profile import PythonProfile
    from cachegrind_bench.model.result import Benchmark
    from tests.valgrind.conftest import CgBench

pytestmark = pytest.mark.slow

__all__ = ["each_python"]  # a fixture

ROOT = Path(__file__).resolve().parent.parent.parent
HEAD = f"""\
import sys
sys.path.insert(0, {str(ROOT)!r})
from cachegrind_bench.region import region
def work(rounds):
    total = 0
    for n in range(rounds):
        total += n
    return total
def key(number):
    return -number
"""
PROGRAM = (
    HEAD
    + """\
@region("decorated")
def decorated():
    return work(20)
def empty():
    for _ in range(50):
        with region("nothing"):
            pass
def main():
    work(5)
    for _ in range(3):
        with region("sorting"):
            work(10)
            sorted(range(5), key=key)
        work(5)
    decorated()
    decorated()
main()
empty()
"""
)


def benchmarks(cg_bench: CgBench, *words: str, code: int = 0) -> dict[str, Benchmark]:
    output = cg_bench.folder / "result.json"
    finished = cg_bench("run", "-q", "-o", str(output), *words)
    assert finished.code == code, finished.stderr
    return {item.id: item for item in decode(output.read_bytes(), "result.json").benchmarks}


def calls(item: Benchmark) -> dict[str, int]:
    """Return the calls by path, as in `main/work`, of the program's own functions."""
    profile = profile_of(item)
    names: list[str] = []
    for path in profile.paths:
        above = "" if path.parent == TOP else f"{names[path.parent]}/"
        names.append(above + profile.functions[path.function].name)
    return {name: path.calls for name, path in zip(names, profile.paths, strict=True)}


def profile_of(item: Benchmark) -> PythonProfile:
    assert item.python is not None
    assert item.python.native >= 0
    return item.python


def test_each_region_has_a_profile_of_its_own_which_adds_up(cg_bench: CgBench, each_python: Path) -> None:
    (cg_bench.cwd / "s.py").write_text(PROGRAM, encoding="utf-8")
    command = ("--id", "s", "--", str(each_python), "-I", "-S", "s.py")
    plain = benchmarks(cg_bench, "--regions", *command)
    found = benchmarks(cg_bench, "--regions", "--python-profile", *command)
    assert {name: item.counts for name, item in found.items()} == {name: item.counts for name, item in plain.items()}
    assert sorted(found) == ["s::decorated", "s::nothing", "s::sorting"]
    sorting, decorated, nothing = (found[f"s::{name}"] for name in ("sorting", "decorated", "nothing"))
    assert calls(sorting) == {"<module>": 0, "<module>/main": 0, "<module>/main/key": 15, "<module>/main/work": 3}
    inside = "<module>/main/decorated"
    assert calls(decorated) == {"<module>": 0, "<module>/main": 0, inside: 2, f"{inside}/work": 2}
    for item in found.values():
        assert not [function.file for function in profile_of(item).functions if "cachegrind_bench" in function.file]
    # Making trampolines for functions that are called for the first time costs a few thousand instructions each.
    assert sorting.counts is not None
    assert decorated.counts is not None
    assert sorting.counts.Ir <= profile_of(sorting).total < sorting.counts.Ir + 30_000
    assert decorated.counts.Ir <= profile_of(decorated).total < decorated.counts.Ir + 20_000
    assert profile_of(nothing).total < 50 * 50  # of 3,000 each with its marks
    costs = {cost.function.name: cost for cost in profile_of(decorated).costs()}
    assert costs["decorated"].function.line == PROGRAM.splitlines().index("def decorated():") + 1
    assert costs["work"].ir > 2 * 20 * 10


def test_a_suite_profiles_its_python_programs_and_names_the_others(cg_bench: CgBench) -> None:
    python = str(python_of("3.12"))
    (cg_bench.cwd / "s.py").write_text(PROGRAM, encoding="utf-8")
    suite = cg_bench.cwd / "cg-bench.toml"
    table = "[[benchmark]]\nid = {}\ncommand = {}\n"
    tables = [
        table.format('"part"', json.dumps([python, "-I", "-S", "s.py"])) + 'region = "sorting"\n',
        table.format('"other"', '"true"'),
    ]
    suite.write_text("\n".join(tables), encoding="utf-8")
    found = benchmarks(cg_bench, "--cached", "--python-profile")
    again = benchmarks(cg_bench, "--cached", "--python-profile")
    for name, item in found.items():
        assert again[name].counts == item.counts, name
        assert replace(again[name], taken_over=item.taken_over) == item, [
            field for field in item.__struct_fields__ if getattr(item, field) != getattr(again[name], field)
        ]
    assert calls(found["part"])["<module>/main/work"] == 3
    assert found["other"].python is None
    assert "is not a Python interpreter" in found["other"].warnings[-1]
    assert not [text for text in found["part"].warnings if "profiled" in text]

    suite.write_text("\n".join(f"{text}python-profile = true\n" for text in tables), encoding="utf-8")
    wanted = benchmarks(cg_bench, "--cached", code=4)
    assert wanted["part"].python == found["part"].python
    assert (wanted["other"].status.value, wanted["other"].counts) == ("error", None)
    assert "is not a Python interpreter" in (wanted["other"].error or "")
