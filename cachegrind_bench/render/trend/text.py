"""The trend report as text for a terminal or a log, and as Markdown for the summary of a job.

Both have the headline, a table, what was found with its commits, and its health, and count what they leave out for their length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from cachegrind_bench.history.values import Finding, Trend
from cachegrind_bench.model.text import counted, plain, shortened
from cachegrind_bench.render import table
from cachegrind_bench.render.markdown import escape
from cachegrind_bench.render.markdown import table as markdown_table
from cachegrind_bench.render.trend import words

_MOST_ROWS, _MOST_MARKDOWN_ROWS = 40, 20
_MOST_FINDINGS = 20
_MOST_SUSPECTS = 5
_FIGURES = range(2, 7)
_NAME = 1  # the column of names gives way where the terminal is narrow


def render(view: Trend, *, width: int | None = None, colour: bool = False) -> str:
    """Return the text, with a table of at most `width` columns, and with colours if the terminal has them."""
    return "".join(f"{line.rstrip()}\n" for line in _lines(view, width, colour=colour))


def _lines(view: Trend, width: int | None, *, colour: bool) -> Iterator[str]:
    yield f"{plain(view.provenance.title)}: {words.headline(view.headline)}"
    yield words.span(view)
    if view.rows:
        young = words.is_young(view)
        rows = [words.columns(view), *(words.cells(row, young=young) for row in view.rows[:_MOST_ROWS])]
        rows = table.fitted(rows, width and width - 2, (_NAME,))  # 2: the indent
        yield ""
        colours = table.tones(rows) if colour else {}
        yield from (f"  {line}" for line in table.aligned(rows, headed=True, right=_FIGURES, colours=colours))
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
    for place, line in enumerate(words.accepting(view)):
        yield f"    {line}" if place else f"\n{line}"
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
    bisect = f"to narrow them down: cg-bench bisect {found.id}" if blame.bisectable else ""
    yield from (f"      {fact}" for fact in _facts(found, moves, bisect, str, partial(_commit, view=view)))


def _facts(
    found: Finding, moves: Mapping[str, str], bisect: str, escaped: Callable[[str], str], commit: Callable[[str], str]
) -> Iterator[str]:
    """Yield what there is to say below the commits of a finding."""
    yield from [escaped(moves[found.id])] if found.id in moves else []
    yield from [bisect] if bisect else []
    yield from [f"accepted: {escaped(shortened(plain(found.reason), 200))}"] if found.reason is not None else []
    if found.recovered_sha is not None:
        yield f"{words.ended(found)} {commit(found.recovered_sha)}"


def _commit(sha: str, view: Trend) -> str:
    return " ".join(part for part in (words.sha(sha), *words.described(view.noted.get(sha))) if part)


def markdown(view: Trend) -> str:
    """Return the Markdown."""
    return "".join(f"{line}\n" for line in _markdown_lines(view))


def _markdown_lines(view: Trend) -> Iterator[str]:
    yield f"### {escape(plain(view.provenance.title))}: {escape(words.headline(view.headline))}\n"
    yield escape(words.span(view))
    if view.rows:
        young = words.is_young(view)
        rows = [words.cells(row, young=young) for row in view.rows[:_MOST_MARKDOWN_ROWS]]
        yield "\n" + markdown_table(words.columns(view), rows).rstrip("\n")
    more = len(view.rows) - _MOST_MARKDOWN_ROWS
    if more > 0:
        yield f"\n{counted(more, 'more benchmark')} with less impact."
    moves = words.moves(view)
    for title, items in words.chapters(view):
        yield f"\n**{title}**\n"
        for item in items[:_MOST_FINDINGS]:
            yield from _markdown_finding(item, view, moves)
        if len(items) > _MOST_FINDINGS:
            yield f"- and {len(items) - _MOST_FINDINGS} more"
    if accepting := words.accepting(view):
        yield f"\n{escape(accepting[0])}\n\n```toml"
        yield from [*accepting[1:], "```"]
    yield from (f"\n> ⚠️ {escape(line)}" for line in words.health(view.health))
    made = f"cg-bench {view.provenance.tool_version}, {view.provenance.created_at}, {view.provenance.store}"
    yield f"\n{escape(plain(made))}"


def _markdown_finding(found: Finding, view: Trend, moves: Mapping[str, str]) -> Iterator[str]:
    blame = words.blame(found, _MOST_SUSPECTS)
    name = f"{words.SHAPES[found.kind]} **{escape(words.name(found.benchmark))}**{escape(words.size(found))}"
    text = f"{escape(words.kind(found))}: {escape(words.story(found))}, {escape(blame.words)}"
    commits = [_markdown_commit(sha, view) for sha in blame.commits]
    if len(commits) <= 1:
        yield " ".join([f"- {name}, {text}", *commits])
    else:
        yield f"- {name}, {text}"
        yield from (f"  - {commit}" for commit in commits)
    more = f"and {blame.more} more; " if blame.more else ""
    bisect = f"{more}`cg-bench bisect {_code(found.id)}` narrows them down" if blame.bisectable else ""
    yield from (f"  - {fact}" for fact in _facts(found, moves, bisect, escape, partial(_markdown_commit, view=view)))


def _markdown_commit(sha: str, view: Trend) -> str:
    address, note = words.link(view.provenance, sha), view.noted.get(sha)
    code = f"`{_code(words.sha(sha))}`"
    # A pointed bracket ends the address, and a bracket within a name would: both are quoted in it.
    linked = code if address is None else f"[{code}](<{address.replace('<', '%3C').replace('>', '%3E')}>)"
    return " ".join([linked, *map(escape, words.described(note))])


def _code(text: str) -> str:
    """Return text for between backquotes, which has no escapes there."""
    return plain(text).replace("`", "'")
