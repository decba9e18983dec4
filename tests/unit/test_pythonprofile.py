"""Profiling a command by Python function: which commands can be, what is executed, read and tidied away."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.hermetic.execution import Image
from cachegrind_bench.measure.command import Command
from cachegrind_bench.measure.plan import Plan, Progress
from cachegrind_bench.measure.python_profile import DEPTHS, natives_of, perf_command, profile_python
from cachegrind_bench.valgrind import perf_map
from cachegrind_bench.valgrind.options import Collect, Tool
from tests.unit.samples import VECTOR, outcome, profile_of, times
from tests.unit.test_pythonpaths import BODY, file_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from cachegrind_bench.hermetic.execution import Execution
    from cachegrind_bench.hermetic.launch import Outcome

MAP = b"1000 b py::main:/w/a.py\n1010 b py::f:/w/a.py\n"


def python(folder: Path, says: str, name: str = "python") -> Command:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return Command(typed=(name, "x.py"), argv=(str(path), "x.py"), executable=str(path))


def test_the_option_comes_right_after_the_interpreter(tmp_path: Path) -> None:
    command = python(tmp_path, "echo cpython 3.13.0 1", "python3.13")
    assert perf_command(command, {}) == (command.executable, "-X", "perf", "x.py")


def test_a_link_to_a_python_is_one(tmp_path: Path) -> None:
    command = python(tmp_path, "echo cpython 3.12.1 1", "python3.12")
    link = tmp_path / "interpreter"
    link.symlink_to(command.executable)
    assert perf_command(replace(command, executable=str(link)), {})[1:3] == ("-X", "perf")


@pytest.mark.parametrize(
    ("says", "name", "message"),
    [
        (
            "echo cpython 3.11.7 0",
            "python3",
            "Python 3.11.7 cannot be profiled: .* needs CPython 3.12 or newer with perf",
        ),
        ("echo pypy 3.12.1 0", "pypy3", "pypy 3.12.1 cannot be profiled: .* needs CPython 3.12 or newer"),
        ("echo cpython 3.12.1 0", "python3-dbg", "this Python 3.12.1 was built without perf trampolines"),
        ("echo cpython 3.12.1", "python", "does not say which Python it is"),
        ("exit 1", "python", "does not say which Python it is"),
        (
            "echo never run >&2; exit 1",
            "ls",
            "--python-profile is for Python programs, and .*/ls is not a Python interpreter",
        ),
    ],
)
def test_what_cannot_be_profiled_is_reported(tmp_path: Path, says: str, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        perf_command(python(tmp_path, says, name), {"PATH": os.environ["PATH"]})
    assert "without --python-profile" in (caught.value.hint or "")


@dataclass
class FakeExecutor:
    """Writes files where Valgrind and Python would."""

    scratch: Any
    write: Callable[[Path, int], None]
    ended: Outcome = field(default_factory=outcome)
    executed: list[Execution] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)

    def execute(self, execution: Execution, collect: Collect, tool: Tool) -> tuple[Outcome, str]:
        assert tool is Tool.CALLGRIND
        self.executed.append(execution)
        for path in self.scratch.out.iterdir():
            path.unlink()
        depth = collect.python_depth
        assert depth is not None
        self.depths.append(depth)
        self.write(self.scratch.out, depth)
        return self.ended, ""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with `out`, and with `maps`, which stands for /tmp."""
    (tmp_path / "out").mkdir()
    (tmp_path / "maps").mkdir()
    monkeypatch.setattr(perf_map, "FOLDER", tmp_path / "maps")
    return tmp_path


def executor(folder: Path, write: Callable[[Path, int], None], images: tuple[Image, ...] | None = None) -> FakeExecutor:
    return FakeExecutor(
        scratch=SimpleNamespace(out=folder / "out"), write=write, ended=replace(outcome(), images=images)
    )


def profiled(folder: Path, fake: FakeExecutor, progress: Progress = lambda _text: None) -> Any:
    command = python(folder, "echo cpython 3.12.1 1")
    plan = Plan(command=command, cwd=folder, environ={"PATH": os.environ["PATH"]})
    env: Any = SimpleNamespace(fields={})
    return profile_python(plan, fake, env, progress)


def calls(profile: Any) -> Mapping[str, int]:
    return {cost.function.name: cost.calls for cost in profile.costs()}


