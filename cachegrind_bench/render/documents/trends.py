"""The trend report as JSON; `usecases.trend` reads its findings for the next report."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from cachegrind_bench.history.values import Against, Finding, Headline, Health, Reading, Row, Trend
from cachegrind_bench.model.described import Ppm, PpmMore, doc
from cachegrind_bench.model.metrics import Counts
from cachegrind_bench.render.documents.document import Document, fields, optional

_Value = Annotated[int, doc("what is judged: the score, or Ir")]


class ReportTool(msgspec.Struct, frozen=True, kw_only=True):
    """What made the report."""

    version: Annotated[str, doc("version of cg-bench")]


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The commits of the report."""

    commits: Annotated[int, doc("how many there are")]
    measured: Annotated[int, doc("how many of them were measured")]
    first: Annotated[str | None, doc("id of the oldest")]
    last: Annotated[str | None, doc("id of the newest")]


class Latest(msgspec.Struct, frozen=True, kw_only=True):
    """The latest reading of a benchmark."""

    sha: Annotated[str, doc("id of the commit")]
    key: Annotated[str, doc("comparability key")]
    value: _Value
    counts: Annotated[Counts, doc("the nine event counts")]
    run: Annotated[str, doc("name of the run in the store")]


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier reading, and what has changed since."""

    sha: Annotated[str, doc("id of the commit")]
    value: _Value
    comparable: Annotated[bool, doc("whether both were measured alike")]
    change_ppm: Annotated[PpmMore | None, doc("change since, relative to the earlier value; null unless comparable")]


class BenchmarkTrend(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark."""

    id: Annotated[str, doc("name of the benchmark")]
    model: Annotated[str, doc("weights of the score")]
    failing: Annotated[bool, doc("whether it failed at the newest commit at which it was run")]
    missing: Annotated[bool, doc("whether the newest measured commit has no reading")]
    impact_ppm: Annotated[Ppm, doc("largest relative increase that is active, or 0")]
    latest: Annotated[Latest | None, doc("the latest reading")]
    yesterday: Annotated[Earlier | None, doc("reading of a day before")]
    days_7: Annotated[Earlier | None, doc("reading of 7 days before")]
    days_30: Annotated[Earlier | None, doc("reading of 30 days before")]
    release: Annotated[Earlier | None, doc("reading of the last release")]


class TrendReport(Document, frozen=True, kw_only=True):
    """`trend --json`: how costs have developed."""

    schema: Literal["cg-bench.trend/1"] = "cg-bench.trend/1"
    title: Annotated[str, doc("heading of the report")]
    created_at: Annotated[str, doc("when it was made, UTC")]
    store: Annotated[str, doc("URL of the store")]
    branch: Annotated[str | None, doc("the branch that it follows")]
    tool: Annotated[ReportTool, doc("what made it")]
    release: Annotated[str | None, doc("tag that benchmarks are compared with")]
    window: Annotated[Window, doc("the commits of the report")]
    headline: Annotated[Headline, doc("number of findings of each sort")]
    benchmarks: Annotated[tuple[BenchmarkTrend, ...], doc("all benchmarks, the largest impact first")]
    findings: Annotated[tuple[Finding, ...], doc("all findings, sorted by state")]
    health: Annotated[Health, doc("what weakens the report")]


def trend(view: Trend) -> str:
    """Return the trend report, also for the next report, which reads its findings."""
    made, commits = view.provenance, view.commits
    return TrendReport(
        **fields(made, "title", "created_at", "store", "branch"),
        tool=ReportTool(version=made.tool_version),
        **fields(view, "release", "headline", "findings", "health"),
        window=Window(
            commits=len(commits),
            measured=view.measured,
            first=commits[0].sha if commits else None,
            last=commits[-1].sha if commits else None,
        ),
        benchmarks=tuple(map(_row, view.rows)),
    ).text()


def _row(row: Row) -> BenchmarkTrend:
    def latest(reading: Reading) -> Latest:
        return Latest(**fields(reading, "sha", "key", "value", "counts"), run=reading.uid)

    return BenchmarkTrend(
        **fields(row, "id", "model", "failing", "missing"),
        impact_ppm=row.impact,
        latest=optional(row.latest, latest),
        yesterday=_earlier(row.day),
        days_7=_earlier(row.week),
        days_30=_earlier(row.month),
        release=_earlier(row.release),
    )


def _earlier(item: Against | None) -> Earlier | None:
    if item is None or item.base is None:
        return None
    return Earlier(**fields(item.base, "sha", "value"), comparable=item.comparable, change_ppm=item.change)
