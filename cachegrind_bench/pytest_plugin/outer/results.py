"""What became of benchmarks: from the parts of a Callgrind run to the result that is stored and compared.

What a benchmark costs is its call, without the empty region around it.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench._version import __version__
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.place import NOWHERE, Translation
from cachegrind_bench.measure.seal import require_sealed, seal_parts, with_copies
from cachegrind_bench.measure.session import Identity, ValgrindSetup, benchmark_key_fields, identify
from cachegrind_bench.model.metrics import Counts, Profile, merge_profiles, without
from cachegrind_bench.model.result import (
    PYTEST,
    Benchmark,
    Environment,
    ProcessCost,
    Result,
    Run,
    Score,
    Status,
    comparability_key,
)
from cachegrind_bench.pytest_plugin.fixture import uses_fixture
from cachegrind_bench.pytest_plugin.inner import dumps
from cachegrind_bench.pytest_plugin.outer.options import WARM_UP, Settings
from cachegrind_bench.pytest_plugin.outer.report_relay import failure_text
from cachegrind_bench.valgrind.callgrind_file import CallgrindPart, Wanted, parse_callgrind_bytes
from cachegrind_bench.valgrind.options import Tool
from cachegrind_bench.valgrind.out_format import reading
from cachegrind_bench.valgrind.processes import in_order, named
from cachegrind_bench.valgrind.runner import reading_out_files
from cachegrind_bench.vcs.commits import commit_of

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.model.call_graph import CallGraph
    from cachegrind_bench.pytest_plugin.outer.workers import Place

# Part of the key: counts of calls are not those of whole processes, and another way to count gets another number.
MEASURED = "pytest/4"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a benchmark cost in one memory layout: each of its last calls, and the profile of the one in the middle.

    `functions` is who called whom in that one: all, or only functions of the system.

    `settled`: whether these agreed, `starts_processes` whether Callgrind wrote a part in the middle of a call, as it
    does before a fork.
    """

    calls: tuple[Counts, ...]
    settled: bool
    profile: Profile
    starts_processes: bool
    functions: CallGraph

    @property
    def runs(self) -> tuple[Counts, ...]:
        """The calls that are stored for comparisons: all, or only the middle one if the benchmark settled."""
        return (self.profile.counts(),) if self.settled else self.calls


Costs = tuple[Cost, ...]  # one for each memory layout that was measured, from the first one on
_Pairs = list[tuple[list[Path], ...]]  # the files of each call: of the empty one before it, and its own


def read_costs(
    found: dict[str, Costs | MeasurementError],
    reports: Mapping[str, Mapping[str, Any]],
    out: Path,
    settings: Settings,
    paths: Translation = NOWHERE,
) -> None:
    """Add what each measured benchmark cost that is not in `found` yet, by the ids of their nodes, or why that cannot be read.

    `paths` are those that the measured process sees; when it has ended, its files have the real ones.
    """
    for nodeid, report in reports.items():
        if nodeid not in found and report.get("meter"):
            try:
                with reading_out_files():
                    layouts = zip(parts_of(out, report["meter"]), report["meter"]["layouts"], strict=True)
                    found[nodeid] = tuple(_cost_of(one, settings, paths, settled=tried[2]) for one, tried in layouts)
            except MeasurementError as error:
                found.setdefault(nodeid, error)  # another thread may have read it meanwhile


