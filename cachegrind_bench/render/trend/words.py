"""The words of a trend report that its renderings share: the headline, a change, what was found and where. Plain text."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import msgspec

from cachegrind_bench.history.growth import EXPONENT
from cachegrind_bench.history.lifecycle import times_of
from cachegrind_bench.history.values import (
    ACTIVE,
    WORSE,
    Against,
    Finding,
    Headline,
    Health,
    Kind,
    Provenance,
    Row,
    State,
    Trend,
    is_active,
    is_suspicious,
    relative,
)
from cachegrind_bench.model.text import change, counted, grouped, joined, plain, shortened, some

if TYPE_CHECKING:
    from fractions import Fraction

    from cachegrind_bench.model.result import CommitNote

SHAPES = {Kind.REGRESSION: "▲", Kind.IMPROVEMENT: "▼", Kind.CREEP: "◆", Kind.UNSTABLE: "≈"}
STATES = {
    State.NEW: "new",
    State.OPEN: "open",
    State.ACKNOWLEDGED: "accepted",
    State.RECOVERED: "recovered",
    State.OUTDATED: "outdated",
}
_LONGEST_NAME = 80
_LONGEST_PATTERN = 400
_LONGEST_AUTHOR = 60
_LONGEST_SUBJECT = 100
_MOST_NAMES = 10
_FEW = 100
_SMALLEST_SHOWN = 10_000  # a change of less than one part in this many is shown as about none


def headline(found: Headline) -> str:
    """Return what a person reads first, as one sentence."""
    if not found.measured:
        return "Nothing was measured at these commits"
    creeping = found.creeping if found.creeping > found.new_creep else 0
    old = ((found.open, "still open"), (creeping, "creeping"), (found.recovered, "recovered"))
    better = ((found.improved, "improvement"), (found.suspicious, "suspicious drop"))
    parts = _news(found) or [f"Nothing got worse {since(found)}"]
    parts += (f"{grouped(number)} {what}" for number, what in old if number)
    parts += (counted(number, noun) for number, noun in better if number)
    return ", ".join(parts)


def _news(found: Headline) -> list[str]:
    """Return what got worse, and is news; a single reading may be an outlier."""
    numbers = ((found.new, "new regression"), (found.possible, "possible regression"))
    news = [counted(number, noun) for number, noun in numbers if number]
    return [*news, *([f"{grouped(found.new_creep)} newly creeping"] if found.new_creep else [])]


def verdict(found: Headline) -> str:
    """Return what is new since the last report, as one sentence for a heading: the rest is in the tiles below."""
    new = [*_news(found), *([counted(found.improved, "new improvement")] if found.improved else [])]
    text = joined(new)
    return text[:1].upper() + text[1:] if text else f"Nothing new {since(found)}"


def since(found: Headline) -> str:
    """Return since when what is new is new."""
    return "since the last report" if found.compared else "within a day of the newest commit"


def short_change(share: Fraction) -> str:
    """Return a relative change for a narrow cell: 0 only where nothing changed, and no tail of digits."""
    if share and abs(share) * _SMALLEST_SHOWN < 1:
        return "≈ 0 %"
    return change(round(share, 5) if abs(share) < 1 else share)


def against(item: Against | None) -> str:
    """Return how the latest reading compares with an earlier one."""
    if item is None or item.base is None:
        return "–"
    if not item.comparable:
        return "other key"
    return change(None) if item.change is None else short_change(item.change)


def subject(note: CommitNote | None) -> str:
    """Return the first line of a commit's message, at a bounded length."""
    return _short(note.subject, _LONGEST_SUBJECT) if note is not None else ""


def author(note: CommitNote | None) -> str:
    """Return who wrote a commit, at a bounded length."""
    return _short(note.author, _LONGEST_AUTHOR) if note is not None else ""


def _short(text: str, most: int) -> str:
    """Return text that hides nothing, at a bounded length; what is cut off anyway is not looked at."""
    return shortened(plain(text[: 2 * most]), most)


def day(note: CommitNote | None) -> str:
    """Return when a commit was made, as 2026-01-31."""
    return plain(note.committed_at[:10]) if note is not None else ""


def sha(text: str) -> str:
    """Return a commit's name as short as it stays clear."""
    return plain(text[:12])


def link(provenance: Provenance, commit: str) -> str | None:
    """Return the address of a commit, if there is one and it is of the web: others could run script."""
    pattern = provenance.commit_url
    if pattern is None or "{sha}" not in pattern:
        return None
    address = pattern.replace("{sha}", quote(commit, safe=""))
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    printable = all(character.isprintable() and not character.isspace() for character in address)
    return address if parts.scheme in {"http", "https"} and parts.netloc and printable else None


