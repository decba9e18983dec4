"""Names and numbers as text: grouped, rounded, without what hostile names could do to a terminal; and patterns of names."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

LONGEST_CELL = (
    1_000  # characters in a table or a line: a hostile name may have a million, and each row would be as wide
)
_UNSEEN = (
    "\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
_CONTROL = re.compile(
    f"[\x00-\x1f{_UNSEEN}]"
    r"|(?<=##)\["  # `##[name]` is a command in the log of a GitHub job, as is `::name::` at the beginning of a line
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}", re.ASCII)


def plain(text: str) -> str:
    """Return text without control characters, invisible ones, direction marks and commands in a job's log, which are escaped instead."""
    text = _CONTROL.sub(_escaped, text)
    return text.replace(":", r"\x3a", 1) if text.lstrip().startswith("::") else text


def plain_json(text: str) -> str:
    """Return JSON, whose strings have no other control characters, with what else `plain` escapes as JSON escapes it."""
    import json  # few have such

    if text.isascii() and "\x7f" not in text and "##[" not in text:
        return text
    return re.sub(
        rf"[{_UNSEEN}]|(?<=##)\[",
        lambda match: json.dumps(match[0])[1:-1].replace("[", r"\u005b").replace("\x7f", r"\u007f"),
        text,
    )


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def in_line(text: str) -> str:
    """Return such text of a length that one can read."""
    return shortened(plain(shortened(text, LONGEST_CELL)), LONGEST_CELL)


