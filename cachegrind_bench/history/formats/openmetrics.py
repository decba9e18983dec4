"""A history as OpenMetrics text, as Prometheus reads it: `promtool tsdb create-blocks-from openmetrics` takes it whole.

Carries scores and counts at the times of their commits; which commit each is of would make a series of every value, so it
is left out, and nothing can be read back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.errors import StoreError
from cachegrind_bench.history.formats import fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cachegrind_bench.model.history import Snapshot

_Labels = tuple[tuple[str, str], ...]

_SCORE, _EVENTS, _OK = "cg_bench_score", "cg_bench_events", "cg_bench_ok"
_HELP = {
    _SCORE: "Cost of the benchmark under the model.",
    _EVENTS: "Events that Cachegrind counted.",
    _OK: "Whether the benchmark went well.",
}


def write(runs: Iterable[Snapshot]) -> Iterator[str]:
    """Return three families of gauges; of several values of one series and second, that of the last run."""
    found: dict[str, dict[_Labels, dict[int, int]]] = {family: {} for family in _HELP}
    for run in sorted(runs, key=lambda run: (run.created_at, run.uid)):
        at = _seconds(run)
        for point in run.points:
            name = ("benchmark", point.id), ("key", point.key)
            found[_OK].setdefault(name[:1], {})[at] = int(point.counts is not None)
            if point.counts is None or point.score is None:
                continue
            found[_SCORE].setdefault((*name, ("model", point.score.model)), {})[at] = point.score.value
            for event, count in point.counts.as_dict().items():
                found[_EVENTS].setdefault((*name, ("event", event)), {})[at] = count
    for family, series in found.items():
        yield f"# TYPE {family} gauge\n# HELP {family} {_HELP[family]}\n"
        for labels, values in sorted(series.items()):
            shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
            for at, value in sorted(values.items()):
                yield f"{family}{{{shown}}} {value} {at}\n"
    yield "# EOF\n"


def _seconds(run: Snapshot) -> int:
    try:
        return fields.seconds(run.created_at if run.commit is None else run.commit.committed_at)
    except ValueError as error:
        raise StoreError(f"run {run.uid} cannot be exported: {error}") from error


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
