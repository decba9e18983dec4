"""The trend report for a job's summary: the headline, a table of at most twenty rows, what was found, and its health."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.history.report import STANDING
from cachegrind_bench.render.markdown import escape, table
from cachegrind_bench.render.names import plain, shortened
from cachegrind_bench.render.numbers import counted
from cachegrind_bench.render.trend import words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from cachegrind_bench.history.report import Health, Row, Trend
    from cachegrind_bench.history.values import Finding

_MOST_ROWS = 20
_MOST_FINDINGS = 20
_MOST_SUSPECTS = 5
_MOST_NAMES = 10
_LONGEST_NAME = 80


def render(view: Trend, stream: TextIO) -> None:
    """Write the report; what it leaves out for its length it counts."""
    stream.write(f"### {escape(plain(view.provenance.title))}: {escape(words.headline(view.headline))}\n\n")
    stream.write(f"{escape(words.span(view))}\n")
    if view.rows:
        stream.write(f"\n{_table(view)}")
    more = len(view.rows) - _MOST_ROWS
    if more > 0:
        stream.write(f"\n{counted(more, 'more benchmark')} with less impact.\n")
    standing = [item for item in view.findings if item.state in STANDING]
    settled = [item for item in view.findings if item.state not in STANDING]
    for title, items in (("Findings", standing), ("Accepted or recovered", settled)):
        if items:
            stream.write(f"\n**{title}**\n\n")
            stream.writelines(_finding(item, view) for item in items[:_MOST_FINDINGS])
            if len(items) > _MOST_FINDINGS:
                stream.write(f"- and {len(items) - _MOST_FINDINGS} more\n")
    stream.writelines(f"\n> ⚠️ {line}\n" for line in _health(view.health))
    made = f"cg-bench {view.provenance.tool_version}, {view.provenance.created_at}, {view.provenance.store}"
    stream.write(f"\n<sub>{escape(plain(made))}</sub>\n")


def _table(view: Trend) -> str:
    since = f"since {plain(view.release)}" if view.release else "release"
    columns = ("", "benchmark", "latest", "yesterday", "7 days", "30 days", since)
    return table(columns, [_row(row) for row in view.rows[:_MOST_ROWS]])


def _row(row: Row) -> tuple[str, ...]:
    return (
        _sign(row),
        _name(row.id),
        words.compact(row.latest.value) if row.latest is not None else "–",
        *(words.against(item) for item in (row.day, row.week, row.month, row.release)),
    )


def _sign(row: Row) -> str:
    standing = [words.SHAPES[item.kind] for item in row.findings if item.state in STANDING]
    return standing[0] if standing else "✕" if row.failing else "○" if row.missing else ""


def _finding(found: Finding, view: Trend) -> str:
    size = f" {escape(words.size(found))}" if words.has_size(found) else ""
    text = f"- {words.SHAPES[found.kind]} **{escape(_name(found.benchmark))}**{size}, {escape(words.kind(found))}"
    text += f": {escape(words.story(found))}, {escape(words.where(found))}"
    commits = [_commit(sha, view) for sha in found.suspects[:_MOST_SUSPECTS]]
    if len(found.suspects) == 1:
        text += f" {commits[0]}\n"
    else:
        text += "\n" + "".join(f"  - {commit}\n" for commit in commits)
        more = len(found.suspects) - len(commits)
        text += f"  - {f'and {more} more; ' if more else ''}`cg-bench bisect {_code(found.id)}` narrows them down\n"
    if found.reason is not None:
        text += f"  - accepted: {escape(shortened(plain(found.reason), 200))}\n"
    if found.recovered_sha is not None:
        text += f"  - recovered with {_commit(found.recovered_sha, view)}\n"
    return text


def _commit(sha: str, view: Trend) -> str:
    address, note = words.link(view.provenance, sha), view.noted.get(sha)
    code = f"`{_code(words.sha(sha))}`"
    # A pointed bracket ends the address, and a bracket within a name would: both are quoted in it.
    linked = code if address is None else f"[{code}](<{address.replace('<', '%3C').replace('>', '%3E')}>)"
    told = [words.subject(note), ", ".join(part for part in (words.author(note), words.day(note)) if part)]
    return " ".join(
        [linked, *(escape(part) for part in told[:1] if part), *(f"({escape(part)})" for part in told[1:] if part)]
    )


def _health(health: Health) -> list[str]:
    left_out = [
        (health.dirty, "of checkouts with changes"),
        (health.elsewhere, "of commits elsewhere"),
        (health.without_commit, "without a commit"),
    ]
    lines = [
        f"{title}: {_names(names)}"
        for title, names in (("Failing", health.failing), ("Missing", health.missing), ("Unstable", health.unstable))
        if names
    ]
    if health.differing:
        lines.append(f"Repeats differ: {_names([f'{name} at {sha[:12]}' for name, sha in health.differing])}")
    told = ", ".join(f"{counted(number, 'run')} {what}" for number, what in left_out if number)
    return [*lines, f"Left out: {escape(told)}"] if told else lines


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(escape(_name(name)) for name in names[:_MOST_NAMES]) + more


def _name(text: str) -> str:
    return shortened(plain(text), _LONGEST_NAME)


def _code(text: str) -> str:
    """Return text for between backquotes, which has no escapes there."""
    return plain(text).replace("`", "'")