def _cost_of(pairs: _Pairs, settings: Settings, paths: Translation, *, settled: bool) -> Cost:
    """Return what calls cost beyond empty ones. MeasurementError if they cannot be read."""
    model = settings.model
    from cachegrind_bench.model.call_graph import every, of_system

    wanted = every if settings.call_tree else of_system
    parts = [[_parts(files, paths, wanted) for files in pair] for pair in pairs]
    calls = [without(_profile(body), _profile(empty)) for empty, body in parts]
    counts = [call.counts() for call in calls]
    order = sorted(range(len(calls)), key=lambda place: (model.score(counts[place]), counts[place].Ir, place))
    middle = order[(len(calls) - 1) // 2]
    return Cost(
        calls=tuple(counts),
        settled=settled,
        profile=calls[middle],
        starts_processes=any(len(body) > 1 for _, body in pairs),
        functions=_functions_of(parts[middle], counts[middle].Ir),
    )


def _functions_of(pair: Sequence[Sequence[CallgrindPart]], total: int) -> CallGraph:
    """Return which functions called which in a call that cost this many instructions beyond an empty one."""
    from cachegrind_bench.model.call_graph import graph_without, merge_graphs, named_graph

    empty, whole = (merge_graphs(part.calls for part in parts if part.calls is not None) for parts in pair)
    return named_graph(graph_without(whole, empty, 1, total))


def parts_of(out: Path, meter: Mapping[str, Any]) -> list[_Pairs]:
    """Return the files of the calls that count, for each layout in a meter's record. MeasurementError if some are missing."""
    found: list[_Pairs] = []
    for pid, made, settled in meter["layouts"]:
        prefix = dumps.kept_as(meter["name"], pid)
        count = 1 if settled else made - 1
        calls = dumps.calls(str(out), prefix, count)
        if len(calls) < count:
            raise MeasurementError("some of what Callgrind wrote is missing: is the disk full?")
        found.append([tuple([out / f"{prefix}{number}" for number in one[0]] for one in call) for call in calls])
    return found


def _profile(parts: Sequence[CallgrindPart]) -> Profile:
    return merge_profiles([in_order(named(part)) for part in parts])


def _parts(files: Sequence[Path], paths: Translation, wanted: Wanted) -> list[CallgrindPart]:
    parts: list[CallgrindPart] = []
    for file in files:
        with reading(file) as stream:
            parts += parse_callgrind_bytes(paths.real_bytes(stream.read()), str(file), calls=wanted)
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One benchmark that was begun: its report, its costs by memory layout, and its process's outcome, or why that failed."""

    item: pytest.Item
    report: Mapping[str, Any]
    costs: Costs | MeasurementError
    outcome: Outcome | None
    failure: str | None

    @property
    def skipped(self) -> bool:
        """Whether the test was skipped, or failed as it was expected to."""
        return not self.trouble and any(report["outcome"] == "skipped" for report in self.report["reports"])

    @property
    def trouble(self) -> str | None:
        """Why it has no counts, in its last line: a failure of the test, of its process, or of the measurement."""
        for report in self.report["reports"]:
            if report["outcome"] == "failed":
                return _last_words(report)
        return failure_text(self.report) or self.failure


_OWN_FOLDER = f"{Path(__file__).parents[1]}{os.sep}"


def _last_words(report: Mapping[str, Any]) -> str:
    longrepr: Any = report.get("longrepr")
    try:
        crash = longrepr["reprcrash"]
        text = str(crash["message"])
        if not str(crash["path"]).startswith(_OWN_FOLDER):
            text = f"{crash['path']}:{crash['lineno']}: {text}"
    except (TypeError, KeyError):
        text = str(longrepr)
    return f"{report['when']}: {text}"


def result_of(
    ended: Sequence[Ended], settings: Settings, valgrind_setup: ValgrindSetup, place: Place, created_at: str
) -> Result:
    """Return the result of these benchmarks; those that failed are in it with the reason."""
    identity = identify(place.executable, place.variables)
    return Result(
        tool_version=__version__,
        created_at=created_at,
        commit=commit_of(place.cwd, settings.environ),
        env=valgrind_setup.environment,
        benchmarks=tuple(
            _benchmark(item, settings, valgrind_setup.environment, identity, place.executable)
            for item in ended
            if not item.skipped
        ),
    )


def _benchmark(ended: Ended, settings: Settings, env: Environment, identity: Identity, executable: str) -> Benchmark:
    item, outcome = ended.item, ended.outcome
    common: dict[str, Any] = {
        "id": storable(item.nodeid),
        "command": (*PYTEST, storable(item.nodeid)),
        "parameters": parameters_of(item),
        "tags": tags_of(item),
        "tool": Tool.CALLGRIND.value,
    }
    costs = () if isinstance(ended.costs, MeasurementError) else ended.costs
    trouble = ended.trouble or (str(ended.costs) if isinstance(ended.costs, MeasurementError) else None)
    if trouble is not None or outcome is None or not costs:
        key = comparability_key(env.fields)
        text = trouble or "it measured nothing"
        return Benchmark(key=key, key_fields={}, status=Status.FAILED, error=storable(text), **common)
    seal = seal_parts(
        outcome.unsealed,
        supervised=outcome.images is not None,
        guest_chase_off=env.fields.get("guest_chase") == "off",
        clock_pinned=False,
        # Of the processes that pytest forks, the others wait while one is measured.
        one_thread=outcome.images is not None and not any(image.threads for image in outcome.images),
    )
    if settings.require_sealed:
        require_sealed(seal)
    seal = with_copies(seal, tunable=identity.tunable)
    key_fields = {
        **benchmark_key_fields(identity, seal, Tool.CALLGRIND),
        "measured": MEASURED if settings.warm_up == WARM_UP else f"{MEASURED} warmup={settings.warm_up}",
        **_interpreting(item, settings),
    }
    model = settings.model
    ordered = sorted(costs, key=lambda cost: model.score(cost.profile.counts()))
    cost = ordered[(len(ordered) - 1) // 2]
    counts = cost.profile.counts()
    return Benchmark(
        key=comparability_key({**env.fields, **key_fields}),
        key_fields=key_fields,
        exit_status=0,
        warnings=_warnings(cost, settings.layouts - len(costs)),
        counts=counts,
        score=Score(model=model.name, value=model.score(counts)),
        runs=tuple(Run(layout=layout, counts=call) for layout, found in enumerate(costs) for call in found.runs),
        processes=(ProcessCost(executable=executable, counts=counts),),
        processes_exact=not cost.starts_processes,
        objects=identity.objects,
        wall_ms=ended.report["wall_ms"],
        seal=seal,
        profile=cost.profile,
        calls=cost.functions,
        **common,
    )


# Markers that say how pytest treats a test, not what it is.
_NO_TAGS = "anyio asyncio benchmark codspeed_benchmark filterwarnings parametrize skip skipif usefixtures xfail"


def _interpreting(item: pytest.Item, settings: Settings) -> dict[str, str]:
    """Return what made the code of tests what was executed: Python, and what pytest made of their asserts."""
    fields = {"python": platform.python_version()}
    if optimize := settings.request.values.get("PYTHONOPTIMIZE"):
        fields["optimize"] = optimize
    if (asserts := str(item.config.getoption("assertmode", "rewrite"))) != "rewrite":
        fields["asserts"] = asserts
    if not uses_fixture(item):
        fields["pytest"] = pytest.__version__
    return fields


def tags_of(item: pytest.Item) -> tuple[str, ...]:
    """Return the markers that say what a test is."""
    return tuple(sorted({mark.name for mark in item.iter_markers()} - set(_NO_TAGS.split())))


def parameters_of(item: pytest.Item) -> dict[str, str]:
    """Return the parameters of a test as text, as far as they have one."""
    params: Mapping[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    return {
        storable(name): storable(_shown(value))
        for name, value in sorted(params.items())
        if isinstance(value, str | int | float | bool | None)
    }


def _shown(value: object) -> str:
    try:
        return str(value)[:_LONGEST_VALUE]
    except ValueError:  # Python refuses thousands of digits
        return "a very large number"


_LONGEST_VALUE = 200
# Of the instructions; less than that comes of the interpreter's attempts to specialise, and of lists that move.
_WORTH_TELLING = Fraction(1, 1000)


def _warnings(cost: Cost, unmeasured: int) -> tuple[str, ...]:
    found: list[str] = []
    if unmeasured:
        found.append(
            f"{unmeasured} of its memory layouts could not be measured: the test failed there, or its process ended"
        )
    least, most = (choose(call.Ir for call in cost.calls) for choose in (min, max))
    if not cost.settled and most - least > most * _WORTH_TELLING:
        found.append(
            f"did not settle: its last {len(cost.calls)} calls took {least:,} to {most:,} instructions, and the middle one "
            "counts, as in each run; code that keeps something from call to call does so, and a setup of benchmark.pedantic "
            "can undo that"
        )
    if cost.starts_processes:
        found.append("it starts processes, and what these do is not counted")
    return tuple(found)


def storable(text: str) -> str:
    """Return a text as result files have it: bytes of names that are not UTF-8 as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
