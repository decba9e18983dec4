"""Profiles a command by Python function: an execution of its own under Callgrind, with CPython's perf trampolines.

Scores and counts never come from it: with trampolines a program executes more instructions than without.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from msgspec.structs import replace

from cachegrind_bench import process
from cachegrind_bench.errors import CgBenchError, MeasurementError, UsageError
from cachegrind_bench.hermetic.execution import Execution
from cachegrind_bench.hermetic.launch import Outcome
from cachegrind_bench.hermetic.scratch import Scratch
from cachegrind_bench.measure.command import Command
from cachegrind_bench.measure.perf_maps import PerfMaps
from cachegrind_bench.measure.plan import Plan, Progress, execution_of
from cachegrind_bench.measure.run import seal_of, surrounded
from cachegrind_bench.measure.source_locations import Places
from cachegrind_bench.model.metrics import Profile
from cachegrind_bench.model.python_profile import PythonProfile
from cachegrind_bench.model.result import Benchmark, Environment
from cachegrind_bench.valgrind.options import WHOLE, Collect, Scope, Tool, is_plain
from cachegrind_bench.valgrind.perf_map import Trampolines
from cachegrind_bench.valgrind.processes import OutPath, out_files
from cachegrind_bench.valgrind.python_contexts import PathReader
from cachegrind_bench.valgrind.region_parts import RegionReader
from cachegrind_bench.valgrind.runner import reading_out_files

# Callgrind's time and memory grow with the number of contexts, so deep calls are followed only where there are any.
DEPTHS = (100, 1000)
# Stubs between shared libraries count as callers, too, and take most of the time, unless Callgrind knows their names. An
# execution that looks no farther than to the next caller is quick, and shows them.
DEPTH_OF_STUBS = 1
# Native functions with a part of their own: each makes more contexts, and more patterns of names to skip all others.
_MOST_NATIVES, _LEAST_NATIVE = 20, 200  # at least one 200th of the instructions
_LONGEST_NATIVES = (
    30_000  # squares of the lengths of their names: with these, patterns take a megabyte of the command line
)
_EVALUATOR = "_PyEval_EvalFrameDefault"  # what it costs is what Python's own code does
_OLDEST = (3, 12)
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*[a-z]*(?:-dbg)?")
_PROBE = (
    "import sys, sysconfig; "
    "print(sys.implementation.name, '.'.join(map(str, sys.version_info[:3])), "
    "sysconfig.get_config_var('PY_HAVE_PERF_TRAMPOLINE') or 0)"
)
OPTION = "--python-profile"
_WITHOUT = f"or measure without {OPTION}"


class Executor(Protocol):
    """Executes under Valgrind, and leaves the out files in its scratch directory."""

    @property
    def scratch(self) -> Scratch:
        """The directory of the last execution."""
        ...

    def execute(self, execution: Execution, collect: Collect, tool: Tool) -> tuple[Outcome, str]:
        """Execute once; also return Valgrind's log. MeasurementError if the command fails."""
        ...


class Reader(Protocol):
    """Takes in what Callgrind wrote. `cut` says that some calls were deeper than was asked for."""

    cut: bool

    def read_all(self, files: Iterable[OutPath], trampolines: Callable[[int], Trampolines]) -> None:
        """Add the out files of all processes of an execution; `trampolines` are those of a process."""
        ...


Kind = TypeVar("Kind", bound=Reader)


def natives_of(profile: Profile | None) -> tuple[str, ...]:
    """Return the native functions that cost enough to be counted separately, below the Python functions that ran them."""
    if profile is None:
        return ()
    at, costs = profile.events.index("Ir"), Counter[str]()
    for row in profile.functions:
        if is_plain(row.name) and row.name != _EVALUATOR:
            costs[row.name] += row.counts[at]
    total = profile.counts().Ir
    dear = (name for name, ir in costs.most_common(_MOST_NATIVES) if ir * _LEAST_NATIVE >= total)
    found, size = list[str](), 0
    for name in dear:  # patterns are made of all beginnings of a name
        if size + len(name) ** 2 <= _LONGEST_NATIVES:
            size += len(name) ** 2
            found.append(name)
    return tuple(found)


def profile_python(
    plan: Plan, runner: Executor, env: Environment, progress: Progress, kept: Sequence[str] = ()
) -> PythonProfile:
    """Return what the Python functions of the planned command cost. UsageError if its Python cannot report this.

    Native functions that are `kept` are counted separately below them.

    MeasurementError if the command fails, or its counts cannot be read.
    """
    found = followed(plan, runner, env, progress, lambda depth: PathReader(depth=depth, kept=kept), kept)
    return Places(plan.cwd, plan.environ).located(found.profile())


