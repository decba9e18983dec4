"""Text for the eye: stripped of what hostile names could do to a terminal or a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)


def plain(text: str) -> str:
    """Return text without control characters, invisible ones and direction marks, which stand escaped instead."""
    return _CONTROL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def some(names: Sequence[str], most: int) -> str:
    """Return the first of these names, and how many more there are, as in `a, b and 3 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def shortened(text: str, length: int) -> str:
    """Return text of at most this many characters, cut in its middle: C++ names run to thousands."""
    if len(text) <= length:
        return text
    tail = length // 3
    return f"{text[: length - tail - 1]}…{text[len(text) - tail :]}"