def value_name(model: str) -> str:
    """Return what the values of this cost model are."""
    return EXPONENT if model == EXPONENT else "instructions" if model == "ir" else "score"


def span(report: Trend) -> str:
    """Return what the report is about: branch, time and number of commits."""
    commits = report.commits
    parts = [plain(report.provenance.branch) if report.provenance.branch else ""]
    if commits:
        times = times_of(commits)
        parts.append(f"{times[0]:%Y-%m-%d} to {times[-1]:%Y-%m-%d}")
    parts.append(f"{counted(len(commits), 'commit')}, {grouped(report.measured)} measured")
    return " · ".join(part for part in parts if part)


def is_young(report: Trend) -> bool:
    """Return whether no benchmark has a reading to compare with: of a day, a week, a month or a release ago."""
    past = (item for row in report.rows for item in (row.day, row.week, row.month, row.release))
    return all(item is None or item.base is None for item in past)


def since_first(row: Row) -> Against | None:
    """Return the latest reading next to the first one within these commits."""
    if row.latest is None:
        return None
    first = next((reading for reading in row.readings if reading.index < row.latest.index), None)
    return Against(base=first, latest=row.latest)


def levels(item: Against | None) -> str:
    """Return both levels of a comparison, or the one there is."""
    if item is None:
        return "–"
    latest = compact(item.latest.value)
    return latest if item.base is None else f"{compact(item.base.value)} → {latest}"


def columns(report: Trend) -> tuple[str, ...]:
    """Return the headings of the table of benchmarks."""
    if is_young(report):
        return "", "benchmark", "first → latest", "change"
    since = f"since {plain(report.release)}" if report.release else "release"
    return "", "benchmark", "latest", "yesterday", "7 days", "30 days", since


def cells(row: Row, *, young: bool) -> tuple[str, ...]:
    """Return one benchmark as a row of that table, that of a young history if it is one."""
    standing = [SHAPES[item.kind] for item in row.findings if item.state in ACTIVE]
    first, past = since_first(row), (row.day, row.week, row.month, row.release)
    latest = compact(row.latest.value) if row.latest is not None else "–"
    return (
        standing[0] if standing else "✕" if row.failing else "○" if row.missing else "",
        name(row.id),
        *((levels(first), against(first)) if young else (latest, *map(against, past))),
    )


def chapters(report: Trend) -> list[tuple[str, list[Finding]]]:
    """Return the findings under their titles: what asks for a decision before what is settled."""
    standing = [item for item in report.findings if is_active(item)]
    settled = [item for item in report.findings if not is_active(item)]
    return [(title, items) for title, items in (("Findings", standing), ("Settled", settled)) if items]


def accepting(report: Trend) -> list[str]:
    """Return how an intended change is accepted, and the lines of TOML to copy; nothing where there is no such change."""
    found = next((item for item in report.findings if is_active(item) and item.kind in WORSE and item.suspects), None)
    if found is None:
        return []
    return [
        "Was one intended? Accept it in cg-bench-accepted.toml:",
        "[[accepted]]",
        f"benchmark = {_pattern(found.benchmark)}",
        f'commit = "{sha(found.suspects[-1])}"',
        'reason = "…"',
    ]


def _pattern(benchmark: str) -> str:
    """Return what matches this benchmark as a text of TOML, which has an escape for each character that nobody sees."""
    text = benchmark if len(benchmark) <= _LONGEST_PATTERN else f"{benchmark[:_LONGEST_PATTERN]}*"
    text = re.sub(r'(["\\])', r"\\\1", text)
    shown = (char if char.isprintable() and plain(char) == char else f"\\U{ord(char):08x}" for char in text)
    return f'"{"".join(shown)}"'.replace("##[", r"##\u005b")


def described(note: CommitNote | None) -> list[str]:
    """Return a commit's subject, and its author and day in brackets, as far as they are known."""
    by = ", ".join(part for part in (author(note), day(note)) if part)
    return [part for part in (subject(note), f"({by})" if by else "") if part]


def health(found: Health) -> list[str]:
    """Return what weakens the report, a line for each sort."""
    left_out = (
        (found.dirty, "of checkouts with changes"),
        (found.elsewhere, "of commits elsewhere"),
        (found.without_commit, "without a commit"),
    )
    names = (
        ("Failing", found.failing),
        ("Missing", found.missing),
        ("No longer measured", found.retired),
        ("Unstable", found.unstable),
        ("Repeats differ", [f"{item.benchmark} at {item.sha[:12]}" for item in found.differing]),
    )
    lines = [f"{title}: {some(list(map(name, these)), _MOST_NAMES)}" for title, these in names if these]
    runs = ", ".join(f"{counted(number, 'run')} {what}" for number, what in left_out if number)
    return [*lines, *([f"Left out: {runs}"] if runs else [])]