def followed(  # noqa: PLR0917 - what the caller has, as it is
    plan: Plan,
    runner: Executor,
    env: Environment,
    progress: Progress,
    make: Callable[[int], Kind],
    kept: Sequence[str] = (),
) -> Kind:
    """Execute with perf trampolines, and return a reader that has read it all; `make` makes one for a number of callers.

    Native functions that are `kept` are among the callers.

    Raises what `profile_python` does.
    """
    argv = perf_command(plan.command, plan.variables)

    def execute(reader: Kind | PathReader, part: Plan, depth: int, stubs: tuple[str, ...] = ()) -> None:
        natives = tuple(kept) if depth > DEPTH_OF_STUBS else ()
        collect = Collect(scope=part.collect.scope, python_depth=depth, stubs=stubs, kept=natives)
        execution = execution_of(part)
        # The variable is for Pythons that this one starts; the option for programs that clear theirs.
        variables = {**execution.variables, "PYTHONPERFSUPPORT": "1"}
        execution = execution._replace(argv=argv, variables=variables)
        out = runner.scratch.out
        with surrounded(plan), PerfMaps(out) as maps:
            outcome, _log = runner.execute(execution, collect, Tool.CALLGRIND)
            seal_of(plan, outcome, env)
            with reading_out_files():
                reader.read_all(out_files(Tool.CALLGRIND, out, outcome.images), maps.read(outcome))

    progress("preparing to profile Python functions, under Callgrind")
    whole = PathReader(depth=DEPTH_OF_STUBS)
    execute(whole, replace(plan, collect=WHOLE), DEPTH_OF_STUBS)  # stubs count wherever they are
    progress("profiling Python functions under Callgrind")
    found = make(DEPTHS[0])
    execute(found, plan, DEPTHS[0], whole.stubs)
    if found.cut:
        progress("profiling Python functions under Callgrind, again for deep calls")
        # Each path has counts of its own for all code it runs: hundreds of calls deep, Callgrind may need all memory.
        with suppress(MeasurementError):
            deeper = make(DEPTHS[1])
            execute(deeper, plan, DEPTHS[1], whole.stubs)
            found = deeper
    return found


def perf_command(command: Command, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command with `-X perf` for its Python. UsageError if it is not a Python, or one without perf trampolines."""
    program = command.executable
    names = {os.path.basename(program), os.path.basename(os.path.realpath(program))}
    if not any(map(_PYTHON.fullmatch, names)):
        raise UsageError(
            f"--python-profile is for Python programs, and {program} is not a Python interpreter",
            hint=f"begin the command with the interpreter, as in python script.py, {_WITHOUT}",
        )
    answer = process.run([program, "-I", "-S", "-c", _PROBE], env=variables, timeout=20)
    words = answer.stdout.decode("utf-8", "backslashreplace").split()
    if answer.status != 0 or len(words) != 3:
        raise UsageError(f"{program} does not say which Python it is", hint=f"check whether it works, {_WITHOUT}")
    check_trampolines(program, *words)
    return with_perf(command)


def with_perf(command: Command) -> tuple[str, ...]:
    """Return the command of a Python with perf trampolines from its start on."""
    return (command.argv[0], "-X", "perf", *command.argv[1:])


def check_trampolines(program: str, kind: str, version: str, trampolines: str, option: str = OPTION) -> None:
    """Raise UsageError unless this Python has perf trampolines. `trampolines` is its PY_HAVE_PERF_TRAMPOLINE."""
    name = f"{'Python' if kind == 'cpython' else kind} {version}"
    without = f"or measure without {option}"
    if kind != "cpython" or tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        raise UsageError(
            f"{name} cannot be profiled: {option} needs CPython 3.12 or newer with perf trampolines",
            hint=f"{program} is {name}; use a newer one, {without}",
        )
    if trampolines != "1":
        raise UsageError(
            f"this {name} was built without perf trampolines, which {option} needs",
            hint=f"{program} has no PY_HAVE_PERF_TRAMPOLINE; builds for Linux on x86-64 and ARM64 have it; use one, {without}",
        )


def profilable(plan: Plan) -> Plan:
    """Return the plan; without its Python profile, and with a note, where that is optional and impossible.

    UsageError where it is impossible and not optional: what is missing is reported before the work.
    """
    try:
        if plan.collect.scope is Scope.TOGGLE:
            raise UsageError(  # noqa: TRY301 - a reason like any other
                "--python-profile covers the whole program or its regions, and cannot be combined with --toggle",
                hint="measure with one, then with the other",
            )
        perf_command(plan.command, plan.variables)
    except UsageError as error:
        if not plan.python_optional:
            raise
        notes = (*plan.command.notes, _note(error))
        return replace(plan, python_profile=False, command=replace(plan.command, notes=notes))
    return plan


def with_profiles(
    plan: Plan, benchmarks: Sequence[Benchmark], runner: Executor, env: Environment, progress: Progress
) -> tuple[Benchmark, ...]:
    """Return the benchmarks that were measured as planned with their Python profiles.

    The executions for a profile take longer, and may fail where measuring did not: counts are kept, with a warning.
    """
    try:
        if plan.collect.scope is Scope.REGIONS:
            profiles = _of_regions(plan, benchmarks, runner, env, progress)
        else:
            calls = benchmarks[0].calls
            kept = natives_of(benchmarks[0].profile) if calls is not None and calls.is_whole else ()
            profiles = [profile_python(plan, runner, env, progress, kept)]
    except MeasurementError as error:
        return tuple(replace(item, warnings=(*item.warnings, _note(error))) for item in benchmarks)
    return tuple(replace(item, python=profile) for item, profile in zip(benchmarks, profiles, strict=True))


def _note(error: CgBenchError) -> str:
    return f"its Python functions were not profiled: {error.message}"


def _of_regions(
    plan: Plan, benchmarks: Sequence[Benchmark], runner: Executor, env: Environment, progress: Progress
) -> list[PythonProfile]:
    found = followed(plan, runner, env, progress, lambda depth: RegionReader(depth=depth)).profiles()
    names = [plan.collect.region or item.id.removeprefix(f"{plan.benchmark_id}::") for item in benchmarks]
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        raise MeasurementError(f"region {missing!r} was not entered when its Python functions were to be profiled")
    places = Places(plan.cwd, plan.environ)
    return [places.located(found[name]) for name in names]
