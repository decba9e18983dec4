"""Words for messages: what a value is called, how it should have been written, which known word is nearest.

Nothing proposed here is taken for what the configuration says.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (str, "a text"),
    (int, "a whole number"),
    (float, "a number"),
    (dict, "a table"),
    (list, "a list"),
)


def nearest(word: str, known: Mapping[str, str]) -> str | None:
    """Return what the nearest of these words stands for, whatever its case, dashes and underscores."""

    def folded(text: str) -> str:
        return text.lower().replace("_", "-")

    plain = {folded(text): meant for text, meant in known.items()}
    found = difflib.get_close_matches(folded(word), plain, n=1)
    return plain[found[0]] if found else None


def word_for(value: object) -> str:
    """Return what a value is, as a sentence calls it."""
    return next((word for kind, word in _KINDS if isinstance(value, kind)), "a date or time")


def named(value: object) -> str:
    """Return a value for a sentence: itself where that is short, else what it is."""
    return f"the text {quoted(value)}" if isinstance(value, str) else text_of(value) or word_for(value)


def text_of(value: object) -> str | None:
    """Return a text, number or truth value as text; None for anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None


def quoted(value: object) -> str:
    """Return a value as the TOML text it should have been."""
    text = text_of(value)
    return '"…"' if text is None else json.dumps(text, ensure_ascii=False)


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
    """Return `0.5%` for `0,5%`, and `5%` for `5 percent` or `5`; what is before an = stays."""
    pattern, equals, number = text.rpartition("=")
    match = _PERCENTAGE.fullmatch(number.strip())
    return match and f"{pattern}{equals}{match[1].replace(',', '.')}%"


def meant_limit(text: str) -> str | None:
    """Return `Ir=150_000_000` for `Ir<150M`, `Ir=1.5e8` and the like."""
    match = _BOUND.fullmatch(text.strip())
    if match is None:
        return None
    try:
        digits = Fraction(re.sub(r"[_, ]", "", match[2]))
    except ValueError:
        return None
    number = digits * 10 ** int(match[3] or 0) * _UNITS[match[4].lower()]
    return f"{match[1]}={int(number):_}" if number.denominator == 1 else None