def name(text: str) -> str:
    """Return a benchmark's name, at a bounded length."""
    return _short(text, _LONGEST_NAME)


def base(item: Against | None, report: Trend) -> str:
    """Return what the latest reading is compared with, for a title."""
    if item is None or item.base is None:
        return "no earlier reading"
    note = report.noted.get(item.base.sha)
    other = "" if item.comparable else " under another comparability key"
    return f"{grouped(item.base.value)} at {sha(item.base.sha)} of {day(note)}{other}"


def compact(number: int) -> str:
    """Return 2838599 as 2.84 M: three digits."""
    for factor, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= factor:
            return f"{number / factor:,.{max(0, 3 - len(str(number // factor)))}f} {unit}"
    return str(number)


# --- A single finding ----------------------------------------------------------------------------------------------------


def size(found: Finding) -> str:
    """Return how much the level changed, after a space; nothing where there is not one change to speak of."""
    if found.kind is Kind.UNSTABLE:
        return ""
    return f" {short_change(relative(found.before, found.after))}" if found.before else " from 0"


def kind(found: Finding) -> str:
    """Return what was found and where it is in its life, in a few words."""
    if found.kind is Kind.UNSTABLE:
        return "unstable" if found.state is not State.RECOVERED else "steady again"
    if found.kind is Kind.IMPROVEMENT and found.state is State.RECOVERED:
        return "improvement, lost again"
    sure = "" if found.confirmed else ", after only one reading" if found.lone_base else ", one reading so far"
    doubt = ", does it still do its work?" if is_suspicious(found) else ""
    known = found.kind is Kind.IMPROVEMENT and found.state is State.OPEN
    return f"{'' if known else f'{STATES[found.state]} '}{found.kind.value}{doubt}{sure}"


def ended(found: Finding) -> str:
    """Return the words in front of the commit at which the level was back."""
    return "lost with" if found.kind is Kind.IMPROVEMENT else "recovered with"


def story(found: Finding) -> str:
    """Return the levels before and after, or what makes a benchmark unstable."""
    if found.kind is Kind.UNSTABLE:
        return f"jumps between about {grouped(found.before)} and {grouped(found.after)}: no alarms are raised"
    return f"{grouped(found.before)} → {grouped(found.after)}"


class Blame(msgspec.Struct, frozen=True):
    """Who may be behind a finding: words in front of these commits, how many more there are, and whether bisect helps."""

    words: str
    commits: tuple[str, ...]
    more: int = 0
    bisectable: bool = False


def blame(found: Finding, most: int) -> Blame:
    """Return at most `most` of the suspects, as it suits what was found."""
    suspects = found.suspects
    if found.kind is Kind.UNSTABLE:
        return Blame("since", suspects[:1]) if suspects else Blame("from the first reading on", ())
    if len(suspects) <= 1:
        return Blame("with", suspects)
    number = counted(len(suspects), "commit")
    if found.kind is Kind.CREEP:
        return Blame(f"little by little, in {number}, of which the first and the last are", (suspects[0], suspects[-1]))
    return Blame(f"with one of {number}:", suspects[:most], max(len(suspects) - most, 0), bisectable=True)


def moves(report: Trend) -> dict[str, str]:
    """Return by the id of a finding which counts changed with it, as far as its readings are shown."""
    found = {item.id: _moved(item, row) for row in report.rows for item in row.findings}
    return {name: text for name, text in found.items() if text}


def _moved(found: Finding, row: Row) -> str:
    """Return which counts changed with a step: it distinguishes work from caches."""
    same = [reading for reading in row.readings if reading.key == found.key]
    pairs = ((then.counts, now.counts) for then, now in pairwise(same) if now.index == found.index)
    before, after = next(pairs, (None, None)) if found.is_step else (None, None)
    if before is None or after is None:
        return ""
    counts = {"Ir": (before.Ir, after.Ir)}
    if before.with_caches and after.with_caches:
        counts |= {"LL hits": (before.ll_hits, after.ll_hits), "RAM hits": (before.ram_hits, after.ram_hits)}
    return ", ".join(f"{what} {_of_counts(*both)}" for what, both in counts.items())


def _of_counts(before: int, after: int) -> str:
    """Return how a count changed; a percentage of a few says nothing."""
    if before == after or before >= _FEW:
        return short_change(relative(before, after))
    return f"{grouped(before)} → {grouped(after)}"
