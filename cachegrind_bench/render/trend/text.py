"""The trend report for a terminal or a log: the headline, a table, what was found with its commits, and its health."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.model.text import counted, plain, shortened
from cachegrind_bench.render import table
from cachegrind_bench.render.trend import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cachegrind_bench.history.values import Finding, Trend

_MOST_ROWS = 40
_MOST_FINDINGS = 20
_MOST_SUSPECTS = 5
_FIGURES = range(2, 7)
_NAME = 1  # the column of names gives way where the terminal is narrow


def render(view: Trend, *, width: int | None = None) -> str:
    """Return the report, the table at most `width` columns wide; what it leaves out for its length it counts."""
    return "".join(f"{line.rstrip()}\n" for line in _lines(view, width))


def _lines(view: Trend, width: int | None) -> Iterator[str]:
    yield f"{plain(view.provenance.title)}: {words.headline(view.headline)}"
    yield words.span(view)
    if view.rows:
        rows = [words.columns(view), *map(words.cells, view.rows[:_MOST_ROWS])]
        rows = table.fitted(rows, width and width - 2, (_NAME,))  # 2: the indent
        yield ""
        yield from (f"  {line}" for line in table.aligned(rows, headed=True, right=_FIGURES))
    more = len(view.rows) - _MOST_ROWS
    if more > 0:
        yield f"  and {counted(more, 'more benchmark')} with less impact"
    moves = words.moves(view)
    for title, items in words.chapters(view):
        yield f"\n{title}"
        for item in items[:_MOST_FINDINGS]:
            yield from _finding(item, view, moves)
        if len(items) > _MOST_FINDINGS:
            yield f"  and {len(items) - _MOST_FINDINGS} more"
    accepting = words.accepting(view)
    yield from [f"\n{accepting}"] if accepting else []
    health = words.health(view.health)
    yield from ["\nHealth", *(f"  {line}" for line in health)] if health else []


def _finding(found: Finding, view: Trend, moves: Mapping[str, str]) -> Iterator[str]:
    name = f"{words.SHAPES[found.kind]} {words.name(found.benchmark)}{words.size(found)}"
    yield f"  {name}, {words.kind(found)}: {words.story(found)}"
    blame = words.blame(found, _MOST_SUSPECTS)
    commits = [_commit(sha, view) for sha in blame.commits]
    if len(commits) <= 1:
        yield f"      {' '.join([blame.words, *commits])}"
    else:
        yield f"      {blame.words}"
        yield from (f"        {commit}" for commit in commits)
        yield from [f"        and {blame.more} more"] if blame.more else []
    if found.id in moves:
        yield f"      {moves[found.id]}"
    if blame.bisectable:
        yield f"      to narrow them down: cg-bench bisect {found.id}"
    if found.reason is not None:
        yield f"      accepted: {shortened(plain(found.reason), 200)}"
    if found.recovered_sha is not None:
        yield f"      {words.ended(found)} {_commit(found.recovered_sha, view)}"


def _commit(sha: str, view: Trend) -> str:
    return " ".join(part for part in (words.sha(sha), *words.described(view.noted.get(sha))) if part)
