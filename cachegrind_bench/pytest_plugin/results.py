"""What became of benchmarks, as the result that is stored and compared."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench._version import __version__
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.measure.identity import benchmark_key_fields, identify
from cachegrind_bench.measure.seal import require_sealed, seal_parts
from cachegrind_bench.model.result import (
    PYTEST,
    Benchmark,
    Commit,
    ProcessCost,
    Result,
    Run,
    Score,
    Status,
    comparability_key,
)
from cachegrind_bench.pytest_plugin.counting import Cost, cost_of
from cachegrind_bench.pytest_plugin.fixture import uses_fixture
from cachegrind_bench.pytest_plugin.options import WARM_UP
from cachegrind_bench.pytest_plugin.report_relay import failure_text
from cachegrind_bench.valgrind.options import Tool
from cachegrind_bench.vcs.commits import commit_info

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cachegrind_bench.hermetic.place import Translation
    from cachegrind_bench.measure.identity import Identity
    from cachegrind_bench.measure.session import Laboratory
    from cachegrind_bench.model.score import CostModel
    from cachegrind_bench.pytest_plugin.lanes import Place, Served
    from cachegrind_bench.pytest_plugin.options import Settings

# Part of the key: counts of calls are not those of whole processes, and another way to count gets another number.
MEASURED = "pytest/4"


class EarlyCosts:
    """What benchmarks cost, read as they come, beside those that are still measured."""

    def __init__(self, model: CostModel, places: Translation) -> None:
        self._model, self._places = model, places
        self._tried: set[str] = set()
        self.found: dict[str, Cost] = {}

    def look(self, reports: Mapping[str, dict[str, Any]], out: Path) -> None:
        """Read those of which there are new reports. What cannot be read is tried again when all have ended, and told then."""
        for nodeid, report in reports.items():
            if nodeid not in self._tried and report.get("meter"):
                self._tried.add(nodeid)
                with suppress(MeasurementError):
                    self.found[nodeid] = cost_of(out, report, self._model, self._places)


def read_costs(
    reports: Mapping[str, dict[str, Any]], out: Path, model: CostModel, early: Mapping[str, Cost]
) -> dict[str, Cost | MeasurementError]:
    """Return what each benchmark cost that was measured, by the ids of their nodes, from the out files in this folder."""
    found: dict[str, Cost | MeasurementError] = {}
    for nodeid, report in reports.items():
        if not report.get("meter"):
            continue
        if nodeid in early:
            found[nodeid] = early[nodeid]
            continue
        try:
            found[nodeid] = cost_of(out, report, model)
        except MeasurementError as error:
            found[nodeid] = error
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One benchmark that was begun: its item, its report, and the lane that ran it, or why that failed."""

    item: pytest.Item
    report: Mapping[str, Any]
    served: Served[Sequence[Mapping[str, Cost | MeasurementError]]] | None
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
        return failure_text(dict(self.report)) or self.failure


_OWN_FOLDER = f"{os.path.dirname(os.path.abspath(__file__))}{os.sep}"


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
    ended: Sequence[Ended], settings: Settings, laboratory: Laboratory, place: Place, created_at: str
) -> Result:
    """Return the result of these benchmarks; those that failed are in it with the reason."""
    identity = identify(place.command("", "").executable, place.variables)
    commit = commit_info(place.cwd, settings.environ)
    return Result(
        tool_version=__version__,
        created_at=created_at,
        commit=commit if isinstance(commit, Commit) else None,
        env=laboratory.environment,
        benchmarks=tuple(_benchmark(item, settings, laboratory, identity) for item in ended if not item.skipped),
    )


def _benchmark(ended: Ended, settings: Settings, laboratory: Laboratory, identity: Identity) -> Benchmark:
    env, served, item = laboratory.environment, ended.served, ended.item
    common: dict[str, Any] = {
        "id": storable(item.nodeid),
        "command": (*PYTEST, storable(item.nodeid)),
        "parameters": _parameters(item),
        "tags": tuple(sorted({mark.name for mark in item.iter_markers()} - _NO_TAGS)),
        "tool": Tool.CALLGRIND.value,
    }
    by_layout = [found.get(item.nodeid) for found in served.found] if served is not None else [None]
    costs = {layout: cost for layout, cost in enumerate(by_layout) if isinstance(cost, Cost)}
    trouble = ended.trouble or (str(by_layout[0]) if isinstance(by_layout[0], MeasurementError) else None)
    if trouble is not None or served is None or 0 not in costs:
        key = comparability_key(env.fields)
        text = trouble or "it measured nothing"
        return Benchmark(key=key, key_fields={}, status=Status.FAILED, error=storable(text), **common)
    seal = seal_parts(
        served.outcome.unsealed,
        supervised=served.outcome.images is not None,
        guest_chase_off=env.fields.get("guest_chase") == "off",
        clock_pinned=False,
        # Of the processes that pytest forks, the others wait while one is measured.
        one_thread=served.outcome.images is not None and not any(image.threads for image in served.outcome.images),
    )
    if settings.require_sealed:
        require_sealed(seal)
    key_fields = {
        **benchmark_key_fields(identity, seal, Tool.CALLGRIND),
        "measured": MEASURED if settings.warm_up == WARM_UP else f"{MEASURED} warmup={settings.warm_up}",
        **_interpreting(item, settings),
    }
    model = settings.model
    ordered = sorted(costs.values(), key=lambda cost: model.score(cost.profile.counts()))
    cost = ordered[(len(ordered) - 1) // 2]
    counts = cost.profile.counts()
    runs = [Run(layout=layout, counts=call) for layout, found in costs.items() for call in found.runs]
    return Benchmark(
        key=comparability_key({**env.fields, **key_fields}),
        key_fields=key_fields,
        exit_status=0,
        warnings=_warnings(cost, len(by_layout) - len(costs)),
        counts=counts,
        score=Score(model=model.name, value=model.score(counts)),
        runs=tuple(runs),
        processes=(ProcessCost(executable=served.executable, counts=counts),),
        processes_exact=not cost.starts_processes,
        objects=identity.objects,
        wall_ms=sum(cost.wall_ms for cost in costs.values()),
        seal=seal,
        profile=cost.profile,
        **common,
    )


# Markers that say how pytest treats a test, not what it is.
_NO_TAGS = frozenset(
    (
        *("anyio", "asyncio", "benchmark", "codspeed_benchmark", "filterwarnings"),
        *("parametrize", "skip", "skipif", "usefixtures", "xfail"),
    )
)


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


def _parameters(item: pytest.Item) -> dict[str, str]:
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return {}
    simple = {
        name: value for name, value in callspec.params.items() if isinstance(value, str | int | float | bool | None)
    }
    return {storable(name): storable(_shown(value)) for name, value in sorted(simple.items())}


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
    """Return a text as result files have it: bytes of names that are no UTF-8 as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
