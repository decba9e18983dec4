"""Profiles of Python functions, measured for real: calls that can be counted by hand, and costs that add up."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cachegrind_bench.compare.call_paths import Kind, python_paths
from cachegrind_bench.errors import CommandFailedError
from cachegrind_bench.measure.benchmarks import measured_benchmarks
from cachegrind_bench.measure.command import resolve
from cachegrind_bench.measure.plan import Plan
from cachegrind_bench.measure.python_profile import profile_python
from cachegrind_bench.measure.session import valgrind_setup
from cachegrind_bench.model.python_profile import TOP
from cachegrind_bench.valgrind.options import Geometry
from tests.pythons import any_python, each_python
from tests.valgrind.measuring import maps_of

if TYPE_CHECKING:
    from cachegrind_bench.model.python_profile import PythonCost, PythonProfile
    from tests.valgrind.conftest import CgBench

__all__ = ["each_python"]  # a fixture

CASES = Path(__file__).resolve().parent.parent / "data" / "python" / "cases.py"
SOURCE = CASES.read_text(encoding="utf-8")

# Each entry counts: a generator or coroutine is entered once when it is made, and once for each resumption.
CALLS = {
    "<module>": 1,
    "main": 1,
    "fib": 177,
    "even": 16,
    "odd": 15,
    "numbers": (1 + 20 + 1) + (1 + 10 + 1),
    "outer_numbers": 1 + 10 + 1,
    "Pause": 1,
    "Pause.__await__": 2 * (1 + 2),
    "driven": 1 + 3,
    "drive": 1,
    "counted": 1,
    "counted.<locals>.wrapper": 3,
    "plain": 3,
    "comprehensions": 1,
    "comprehensions.<locals>.<genexpr>": 1 + 20 + 1,
    "key": 50,
    "add": 49,
    "shown": 30,
    "raises": 4,
    "cleans": 4,
    "tidies": 4,
    "catches": 4,
    "Thing": 1,
    "Thing.__init__": 2,
    "Thing.value": 5 + 2,
    "Thing.static": 3,
    "Thing.made": 1,
    "Thing.method": 3,
    "Thing.method.<locals>.nested": 3,
    "Thing.method.<locals>.<lambda>": 3,
    "<lambda>": 2,
}
LINES = {
    "<module>": '"""Calls that can be counted',
    "fib": "def fib(",
    "plain": "def plain(",
    "counted.<locals>.wrapper": "def wrapper(",
    "driven": "async def driven(",
    "Thing": "class Thing:",
    "Thing.value": "def value(self):",
    "Thing.method.<locals>.nested": "def nested(",
    "Thing.method.<locals>.<lambda>": "lambda: self.static",
    "comprehensions.<locals>.<genexpr>": "return sum(x for x",
}


def plan_of(folder: Path, *command: str) -> Plan:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return Plan(command=resolve(command, environ, folder), cwd=folder, environ=environ, warmup=0)


def profiled(folder: Path, valgrind: Path, *command: str) -> PythonProfile:
    plan = plan_of(folder, *command)
    ready = valgrind_setup(valgrind=str(valgrind), geometry=Geometry(), environ=plan.environ, passed={})
    with ready.session(echo=lambda _: None) as session:
        return profile_python(plan, session.runner, session.environment, lambda _text: None)


def written(folder: Path, source: str) -> Path:
    path = folder / "script.py"
    path.write_text(source, encoding="utf-8")
    return path


def own(profile: PythonProfile, file: str) -> dict[str, PythonCost]:
    """Return the functions of a file, wherever it is: in a repository, its name begins at the top."""
    return {cost.function.name: cost for cost in profile.costs() if Path(cost.function.file).name == file}


def edges(profile: PythonProfile, caller: str, callee: str) -> int:
    """Return the calls of one function by another."""
    names = [profile.functions[path.function].name for path in profile.paths]
    above = ["" if path.parent == TOP else names[path.parent] for path in profile.paths]
    both = zip(profile.paths, above, names, strict=True)
    return sum(path.calls for path, upper, lower in both if (upper, lower) == (caller, callee))


@pytest.fixture(scope="module")
def cases(each_python: Path, valgrind_path: Path) -> PythonProfile:
    return profiled(CASES.parent, valgrind_path, str(each_python), "-S", "cases.py")


def test_all_calls_are_counted_by_function_and_comprehensions_are_part_of_theirs(cases: PythonProfile) -> None:
    assert {name: cost.calls for name, cost in own(cases, "cases.py").items()} == CALLS


