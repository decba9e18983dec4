"""Python profiles for the benchmarks of a result: executions of their own, with CPython's perf trampolines.

Scores and counts never come from them. Each benchmark is warmed up and called as before, and one call is looked at.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.errors import CgBenchError, MeasurementError
from cachegrind_bench.harness.pytest_session.results import parts_of
from cachegrind_bench.harness.pytest_session.session import Bench, Lane, serving
from cachegrind_bench.interruption import wait_for_all
from cachegrind_bench.measure.python_profile import DEPTH_OF_STUBS, DEPTHS, check_trampolines
from cachegrind_bench.measure.source_locations import Places
from cachegrind_bench.model.python_profile import TOP, PythonFunction, PythonProfile, PythonRow, profile_of
from cachegrind_bench.model.result import Benchmark, Status
from cachegrind_bench.valgrind.options import Collect, Scope
from cachegrind_bench.valgrind.python_contexts import PathReader
from cachegrind_bench.valgrind.region_parts import is_harness
from cachegrind_bench.valgrind.runner import reading_out_files

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.harness.pytest_session.request import Item, Python
    from cachegrind_bench.startup.exchange import Measured
    from cachegrind_bench.valgrind.perf_map import Trampolines

# One call shows which functions took part in it; it is the kind of call that was counted before.
_PROFILED = (2,)


def check(python: Python, option: str) -> None:
    """Find out before the work whether this Python can be profiled. UsageError, naming the option, if not."""
    check_trampolines(python.executable, python.implementation, python.version, python.trampolines, option)


@dataclass(frozen=True, slots=True)
class _Seen:
    """One call of a benchmark: its profile, and stubs of libraries among its callers."""

    profile: PythonProfile
    stubs: tuple[str, ...]


# By the ids of nodes; an error says why there is no profile.
_Found = dict[str, "_Seen | CgBenchError"]


def with_python_profiles(
    bench: Bench, benchmarks: Sequence[Benchmark], progress: Callable[[str], object]
) -> list[Benchmark]:
    """Return the benchmarks with a Python profile for each benchmark that has counts, or a warning why it has none."""
    counted = {benchmark.id for benchmark in benchmarks if benchmark.status is Status.OK}
    items = [item for item in bench.collected.items if item.id in counted]
    if not items:
        return list(benchmarks)
    one = dataclasses.replace(bench, settings=replace(bench.settings, layouts=1))

    def look(some: Sequence[Item], depth: int, stubs: Sequence[str]) -> _Found:
        """Execute these benchmarks once more, and read one call of each."""
        collect = Collect(scope=Scope.CALLS, python_depth=depth, stubs=tuple(stubs))
        found: _Found = {}

        def read(lane: Lane, out: Path, trampolines: Callable[[int], Trampolines]) -> None:
            for nodeid, report in lane.all_reports().items():
                if measured := report.get("meter"):
                    found[nodeid] = _seen(measured, out, trampolines, depth)

        with serving(one, some, _PROFILED, read=read, collect=collect) as lanes:
            for lane in lanes:
                lane.release(one.place.look_ups)
            wait_for_all([lane.future for lane in lanes])
        for lane in lanes:
            error = lane.future.exception()
            for item in lane.items:
                if isinstance(error, CgBenchError):
                    found[item.nodeid] = error
                elif item.nodeid not in found:
                    found[item.nodeid] = MeasurementError(lane.why_nothing(item))
        return found

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
    places = Places(bench.place.cwd, bench.settings.environ)
    known = {item.id: found[item.nodeid] for item in items if item.nodeid in found}
    return [_profiled(item, known[item.id], places) if item.id in known else item for item in benchmarks]


def _profiled(benchmark: Benchmark, seen: _Seen | CgBenchError, places: Places) -> Benchmark:
    if isinstance(seen, _Seen):
        return replace(benchmark, python=places.located(seen.profile))
    note = f"its Python functions were not profiled: {seen.message}"
    return replace(benchmark, warnings=(*benchmark.warnings, note))


def _seen(measured: Measured, out: Path, trampolines: Callable[[int], Trampolines], depth: int) -> _Seen | CgBenchError:
    """Read the call of a benchmark that was measured for this."""
    try:
        with reading_out_files():
            ((pair,),) = parts_of(out, measured)
            empty, body = (PathReader(depth=depth, hide=_is_harness) for _ in range(2))
            for reader, files in zip((empty, body), pair, strict=True):
                for file in files:
                    reader.read(file, trampolines(measured["layouts"][0]["pid"]))
            return _Seen(_without(body.profile(), empty.profile()), body.stubs)
    except CgBenchError as error:
        return error


def _without(body: PythonProfile, empty: PythonProfile) -> PythonProfile:
    """Return what a call cost beyond an empty one, whose function, if it has one, takes the place of the one that was called."""
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
