"""The trend report for a job's summary: the headline, a table of at most twenty rows, what was found, and its health."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.model.text import counted, plain, shortened
from cachegrind_bench.render.markdown import escape, table
from cachegrind_bench.render.trend import finding_text, words

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from cachegrind_bench.history.values import Finding, Trend

_MOST_ROWS = 20
_MOST_FINDINGS = 20
_MOST_SUSPECTS = 5


def render(view: Trend, stream: TextIO) -> None:
    """Write the report; what it leaves out for its length it counts."""
    stream.write(f"### {escape(plain(view.provenance.title))}: {escape(words.headline(view.headline))}\n\n")
    stream.write(f"{escape(words.span(view))}\n")
    if view.rows:
        stream.write("\n" + table(words.columns(view), list(map(words.cells, view.rows[:_MOST_ROWS]))))
    more = len(view.rows) - _MOST_ROWS
    if more > 0:
        stream.write(f"\n{counted(more, 'more benchmark')} with less impact.\n")
    moves = finding_text.moves(view)
    for title, items in words.chapters(view):
        stream.write(f"\n**{title}**\n\n")
        stream.writelines(_finding(item, view, moves) for item in items[:_MOST_FINDINGS])
        if len(items) > _MOST_FINDINGS:
            stream.write(f"- and {len(items) - _MOST_FINDINGS} more\n")
    accepting = words.accepting(view)
    stream.write(f"\n{escape(accepting)}\n" if accepting else "")
    stream.writelines(f"\n> ⚠️ {escape(line)}\n" for line in words.health(view.health))
    made = f"cg-bench {view.provenance.tool_version}, {view.provenance.created_at}, {view.provenance.store}"
    stream.write(f"\n<sub>{escape(plain(made))}</sub>\n")


def _finding(found: Finding, view: Trend, moves: Mapping[str, str]) -> str:
    blame = finding_text.blame(found, _MOST_SUSPECTS)
    size = f" {escape(finding_text.size(found))}" if finding_text.has_size(found) else ""
    text = f"- {words.SHAPES[found.kind]} **{escape(words.name(found.benchmark))}**{size}, {escape(finding_text.kind(found))}"
    text += f": {escape(finding_text.story(found))}, {escape(blame.words)}"
    commits = [_commit(sha, view) for sha in blame.commits]
    if len(commits) <= 1:
        text += f" {commits[0]}\n" if commits else "\n"
    else:
        text += "\n" + "".join(f"  - {commit}\n" for commit in commits)
    if found.id in moves:
        text += f"  - {escape(moves[found.id])}\n"
    if blame.bisectable:
        more = f"and {blame.more} more; " if blame.more else ""
        text += f"  - {more}`cg-bench bisect {_code(found.id)}` narrows them down\n"
    if found.reason is not None:
        text += f"  - accepted: {escape(shortened(plain(found.reason), 200))}\n"
    if found.recovered_sha is not None:
        text += f"  - {finding_text.ended(found)} {_commit(found.recovered_sha, view)}\n"
    return text


def _commit(sha: str, view: Trend) -> str:
    address, note = words.link(view.provenance, sha), view.noted.get(sha)
    code = f"`{_code(words.sha(sha))}`"
    # A pointed bracket ends the address, and a bracket within a name would: both are quoted in it.
    linked = code if address is None else f"[{code}](<{address.replace('<', '%3C').replace('>', '%3E')}>)"
    return " ".join([linked, *map(escape, words.told(note))])


def _code(text: str) -> str:
    """Return text for between backquotes, which has no escapes there."""
    return plain(text).replace("`", "'")