def test_every_function_has_a_cost_of_its_own_and_all_add_up_with_native_code(cases: PythonProfile) -> None:
    assert all(cost.ir > 0 for cost in cases.costs())
    assert sum(cost.ir for cost in cases.costs()) + cases.native == cases.total
    assert 0 < cases.native < cases.total
    assert not cases.cut


@pytest.mark.parametrize("name", LINES)
def test_functions_stand_at_their_definition(cases: PythonProfile, name: str) -> None:
    (line, *_) = [number for number, text in enumerate(SOURCE.splitlines(), 1) if LINES[name] in text]
    assert own(cases, "cases.py")[name].function.line == line


def test_costs_with_callees_count_recursion_once(cases: PythonProfile) -> None:
    costs = own(cases, "cases.py")
    assert costs["fib"].inclusive == costs["fib"].ir
    assert costs["even"].inclusive == costs["even"].ir + costs["odd"].ir
    assert costs["main"].inclusive < costs["<module>"].inclusive < cases.total


def test_who_called_whom_is_known_also_through_c(cases: PythonProfile) -> None:
    assert edges(cases, "main", "key") == 50
    assert edges(cases, "main", "add") == 49
    assert edges(cases, "main", "fib") == 1
    assert edges(cases, "fib", "fib") == 176
    assert edges(cases, "main", "even") == 1
    assert edges(cases, "counted.<locals>.wrapper", "plain") == 3
    assert edges(cases, "outer_numbers", "numbers") == 12
    assert edges(cases, "Thing.method.<locals>.nested", "Thing.value") == 3
    assert edges(cases, "Thing.made", "Thing.__init__") == 1


@pytest.mark.slow
def test_a_function_that_does_more_costs_more_and_nothing_else_does(
    tmp_path: Path, each_python: Path, valgrind_path: Path
) -> None:
    source = (
        "def cheap():\n    return sum(range(10))\n"
        "def dear(n):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n"
        "def main():\n    for _ in range(3):\n        cheap()\n        dear(ROUNDS)\nmain()\n"
    )
    few, many = (
        own(profiled(tmp_path, valgrind_path, str(each_python), "-I", "-S", path.name), path.name)
        for path in (written(tmp_path, source.replace("ROUNDS", rounds)) for rounds in ("100", "200"))
    )
    assert many["dear"].ir > few["dear"].ir + 3 * 100
    assert many["cheap"] == few["cheap"]
    assert many["main"].ir == few["main"].ir
    assert many["main"].inclusive - few["main"].inclusive == many["dear"].ir - few["dear"].ir


@pytest.mark.slow
def test_calls_deeper_than_a_hundred_are_followed_as_well(
    tmp_path: Path, each_python: Path, valgrind_path: Path
) -> None:
    path = written(
        tmp_path,
        "def even(n):\n    return True if n == 0 else odd(n - 1)\n"
        "def odd(n):\n    return False if n == 0 else even(n - 1)\n"
        "def down(n):\n    return n if n == 0 else down(n - 1)\n"
        "def main():\n    even(120)\n    down(400)\nmain()\n",
    )
    profile = profiled(tmp_path, valgrind_path, str(each_python), "-I", "-S", path.name)
    costs = own(profile, path.name)
    assert not profile.cut
    assert (costs["even"].calls, costs["odd"].calls, costs["down"].calls) == (61, 60, 401)
    assert costs["even"].inclusive == costs["even"].ir + costs["odd"].ir
    assert costs["main"].inclusive == sum(costs[name].ir for name in ("main", "even", "odd", "down"))


@pytest.mark.slow
def test_forked_children_add_up_with_their_parent(tmp_path: Path, each_python: Path, valgrind_path: Path) -> None:
    path = written(
        tmp_path,
        "import os\ndef work(n):\n    return sum(range(n))\ndef main():\n    for _ in range(5):\n        work(10)\nmain()\n"
        "if os.fork() == 0:\n    main()\n    os._exit(0)\nos.wait()\n",
    )
    profile = profiled(tmp_path, valgrind_path, str(each_python), "-I", "-S", path.name)
    costs = own(profile, path.name)
    assert (costs["<module>"].calls, costs["main"].calls, costs["work"].calls) == (1, 2, 10)
    assert edges(profile, "<module>", "main") == 2
    assert maps_of(path) == []


@pytest.mark.slow
def test_pythons_that_a_python_starts_are_profiled_as_well(
    tmp_path: Path, each_python: Path, valgrind_path: Path
) -> None:
    path = written(
        tmp_path,
        "import os, sys\ndef work():\n    return 1\nif sys.argv[1:]:\n    work(), work()\n"
        "else:\n    os.spawnv(os.P_WAIT, sys.executable, [sys.executable, '-S', __file__, 'again'])\n",
    )
    profile = profiled(tmp_path, valgrind_path, str(each_python), "-I", "-S", path.name)
    assert own(profile, path.name)["work"].calls == 2


