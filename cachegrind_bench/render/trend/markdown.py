"""The trend report for a job's summary: the headline, a table of at most twenty rows, what was found, and its health."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.model.text import counted, plain, shortened
from cachegrind_bench.render.markdown import escape, table
from cachegrind_bench.render.trend import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cachegrind_bench.history.values import Finding, Trend

_MOST_ROWS = 20
_MOST_FINDINGS = 20
_MOST_SUSPECTS = 5


def render(view: Trend) -> str:
    """Return the report; what it leaves out for its length it counts."""
    return "".join(f"{line}\n" for line in _lines(view))


def _lines(view: Trend) -> Iterator[str]:
    yield f"### {escape(plain(view.provenance.title))}: {escape(words.headline(view.headline))}\n"
    yield escape(words.span(view))
    if view.rows:
        yield "\n" + table(words.columns(view), list(map(words.cells, view.rows[:_MOST_ROWS]))).rstrip("\n")
    more = len(view.rows) - _MOST_ROWS
    if more > 0:
        yield f"\n{counted(more, 'more benchmark')} with less impact."
    moves = words.moves(view)
    for title, items in words.chapters(view):
        yield f"\n**{title}**\n"
        for item in items[:_MOST_FINDINGS]:
            yield from _finding(item, view, moves)
        if len(items) > _MOST_FINDINGS:
            yield f"- and {len(items) - _MOST_FINDINGS} more"
    accepting = words.accepting(view)
    yield from [f"\n{escape(accepting)}"] if accepting else []
    yield from (f"\n> ⚠️ {escape(line)}" for line in words.health(view.health))
    made = f"cg-bench {view.provenance.tool_version}, {view.provenance.created_at}, {view.provenance.store}"
    yield f"\n<sub>{escape(plain(made))}</sub>"


def _finding(found: Finding, view: Trend, moves: Mapping[str, str]) -> Iterator[str]:
    blame = words.blame(found, _MOST_SUSPECTS)
    name = f"{words.SHAPES[found.kind]} **{escape(words.name(found.benchmark))}**{escape(words.size(found))}"
    text = f"{escape(words.kind(found))}: {escape(words.story(found))}, {escape(blame.words)}"
    commits = [_commit(sha, view) for sha in blame.commits]
    if len(commits) <= 1:
        yield " ".join([f"- {name}, {text}", *commits])
    else:
        yield f"- {name}, {text}"
        yield from (f"  - {commit}" for commit in commits)
    if found.id in moves:
        yield f"  - {escape(moves[found.id])}"
    if blame.bisectable:
        more = f"and {blame.more} more; " if blame.more else ""
        yield f"  - {more}`cg-bench bisect {_code(found.id)}` narrows them down"
    if found.reason is not None:
        yield f"  - accepted: {escape(shortened(plain(found.reason), 200))}"
    if found.recovered_sha is not None:
        yield f"  - {words.ended(found)} {_commit(found.recovered_sha, view)}"


def _commit(sha: str, view: Trend) -> str:
    address, note = words.link(view.provenance, sha), view.noted.get(sha)
    code = f"`{_code(words.sha(sha))}`"
    # A pointed bracket ends the address, and a bracket within a name would: both are quoted in it.
    linked = code if address is None else f"[{code}](<{address.replace('<', '%3C').replace('>', '%3E')}>)"
    return " ".join([linked, *map(escape, words.described(note))])


def _code(text: str) -> str:
    """Return text for between backquotes, which has no escapes there."""
    return plain(text).replace("`", "'")
