"""Sizes of an input, and classes of growth, as they are written.

Imports the standard library only: pytest's plugin has to know them where the project's Python has nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, cast, get_args

from cachegrind_bench.errors import UsageError

# Slowest first: of two classes that fit equally well, the first one is chosen.
GrowthClass = Literal["1", "log n", "n", "n log n", "n^1.5", "n²", "n² log n", "n³", "2^n"]
CLASSES: tuple[GrowthClass, ...] = get_args(GrowthClass)
SIZE = "size"  # the name of the parameter
LEAST_SIZES, _MOST_SIZES = 4, 64
LARGEST_SIZE = 10**15

_NUMBER = r"[0-9](?:_?[0-9]){0,40}"
_RANGE = re.compile(rf"({_NUMBER})\s*\.\.\s*({_NUMBER})\s*([x*+])\s*({_NUMBER})", re.ASCII)
_HINT = "as in 1000..64000x2, 10..50+10, or 1000,2000,4000,8000"


def sizes_of(given: object, option: str) -> tuple[int, ...]:
    """Return sizes written as a range (`1000..64000x2`, `10..50+10`) or listed. UsageError, which begins with `option`."""
    if isinstance(given, str):
        match = _RANGE.fullmatch(given.strip())
        words = [word.strip() for word in given.split(",")]
        if match is None and not all(re.fullmatch(f"-?{_NUMBER}", word, re.ASCII) for word in words):
            raise UsageError(
                f"{option} {given[:80]!r} are not sizes: whole numbers, or a range with a step", hint=_HINT
            )
        found = list(map(int, words)) if match is None else _range(match, option)
    elif not isinstance(given, Sequence):
        raise UsageError(f"{option} must be a range or a list", hint=_HINT)
    else:
        values = cast("Sequence[object]", given)
        found = [size for size in values if isinstance(size, int) and not isinstance(size, bool)]
        if len(found) < len(values):
            raise UsageError(f"{option} must be whole numbers", hint=_HINT)
    wrong = next((size for size in found if not 1 <= size <= LARGEST_SIZE), None)
    if wrong is not None:
        instead = f", not {wrong}" if abs(wrong) < LARGEST_SIZE**3 else ""  # Python does not write thousands of digits
        raise UsageError(f"{option} must be from 1 to {LARGEST_SIZE:,}{instead}", hint=_HINT)
    if any(later <= size for size, later in pairwise(found)):
        raise UsageError(f"{option} must ascend: {', '.join(map(str, found[:10]))}", hint=_HINT)
    if not LEAST_SIZES <= len(found) <= _MOST_SIZES:
        raise UsageError(
            f"{option} must be {LEAST_SIZES} to {_MOST_SIZES} numbers, not {len(found)}: fewer do not show a class of growth",
            hint=_HINT,
        )
    return tuple(found)


def _range(match: re.Match[str], option: str) -> list[int]:
    first, last, by = (int(match[place]) for place in (1, 2, 4))
    if by < 1 + (match[3] != "+"):
        raise UsageError(f"{option} {match[0]!r} never gets from {first} to {last}", hint=_HINT)
    found: list[int] = []
    while first <= last and len(found) <= _MOST_SIZES:
        found.append(first)
        first = first + by if match[3] == "+" else first * by
    return found


def class_of(text: str, option: str) -> GrowthClass:
    """Return the class that is written so, as in `n log n`, `O(n^2)` or `n*log(n)`. UsageError."""
    plain = re.sub(r"[\s*()·]|^O(?=\()", "", text.strip()).replace("log2", "log").replace("**", "^")
    plain = plain.replace("²", "^2").replace("³", "^3")
    known = [name.replace(" ", "").replace("²", "^2").replace("³", "^3") for name in CLASSES]
    if plain not in known:
        raise UsageError(f"{option} {text[:80]!r} is not a class of growth", hint=f"one of: {', '.join(CLASSES)}")
    return CLASSES[known.index(plain)]