@pytest.mark.slow
def test_coroutines_count_each_of_their_steps(tmp_path: Path, valgrind_path: Path) -> None:
    path = written(
        tmp_path,
        "class Turn:\n    def __await__(self):\n        yield\n"
        "async def work(rounds):\n    for _ in range(rounds):\n        await Turn()\n"
        "steps = work(5)\ntry:\n    while True:\n        steps.send(None)\nexcept StopIteration:\n    pass\n",
    )
    profile = profiled(tmp_path, valgrind_path, str(any_python()), "-I", "-S", path.name)
    assert own(profile, path.name)["work"].calls == 1 + 6


def test_no_map_is_left_behind_when_the_program_fails(tmp_path: Path, each_python: Path, valgrind_path: Path) -> None:
    path = written(tmp_path, "def fails():\n    raise SystemExit(3)\nfails()\n")
    with pytest.raises(CommandFailedError):
        profiled(tmp_path, valgrind_path, str(each_python), "-I", "-S", path.name)
    assert maps_of(path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_map_is_left_behind_after_a_signal(cg_bench: CgBench, tmp_path: Path, number: signal.Signals) -> None:
    code = "import sys, time\ndef wait():\n    sys.is_stack_trampoline_active() and time.sleep(60)\nwait()\n"
    path = written(tmp_path, code)
    run = cg_bench.start(
        "run", "-q", "--warmup", "0", "--python-profile", "--", str(any_python()), "-I", "-S", str(path)
    )
    deadline = time.monotonic() + 60
    while not maps_of(path):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    run.send_signal(number)
    run.communicate(timeout=30)
    while maps_of(path):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_every_valgrind_counts_the_same_calls(each_valgrind: Path) -> None:
    profile = profiled(CASES.parent, each_valgrind, str(any_python()), "-S", "cases.py")
    costs = own(profile, "cases.py")
    assert {name: cost.calls for name, cost in costs.items()} == CALLS
    assert all(cost.ir > 0 for cost in costs.values())
    assert sum(cost.ir for cost in profile.costs()) + profile.native == profile.total


@pytest.mark.slow
def test_two_profiles_are_identical_and_the_counts_are_those_of_a_run_without(
    tmp_path: Path, each_python: Path, valgrind_path: Path
) -> None:
    path = written(tmp_path, "def work(n):\n    return sorted(range(n), key=str)\nwork(50)\n")
    plan = plan_of(tmp_path, str(each_python), "-I", "-S", path.name)

    def benchmark(*, python: bool) -> tuple[object, PythonProfile | None]:
        ready = valgrind_setup(valgrind=str(valgrind_path), geometry=Geometry(), environ=plan.environ, passed={})
        with ready.session(echo=lambda _: None) as session:
            (found,) = measured_benchmarks(replace(plan, warmup=1, python_profile=python), session, lambda _text: None)
        return found.counts, found.python

    plain, first, second = (benchmark(python=python) for python in (False, True, True))
    assert plain[0] == first[0] == second[0]
    assert plain[1] is None
    assert first[1] is not None
    assert second[1] is not None
    # The number of the process is in its map's name: with another number of digits, writing the name takes other work.
    assert abs(first[1].total - second[1].total) < 100
    assert replace(first[1], total=0) == replace(second[1], total=0)


NATIVES = """\
def contains(words, word):
    return word in words

words = [str(n) for n in range(300)]
print(sum(contains(words, str(n)) for n in range(0, 600, 2)))
"""


@pytest.mark.slow
def test_native_functions_are_told_apart_below_python_where_calls_are_recorded(
    tmp_path: Path, valgrind_path: Path
) -> None:
    written(tmp_path, NATIVES)
    plan = replace(
        plan_of(tmp_path, str(any_python()), "-S", "script.py"), python_profile=True, call_tree=True, id="natives"
    )
    ready = valgrind_setup(valgrind=str(valgrind_path), geometry=Geometry(), environ=plan.environ, passed={})
    with ready.session(echo=lambda _: None) as session:
        (found,) = measured_benchmarks(plan, session, lambda _text: None)
    profile = found.python
    assert profile is not None
    (at,) = [index for index, path in enumerate(profile.paths) if profile.functions[path.function].name == "contains"]
    assert profile.paths[at].calls == 300
    parts = [part for part in profile.parts if part.path == at]
    assert profile.paths[at].ir >= sum(part.ir for part in parts) > profile.paths[at].ir / 3
    assert {part.calls for part in parts if part.name in {"list_contains", "PySequence_Contains"}} <= {300}
    assert python_paths(profile).kind is Kind.BOTH
