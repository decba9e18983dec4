"""Words for messages: what a value is called, how it should have been written, which known word is nearest."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

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
