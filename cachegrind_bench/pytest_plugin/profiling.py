"""Python profiles for the benchmarks of a result: executions of their own, with CPython's perf trampolines.

Scores and counts never come from them. Each benchmark is warmed up and called as before, and one call is looked at.
"""

from __future__ import annotations

import dataclasses
import platform
import sys
import sysconfig
from concurrent.futures import wait
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.errors import CgBenchError, MeasurementError
from cachegrind_bench.hermetic.scratch import scratch
from cachegrind_bench.measure.python_profile import DEPTH_OF_STUBS, DEPTHS, check_trampolines
from cachegrind_bench.measure.session import SCRATCH_BASE
from cachegrind_bench.measure.source_locations import Places
from cachegrind_bench.model.python_profile import TOP, PythonRow, profile_of
from cachegrind_bench.model.result import Status
from cachegrind_bench.pytest_plugin.counting import parts_of
from cachegrind_bench.pytest_plugin.harness import PROFILED
from cachegrind_bench.pytest_plugin.lanes import Lanes
from cachegrind_bench.pytest_plugin.limits import TimeLimit
from cachegrind_bench.pytest_plugin.results import storable
from cachegrind_bench.pytest_plugin.running import FIRST_SLOT, PLACE, lanes_of
from cachegrind_bench.valgrind.options import Collect, Scope
from cachegrind_bench.valgrind.python_contexts import PathReader
from cachegrind_bench.valgrind.python_regions import is_harness
from cachegrind_bench.valgrind.runner import reading_out_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    import pytest

    from cachegrind_bench.measure.session import Laboratory
    from cachegrind_bench.model.python_profile import PythonFunction, PythonProfile
    from cachegrind_bench.model.result import Benchmark, Result
    from cachegrind_bench.pytest_plugin.lanes import Place
    from cachegrind_bench.pytest_plugin.options import Settings
    from cachegrind_bench.valgrind.perf_map import Trampolines

OPTION = "--cg-bench-python-profile"


def check() -> None:
    """Find out before the work whether this Python can be profiled. UsageError if not."""
    trampolines = str(sysconfig.get_config_var("PY_HAVE_PERF_TRAMPOLINE") or 0)
    check_trampolines(sys.executable, sys.implementation.name, platform.python_version(), trampolines, OPTION)


@dataclass(frozen=True, slots=True)
class _Seen:
    """One call of a benchmark: its profile, and stubs of libraries among its callers."""

    profile: PythonProfile
    stubs: tuple[str, ...]


# By the ids of nodes; an error says why there is no profile.
_Found = dict[str, "_Seen | CgBenchError"]


def with_python_profiles(
    session: pytest.Session, result: Result, settings: Settings, laboratory: Laboratory, progress: Callable[[str], None]
) -> Result:
    """Return the result with a Python profile for each benchmark that has counts, or a warning why it has none."""
    counted = {benchmark.id for benchmark in result.benchmarks if benchmark.status is Status.OK}
    items = [item for item in session.items if storable(item.nodeid) in counted]
    if not items:
        return result
    place = session.config.stash[PLACE]

    def look(some: Sequence[pytest.Item], depth: int, stubs: Sequence[str]) -> _Found:
        collect = Collect(scope=Scope.CALLS, python_depth=depth, stubs=tuple(stubs))
        return _look(session, some, settings, laboratory, place, collect)

    progress("preparing to profile Python functions, under Callgrind")
    first = look(items, DEPTH_OF_STUBS, ())
    stubs = sorted({stub for seen in first.values() if isinstance(seen, _Seen) for stub in seen.stubs})
    progress("profiling Python functions under Callgrind")
    found = look(items, DEPTHS[0], stubs)
    cut = [item for item in items if isinstance(seen := found.get(item.nodeid), _Seen) and seen.profile.cut]
    if cut:
        progress("profiling Python functions under Callgrind, again for deep calls")
        # Hundreds of calls deep, Callgrind may need all memory.
        deeper = look(cut, DEPTHS[1], stubs)
        found |= {name: seen for name, seen in deeper.items() if isinstance(seen, _Seen)}
    places = Places(place.cwd)
    known = {storable(name): seen for name, seen in found.items()}
    benchmarks = (_profiled(item, known[item.id], places) if item.id in known else item for item in result.benchmarks)
    return replace(result, benchmarks=tuple(benchmarks))


