"""Formats that carry too little to be read back: what Bencher, Prometheus and Apache Otava (once Hunter) import.

`warn` gets a sentence about what the other tool does not take.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator

from cachegrind_bench.errors import StoreError
from cachegrind_bench.history.formats.csvformat import guarded, line
from cachegrind_bench.history.formats.fields import seconds
from cachegrind_bench.model.result import Snapshot
from cachegrind_bench.model.text import counted, plain

_Labels = tuple[tuple[str, str], ...]

_LONGEST = 1024  # in bytes
# Bencher takes such a name for the id of a benchmark that it must have already.
_UUID = re.compile(
    r"\{?(?:urn:uuid:)?[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}\}?", re.ASCII | re.IGNORECASE
)
_UNNAMED = "Bencher takes no empty names, none of more than 1,024 bytes, and none that are a UUID"
_LACKING = "they lack a benchmark of the last run, or have no clean commit, and Otava takes no empty cell"

_SCORE, _EVENTS, _OK = "cg_bench_score", "cg_bench_events", "cg_bench_ok"
_HELP = {
    _SCORE: "Cost of the benchmark under the model.",
    _EVENTS: "Events that Cachegrind counted.",
    _OK: "Whether the benchmark went well.",
}


def bencher(run: Snapshot, warn: Callable[[str], None]) -> str:
    """Return the scores and counts of what went well in the Bencher Metric Format: {benchmark: {measure: {"value": number}}}.

    For `bencher run --adapter json`. Bencher refuses a whole file for one name that it does not take, so such benchmarks
    are left out.
    """
    found = _numbers(run)
    taken = [name for name in found if 0 < len(name.encode()) <= _LONGEST and not _UUID.fullmatch(name)]
    _warn_of_missing(len(found) - len(taken), "benchmark", _UNNAMED, warn)
    measures = {name: {measure: {"value": value} for measure, value in found[name].items()} for name in taken}
    return json.dumps(measures, indent=2) + "\n"


def openmetrics(runs: Iterable[Snapshot]) -> Iterator[str]:
    """Return OpenMetrics text, as Prometheus reads it: `promtool tsdb create-blocks-from openmetrics` takes it whole.

    Three families of gauges have scores and counts at the times of their commits; of several values of one series and
    second, that of the last run. The commit of each would make a series of every value, so it is left out.
    """
    found: dict[str, dict[_Labels, dict[int, int]]] = {family: {} for family in _HELP}
    for run in sorted(runs, key=lambda run: (run.created_at, run.uid)):
        try:
            at = seconds(run.created_at if run.commit is None else run.commit.committed_at)
        except ValueError as error:
            raise StoreError(f"run {run.uid} cannot be exported: {error}") from error
        for point in run.points:
            name = ("benchmark", point.id), ("key", point.key)
            found[_OK].setdefault(name[:1], {})[at] = int(point.counts is not None)
            if point.counts is None or point.score is None:
                continue
            found[_SCORE].setdefault((*name, ("model", point.score.model)), {})[at] = point.score.value
            for event, count in point.counts.counted().items():
                found[_EVENTS].setdefault((*name, ("event", event)), {})[at] = count
    for family, series in found.items():
        yield f"# TYPE {family} gauge\n# HELP {family} {_HELP[family]}\n"
        for labels, values in sorted(series.items()):
            shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
            yield from (f"{family}{{{shown}}} {value} {at}\n" for at, value in sorted(values.items()))
    yield "# EOF\n"


def _escaped(text: str) -> str:
    lines = map(plain, text.split("\n"))
    return r"\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)


def otava(runs: Iterable[Snapshot], warn: Callable[[str], None]) -> Iterator[str]:
    """Return a CSV file with a row for each run: score and Ir of the benchmarks that went well in the last run.

    Otava takes no empty cell, so runs that lack one of them are left out, and those of dirty checkouts or without a commit.
    Rows come in the order of the runs, which is that of their commits.
    """
    found = list(runs)
    clean = [(run, run.commit) for run in found if run.commit is not None and not run.commit.dirty]
    names = sorted(point.id for point in clean[-1][0].points if point.counts is not None) if clean else []
    columns = (f"{name}{kind}" for name in names for kind in (".score", ".Ir"))
    yield line(("time", "commit", "branch", "run", "environment", *columns))
    written = 0
    branches: set[str] = set()
    for run, commit in clean:
        numbers = _numbers(run)
        if numbers.keys() >= set(names):
            branch = commit.branch or "HEAD"  # as git calls a checkout of no branch: no branch can be called so
            cells = (str(numbers[name][kind]) for name in names for kind in ("score", "Ir"))
            yield line((commit.committed_at, commit.sha, branch, run.uid, run.env_key, *cells))
            branches.add(guarded(branch))
            written += 1
    _warn_of_missing(len(found) - written, "run", _LACKING, warn)
    if len(branches) > 1:
        known = ", ".join(map(plain, sorted(branches)[:5]))
        warn(f"more than one branch: choose by 'otava analyze --branch' from {known}")


def _numbers(run: Snapshot) -> dict[str, dict[str, int]]:
    """Return the score and the counts of each benchmark that went well."""
    return {
        point.id: {"score": point.score.value, **point.counts.counted()}
        for point in run.points
        if point.counts is not None and point.score is not None
    }


def _warn_of_missing(count: int, what: str, why: str, warn: Callable[[str], None]) -> None:
    if count:
        warn(f"{counted(count, what)} left out: {why}")