def printable(text: str | bytes | os.PathLike[str]) -> str:
    """Return text that may hold undecodable bytes of a path as UTF-8, with these bytes as escapes."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def without_password(url: str) -> str:
    """Return the URL of a store or remote as it may be shown: of what may hold a password, only the scheme.

    Where a password ends is not known of a URL that is wrong.
    """
    scheme, colon, rest = url.partition(":")
    if not colon:
        return "…" if "@" in url else url
    if scheme == "file":
        hiding = rest.startswith("//") and "@" in rest
    else:
        pattern = r"(?s)^[^:]*:.*@|[?&#]" if scheme in {"git", "sqlite"} else r"[:@?&#]"
        hiding = re.search(pattern, rest) is not None
    if not hiding:
        return url
    return f"{scheme}:…" if _SCHEME.fullmatch(scheme) else "…"


def some(names: Sequence[str], most: int) -> str:
    """Return the first of these names, and how many more there are, as in `a, b and 3 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def joined(texts: Sequence[str]) -> str:
    """Return texts as in `a, b and c`."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def common_start(ids: Sequence[str]) -> str:
    """Return the folders, file or module that all of several ids begin with; nothing if one of them has no more than that."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(min(ids), max(ids), strict=False)) if len(ids) > 1 else ()
    start = "".join(letter for letter, _ in same).partition("[")[0]
    start = start[: max(start.rfind("/") + 1, start.rfind("::") + 2 if "::" in start else 0)]
    return "" if start in ids else start


def below(path: str, folder: str) -> str:
    """Return a path relative to this absolute folder if it is below it, else without the steps back within it."""
    plain = posixpath.normpath(path) if 0 < len(path) <= LONGEST_CELL else path
    return plain.removeprefix(f"{folder}/") if folder else plain


def matches(benchmark_id: str, pattern: str) -> bool:
    """Return whether an id is exactly this, or fits its `*` and `?`; brackets are literal, since ids contain them."""
    return benchmark_id == pattern or fnmatch.fnmatchcase(benchmark_id, pattern.replace("[", "[[]"))


def shortened(text: str, length: int) -> str:
    """Return text of at most this many characters, cut in its middle: C++ names run to thousands."""
    if len(text) <= length:
        return text
    tail = length // 3
    return f"{text[: length - tail - 1]}…{text[len(text) - tail :]}"


def shortened_path(path: str, length: int) -> str:
    """Return a path of at most this many characters, without folders in its middle; its end, which says most, is kept."""
    if len(path) <= length:
        return path
    rest = path.split("/", 2 if path.startswith("/") else 1)[-1]
    first = path[: len(path) - len(rest)]
    place = rest.find("/", max(len(rest) - max(length - len(first) - 1, 0), 0))
    return f"…{path[1 - length :]}" if place < 0 else f"{first}…{rest[place:]}"


_NUMBER = re.compile(r"[+-]?[0-9][0-9,.]*(?: %)?", re.ASCII)


def name_or_path(text: str, length: int) -> str:
    """Return a name, or a path, of at most this many characters."""
    return (shortened_path if "/" in text and " " not in text else shortened)(text, length)


def grouped(number: int) -> str:
    """Return 1234567 as 1,234,567."""
    return f"{number:,}"


def counted(count: int, noun: str) -> str:
    """Return a number of things, as 1 run or 2,345 runs."""
    return f"{grouped(count)} {noun}{'' if count == 1 else 's'}"


def share(part: int, whole: int) -> str:
    """Return a part of a whole in percent, as 12.3 %."""
    return f"{round(100 * part / whole, 1) + 0.0:.1f} %" if whole else "-"  # + 0.0: no -0.0


def is_worth_a_row(part: int, whole: int) -> bool:
    """Return whether this is at least half a percent of the whole change, or all cancels out."""
    return 200 * abs(part) >= abs(whole)


def spread(low: int, high: int) -> str:
    """Return how far apart two counts of one thing are, (high - low) / low, in percent; exactly 0 only if equal."""
    if low == high:
        return "0"
    if not low:
        return "-"
    percent = 100 * (high - low) / low
    return f"{percent:.2g} %" if percent < 99.5 else f"{percent:,.0f} %"


def duration(milliseconds: int) -> str:
    """Return 1234 as 1.2 s, 75000 as 1 min 15 s."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes} min {seconds:02} s"


def rough_duration(milliseconds: int) -> str:
    """Return 1234 as 1 s, 75000 as 1 min 15 s, and what is less than a second as 1 s: an estimate is not more exact."""
    seconds = max(1, round(milliseconds / 1000))
    return f"{seconds} s" if seconds < 60 else duration(1000 * seconds)


def signed(number: int) -> str:
    """Return a difference as +1,234, -1,234 or 0."""
    return f"{number:+,}" if number else "0"


def change(share: Fraction | None, digits: int = 3) -> str:
    """Return a relative difference in percent, as +1.23 %, -0.00046 % or 0 %; 0 only where nothing changed.

    From nothing (None) no percentage leads to something.
    """
    if share is None:
        return "from 0"
    return f"{'+' if share > 0 else ''}{percent(share, digits)}"


def percent(share: Fraction, digits: int = 3) -> str:
    """Return a share in percent with this many significant digits, as 0.5 %, 12.3 % or 1,234 %."""
    value = 100 * float(share)
    if abs(value) >= 999.5:
        return f"{value:,.0f} %"
    text = f"{value:.{digits}g}"
    if "e" in text:
        text = f"{value:.{max(1 - int(text.partition('e')[2]), 0)}f}"
    return f"{text} %"


def factor(ratio: Fraction) -> str:
    """Return how many times something is something else, with two digits at least: 0.37, 2.8 or 12."""
    return f"{float(ratio):.2g}" if ratio < 10 else f"{float(ratio):,.0f}"


def exact_percent(share: Fraction) -> str:
    """Return a share with all its digits where somebody wrote it down, as 1.585 %; one that was computed as `percent` does."""
    is_written = (share * 10**8).denominator == 1
    return f"{float(100 * share):.9g} %" if is_written else percent(share)


def is_number(cell: str) -> bool:
    """Return whether a cell of a table is nothing but a number or a percentage, which is aligned to the right."""
    return _NUMBER.fullmatch(cell) is not None