def _profiled(benchmark: Benchmark, seen: _Seen | CgBenchError, places: Places) -> Benchmark:
    if isinstance(seen, _Seen):
        return replace(benchmark, python=places.located(seen.profile))
    note = f"its Python functions were not profiled: {seen.message}"
    return replace(benchmark, warnings=(*benchmark.warnings, note))


def _look(  # noqa: PLR0917 - what `run` has, and how to collect
    session: pytest.Session,
    items: Sequence[pytest.Item],
    settings: Settings,
    laboratory: Laboratory,
    place: Place,
    collect: Collect,
) -> _Found:
    """Execute these benchmarks once more, and read one call of each."""
    limit = TimeLimit(settings.timeout_ms)
    with scratch(SCRATCH_BASE, first=FIRST_SLOT) as directory, ExitStack() as stack:
        lanes = lanes_of(session, items, dataclasses.replace(settings, layouts=1), directory.path, limit)
        for lane in lanes:
            lane.order(settings.warm_up, PROFILED, place.places)
        stack.enter_context(limit)
        at_work = Lanes(
            laboratory,
            place,
            [lane.exchange for lane in lanes],
            echo=lambda _chunk: None,
            read=lambda number, out, maps: _read(lanes[number].all_reports(), out, maps, collect.python_depth),
            collect=collect,
            watch=limit.watching,
        )
        with at_work:
            at_work.start()
            wait(at_work.futures)
        found: _Found = {}
        at_work.raise_unforeseen()
        for lane, future in zip(lanes, at_work.futures, strict=True):
            error = future.exception()
            for item in lane.items:
                seen = error if isinstance(error, CgBenchError) else future.result().found.get(item.nodeid)
                found[item.nodeid] = seen or MeasurementError(lane.why_nothing(item, future))
    return found


def _read(
    reports: Mapping[str, dict[str, Any]], out: Path, trampolines: Callable[[int], Trampolines], depth: int | None
) -> _Found:
    found: _Found = {}
    for name, report in reports.items():
        meter = report.get("meter")
        if meter:
            try:
                with reading_out_files():
                    found[name] = _seen(meter, out, trampolines, depth)
            except CgBenchError as error:
                found[name] = error
    return found


def _seen(meter: Mapping[str, Any], out: Path, trampolines: Callable[[int], Trampolines], depth: int | None) -> _Seen:
    (pair,) = parts_of(out, meter)
    empty, body = (PathReader(depth=depth, hide=_is_harness) for _ in range(2))
    for reader, files in zip((empty, body), pair, strict=True):
        for file in files:
            reader.read(file, trampolines(meter["pid"]))
    return _Seen(_without(body.profile(), empty.profile()), body.stubs)


def _without(body: PythonProfile, empty: PythonProfile) -> PythonProfile:
    """Return what a call cost beyond an empty one, whose function, if it has one, stands for the one that was called."""
    left = sum(path.ir for path in empty.paths)
    rows: list[PythonRow] = []
    for path in body.paths:
        less = min(left, path.ir) if path.parent == TOP else 0
        left -= less
        rows.append(PythonRow(path.parent, body.functions[path.function], path.calls, path.ir - less))
    total = max(body.total - empty.total, sum(row.ir for row in rows))
    return profile_of(rows, total=total, cut=body.cut)


def _is_harness(function: PythonFunction) -> bool:
    return is_harness(function, "pytest_plugin")