def test_maps_are_read_and_removed_and_those_of_other_processes_left_alone(folder: Path) -> None:
    def write(out: Path, _depth: int) -> None:
        (out / "out.7").write_text(file_of(BODY, 100))
        (out / "log.7").write_text("")
        perf_map.map_of(7).write_bytes(MAP)

    perf_map.map_of(8).write_bytes(b"of another")
    phases: list[str] = []
    fake = executor(folder, write)
    assert calls(profiled(folder, fake, phases.append)) == {"f": 3, "main": 1}
    assert [path.name for path in (folder / "maps").iterdir()] == ["perf-8.map"]
    assert fake.depths == [1, DEPTHS[0]]
    assert fake.executed[0].argv[1:] == ("-X", "perf", "x.py")
    assert phases[1:] == ["profiling Python functions under Callgrind"]


def test_deep_calls_are_followed_by_a_second_execution(folder: Path) -> None:
    deep = "'".join(["0x1010", "0x1000"] * 60)

    def write(out: Path, depth: int) -> None:
        (out / "out.7").write_text(file_of(f"fn=(1) {deep}\n0x1010 {depth}\n", depth))
        perf_map.map_of(7).write_bytes(MAP)

    fake = executor(folder, write)
    profile = profiled(folder, fake)
    assert fake.depths == [1, *DEPTHS]
    assert (profile.cut, profile.total) == (False, 1000)


def test_what_cannot_be_followed_more_deeply_is_reported_as_far_as_it_was(folder: Path) -> None:
    deep = "'".join(["0x1010", "0x1000"] * 60)

    def write(out: Path, depth: int) -> None:
        if depth == DEPTHS[1]:
            raise MeasurementError("killed: out of memory")
        (out / "out.7").write_text(file_of(f"fn=(1) {deep}\n0x1010 {depth}\n", depth))
        perf_map.map_of(7).write_bytes(MAP)

    profile = profiled(folder, executor(folder, write))
    assert (profile.cut, profile.total) == (True, 100)


def test_a_forked_child_knows_the_functions_of_its_parent_as_well(folder: Path) -> None:
    def write(out: Path, _depth: int) -> None:
        (out / "out.7").write_text(file_of("fn=(1) 0x1000\n0x1000 1\n", 1))
        (out / "out.9").write_text(file_of("fn=(1) 0x1010'0x1000\n0x1010 2\n", 2))
        perf_map.map_of(7).write_bytes(MAP)
        perf_map.map_of(9).write_bytes(b"1010 b py::child:/w/a.py\n")

    images = (Image(7, "/p", [], 1, forked=False), Image(9, "/p", [], 7, forked=True))
    for known in (images, None):
        profile = profiled(folder, executor(folder, write, known))
        assert calls(profile) == {"main": 1, "child": 2}
        assert list((folder / "maps").iterdir()) == []


def test_a_run_without_a_map_is_a_failed_measurement(folder: Path) -> None:
    def write(out: Path, _depth: int) -> None:
        (out / "out.7").write_text(file_of(BODY, 100))

    fake = executor(folder, write)
    with pytest.raises(MeasurementError, match="Python wrote no perf map"):
        profiled(folder, fake)


@pytest.mark.parametrize("body", ["nonsense", ""])
def test_maps_are_removed_when_something_fails(folder: Path, body: str) -> None:
    def write(out: Path, _depth: int) -> None:
        (out / "image0.1.out.7.2").write_text(body or "x")
        perf_map.map_of(7).write_bytes(MAP)
        if not body:
            raise KeyboardInterrupt

    with pytest.raises((MeasurementError, KeyboardInterrupt)):
        profiled(folder, executor(folder, write))
    assert list((folder / "maps").iterdir()) == []


def test_native_functions_that_cost_enough_are_kept_if_their_names_can_be() -> None:
    costs = {
        "_PyEval_EvalFrameDefault": 5_000,
        "list_sort": 900,
        "_Z3fooi.part.0": 700,
        "???": 800,
        "foo(int)": 600,
        "C" * 180: 500,
        "malloc": 400,
        "free": 10,
    }
    profile = profile_of(**{name: times(VECTOR, weight) for name, weight in costs.items()})
    assert natives_of(profile) == ("list_sort", "_Z3fooi.part.0", "malloc")
    assert natives_of(None) == ()
    many = profile_of(**{f"f{number}": VECTOR for number in range(100)})
    assert len(natives_of(many)) == 20
