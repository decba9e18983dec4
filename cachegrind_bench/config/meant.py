"""What somebody may have meant by a text that is almost right: a number with a unit, a list in one text.

Only proposals for messages: nothing of this is taken for what the configuration says.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from cachegrind_bench.config.words import quoted
from cachegrind_bench.errors import UsageError
from cachegrind_bench.model import thresholds

if TYPE_CHECKING:
    from collections.abc import Sequence

_PERCENTAGE = re.compile(r"\+?([0-9]*[.,]?[0-9]+)\s*(?:%+|pct|per\s?cent)?", re.IGNORECASE)
_BOUND = re.compile(r"(.*\w)\s*(?:<=?|=<|==?|≤|:)\s*([0-9][0-9_., ]*)(?:e([0-9]{1,2}))?\s*([kmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def as_words(text: str) -> list[str]:
    """Return the parts of a text between blanks and commas."""
    return re.findall(r"[^\s,]+", text)


def as_list(words: Sequence[str]) -> str:
    """Return a list of texts as it is written in TOML."""
    return f"[{', '.join(map(quoted, words))}]"


def as_variables(text: str) -> list[str]:
    """Return the variables that a text names, or the one that it sets: a value may hold blanks."""
    words = as_words(text)
    return words if "=" not in text or all("=" in word for word in words) else [text]


def meant_percentage(text: str) -> str | None:
    """Return `0.5%` for `0,5%`, and `5%` for `5 percent` or `5`."""
    match = _PERCENTAGE.fullmatch(text.strip())
    return match and f"{match[1].replace(',', '.')}%"


def meant_limit(text: str) -> str | None:
    """Return `Ir=150_000_000` for `Ir<150M`, `Ir=1.5e8` and the like."""
    match = _BOUND.fullmatch(text.strip())
    if match is None:
        return None
    try:
        digits = Fraction(re.sub(r"[_, ]", "", match[2]))
        number = digits * 10 ** int(match[3] or 0) * _UNITS[match[4].lower()]
        meant = f"{match[1]}={int(number):_}"
        thresholds.limit(meant)
    except (ValueError, UsageError):
        return None
    return meant if number.denominator == 1 else None
