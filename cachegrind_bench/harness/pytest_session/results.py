"""What became of benchmarks: from the parts of a Callgrind run to the result that is stored and compared.

What a benchmark costs is its call, without the empty region around it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.pytest_session.request import Collected, Item, SessionSettings
from cachegrind_bench.hermetic.place import NOWHERE, Translation
from cachegrind_bench.measure.seal import require_sealed, seal_parts, with_copies
from cachegrind_bench.measure.session import Identity, benchmark_key_fields, identify, with_counts
from cachegrind_bench.model.metrics import CostModel, Counts, Profile, merge_profiles, without
from cachegrind_bench.model.result import (
    PYTEST,
    Benchmark,
    Environment,
    ProcessCost,
    Run,
    Status,
    comparability_key,
)
from cachegrind_bench.model.text import printable
from cachegrind_bench.startup import dumps
from cachegrind_bench.startup.exchange import WARM_UP, storable
from cachegrind_bench.valgrind.callgrind_file import CallgrindPart, Wanted, parse_callgrind_bytes
from cachegrind_bench.valgrind.failures import signal_name, unknown_instruction
from cachegrind_bench.valgrind.options import EXECS, FORKS, OUTER_FORK, THREADS, Tool
from cachegrind_bench.valgrind.out_format import reading
from cachegrind_bench.valgrind.processes import in_order, named
from cachegrind_bench.valgrind.runner import reading_out_files

if TYPE_CHECKING:
    from cachegrind_bench.harness.pytest_session.workers import Place
    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.model.call_graph import CallGraph
    from cachegrind_bench.startup.exchange import Ending, Measured, Report

# Part of the key: counts of calls are not those of whole processes, and another way to count gets another number.
MEASURED = "pytest/13"
_SPAWNING = ("posix_spawn", "__posix_spawn", "__spawn")  # glibc's, which begins a process as if it were a thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a benchmark cost in one memory layout: each of its last calls, and the profile of the one in the middle.

    `functions` is who called whom in that one: all, or only functions of the system.

    `settled`: whether these agreed, `starts_processes` whether a call forks or executes another program.
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
    reports: Mapping[str, Report],
    out: Path,
    settings: SessionSettings,
    paths: Translation = NOWHERE,
) -> None:
    """Add what each measured benchmark cost that is not in `found` yet, by the ids of their nodes, or why that cannot be read.

    `paths` are those that the measured process sees; when it has ended, its files have the real ones.
    """
    for nodeid, report in reports.items():
        if nodeid not in found and (measured := report.get("meter")):
            try:
                with reading_out_files():
                    layouts = zip(parts_of(out, measured), measured["layouts"], strict=True)
                    found[nodeid] = tuple(
                        _cost_of(one, settings, paths, settled=layout["settled"]) for one, layout in layouts
                    )
            except MeasurementError as error:
                found.setdefault(nodeid, error)  # another thread may have read it meanwhile


def _cost_of(pairs: _Pairs, settings: SessionSettings, paths: Translation, *, settled: bool) -> Cost:
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
        starts_processes=any(_starts_processes(body) for _, body in parts),
        functions=_functions_of(parts[middle], counts[middle].Ir),
    )


def _starts_processes(parts: Sequence[CallgrindPart]) -> bool:
    """Return whether a call whose parts these are starts processes. Callgrind writes a part before a thread begins as well."""
    triggers = {part.trigger.removeprefix("--dump-before=") for part in parts}
    if triggers.intersection((OUTER_FORK, *FORKS, *EXECS)):
        return True
    names = (row.name for part in parts for row in part.profile.functions)
    return not triggers.isdisjoint(THREADS) and any(name.startswith(_SPAWNING) for name in names)


def _functions_of(pair: Sequence[Sequence[CallgrindPart]], total: int) -> CallGraph:
    """Return which functions called which in a call that cost this many instructions beyond an empty one."""
    from cachegrind_bench.model.call_graph import graph_without, merge_graphs, named_graph

    empty, whole = (merge_graphs(part.calls for part in parts if part.calls is not None) for parts in pair)
    return named_graph(graph_without(whole, empty, 1, total))


def middle(costs: Costs, model: CostModel) -> Cost:
    """Return the one whose score is the lower median."""
    return sorted(costs, key=lambda cost: model.score(cost.profile.counts()))[(len(costs) - 1) // 2]


def parts_of(out: Path, measured: Measured) -> list[_Pairs]:
    """Return the files of the calls that count, for each memory layout. MeasurementError if some are missing."""
    found: list[_Pairs] = []
    for layout in measured["layouts"]:
        prefix, made = dumps.kept_as(measured["name"], layout["pid"]), layout["calls"]
        try:
            calls = dumps.calls(str(out), prefix, layout["after"], made)
        except ValueError:  # a part was cut
            calls = []
        if len(calls) < made:
            raise MeasurementError("some of what Callgrind wrote is missing: is the disk full?")
        last = calls[-1:] if layout["settled"] else calls[1:]
        found.append([tuple([out / f"{prefix}{number}" for number in one[0]] for one in call) for call in last])
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

    item: Item
    report: Report
    costs: Costs | MeasurementError
    outcome: Outcome | None
    failure: str | None

    @property
    def skipped(self) -> str | None:
        """Why the test was skipped, or was expected to fail; None if it was to be measured."""
        if self.trouble:
            return None
        return next((_why_skipped(report) for report in self.report["reports"] if report["outcome"] == "skipped"), None)

    @property
    def trouble(self) -> str | None:
        """Why it has no counts, in its last line: a failure of the test, of its process, or of the measurement."""
        for report in self.report["reports"]:
            if report["outcome"] == "failed":
                return _last_words(report)
        return failure_text(self.report) or self.failure


def _why_skipped(report: Mapping[str, Any]) -> str:
    if "wasxfail" in report:
        return f"expected to fail: {report['wasxfail']}".removesuffix(": ")
    try:
        return str(report["longrepr"][2]).removeprefix("Skipped: ")
    except (TypeError, LookupError):  # a plugin's own report
        return "skipped"


_OWN_FOLDER = f"{Path(__file__).parents[2]}{os.sep}"


def traceback_of(report: Report) -> str:
    """Return the lines that pytest shows of a test that failed, with what it printed."""
    found: list[str] = []
    failed = (part for part in report["reports"] if part["outcome"] == "failed")
    for part in failed:
        with suppress(TypeError, LookupError):  # without a traceback, it is a text
            entries: list[dict[str, Any]] = part["longrepr"]["reprtraceback"]["reprentries"]
            found += [str(line) for entry in entries for line in entry["data"]["lines"]]
        found += [f"{name}:\n{text}" for name, text in part.get("sections", ())]
    return "\n".join([*found, *filter(None, [report.get("text")])])


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


def benchmarks_of(
    ended: Sequence[Ended], settings: SessionSettings, env: Environment, place: Place, collected: Collected
) -> list[Benchmark]:
    """Return these benchmarks; those that failed are among them with the reason."""
    identity = identify(place.executable, place.variables)
    return [
        _benchmark(item, settings, env, identity, executable=place.executable, collected=collected)
        for item in ended
        if item.skipped is None
    ]


def _benchmark(
    ended: Ended,
    settings: SessionSettings,
    env: Environment,
    identity: Identity,
    *,
    executable: str,
    collected: Collected,
) -> Benchmark:
    item, outcome = ended.item, ended.outcome
    benchmark = Benchmark(
        id=item.id,
        key=comparability_key(env.fields),
        key_fields={},
        command=(*PYTEST, item.id),
        parameters=item.parameters,
        tags=item.tags,
        tool=Tool.CALLGRIND.value,
        scale=item.scale,
    )
    costs = () if isinstance(ended.costs, MeasurementError) else ended.costs
    trouble = ended.trouble or (str(ended.costs) if isinstance(ended.costs, MeasurementError) else None)
    if trouble is not None or outcome is None or not costs:
        return replace(benchmark, status=Status.FAILED, error=storable(trouble or "it measured nothing"))
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
        **_interpreting(item, settings, collected),
    }
    cost = middle(costs, settings.model)
    benchmark = replace(
        benchmark,
        exit_status=0,
        warnings=_warnings(cost, settings.layouts - len(costs)),
        runs=tuple(Run(layout=layout, counts=call) for layout, found in enumerate(costs) for call in found.runs),
        processes=(ProcessCost(executable=printable(executable), counts=cost.profile.counts()),),
        processes_exact=not cost.starts_processes,
        wall_ms=ended.report.get("wall_ms", 0),
        calls=cost.functions,
    )
    return with_counts(
        benchmark, cost.profile, settings.model, env=env, identity=identity, seal=seal, key_fields=key_fields
    )


def _interpreting(item: Item, settings: SessionSettings, collected: Collected) -> dict[str, str]:
    """Return what made the code of tests what was executed: Python, and what pytest made of their asserts."""
    fields = {"python": collected.python.version}
    if optimize := settings.request.values.get("PYTHONOPTIMIZE"):
        fields["optimize"] = optimize
    if collected.asserts != "rewrite":
        fields["asserts"] = collected.asserts
    if item.whole:
        fields["pytest"] = collected.python.pytest
    if collected.python.unverified:  # when it will be verified, it will be measured in another way
        fields["internals"] = "untouched"
    return fields


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


def failure_text(found: Report) -> str | None:
    """Return why a benchmark has no reports of its own."""
    if died := found.get("died"):
        return f"cg-bench: this benchmark {died}"
    if "status" in found:
        return f"cg-bench: the process of this benchmark {ending(found)}"
    if trouble := found.get("trouble"):
        return f"cg-bench: this benchmark was not run: {trouble}"
    return None


def ending(found: Ending) -> str:
    """Return in words how a process ended, from what waitpid says and Valgrind's log."""
    status = found.get("status", 0)
    if not os.WIFSIGNALED(status):
        return f"ended with exit status {os.WEXITSTATUS(status)}"
    number = os.WTERMSIG(status)
    unknown = unknown_instruction(number, found.get("log", ""))
    if unknown:
        return f"used {unknown[0]}: {unknown[1]}"
    return f"was killed by {signal_name(number)}"
