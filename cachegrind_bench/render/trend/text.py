"""The trend report for a terminal or a log: the headline, a table, what was found with its commits, and its health."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.model.text import counted, plain, shortened
from cachegrind_bench.render import table
from cachegrind_bench.render.trend import finding_text, words

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from cachegrind_bench.history.values import Finding, Trend

_MOST_ROWS = 40
_MOST_FINDINGS = 20
_MOST_SUSPECTS = 5
_FIGURES = range(2, 7)
_NAME = 1  # the column of names gives way where the terminal is narrow


def render(view: Trend, stream: TextIO, *, width: int | None = None) -> None:
    """Write the report, the table at most `width` columns wide; what it leaves out for its length it counts."""
    stream.write(f"{plain(view.provenance.title)}: {words.headline(view.headline)}\n{words.span(view)}\n")
    if view.rows:
        rows = [words.columns(view), *map(words.cells, view.rows[:_MOST_ROWS])]
        fitted = table.fitted(rows, width and width - 2, (_NAME,))  # 2: the indent
        lines = table.aligned(fitted, headed=True, right=_FIGURES)
        stream.write("\n" + "".join(f"  {line}".rstrip() + "\n" for line in lines))
    more = len(view.rows) - _MOST_ROWS
    if more > 0:
        stream.write(f"  and {counted(more, 'more benchmark')} with less impact\n")
    moves = finding_text.moves(view)
    for title, items in words.chapters(view):
        stream.write(f"\n{title}\n")
        stream.writelines(_finding(item, view, moves) for item in items[:_MOST_FINDINGS])
        if len(items) > _MOST_FINDINGS:
            stream.write(f"  and {len(items) - _MOST_FINDINGS} more\n")
    accepting = words.accepting(view)
    stream.write(f"\n{accepting}\n" if accepting else "")
    health = words.health(view.health)
    if health:
        stream.write("\nHealth\n" + "".join(f"  {line}\n" for line in health))


def _finding(found: Finding, view: Trend, moves: Mapping[str, str]) -> str:
    size = f" {finding_text.size(found)}" if finding_text.has_size(found) else ""
    lines = [
        f"  {words.SHAPES[found.kind]} {words.name(found.benchmark)}{size}, {finding_text.kind(found)}: {finding_text.story(found)}"
    ]
    blame = finding_text.blame(found, _MOST_SUSPECTS)
    commits = [_commit(sha, view) for sha in blame.commits]
    if len(commits) <= 1:
        lines.append(f"      {' '.join([blame.words, *commits])}")
    else:
        lines += [f"      {blame.words}", *(f"        {commit}" for commit in commits)]
        lines += [f"        and {blame.more} more"] * bool(blame.more)
    if found.id in moves:
        lines.append(f"      {moves[found.id]}")
    if blame.bisectable:
        lines.append(f"      to narrow them down: cg-bench bisect {found.id}")
    if found.reason is not None:
        lines.append(f"      accepted: {shortened(plain(found.reason), 200)}")
    if found.recovered_sha is not None:
        lines.append(f"      {finding_text.ended(found)} {_commit(found.recovered_sha, view)}")
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _commit(sha: str, view: Trend) -> str:
    return " ".join(part for part in (words.sha(sha), *words.told(view.noted.get(sha))) if part)
