"""Functions to count, by their names in the source: finds the names that C++ and Rust programs have for them.

Callgrind knows the names of the symbol table only. Those are searched for in the bytes of the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from cachegrind_bench.model.text import matches

_LONGEST = 4096
_MOST = 1000
_MOST_BYTES = 1 << 30
_WORD = re.compile(r"[A-Za-z_]\w+", re.ASCII)
_NAME, _START = re.compile(r"[\w.$]+", re.ASCII), re.compile("(?=_[ZR])")
# What a mangled name has an abbreviation or another word for.
_UNSPELLED = frozenset(("std", "operator", "closure", "lambda", "anonymous", "namespace", "impl", "const", "as", "dyn"))
# Brackets that are not those of parameters.
_PART_OF_NAME = re.compile(r"\(anonymous namespace\)|\boperator\(\)")
_BRACKETS = {"<": 1, "(": 1, "[": 1, "{": 1, ">": -1, ")": -1, "]": -1, "}": -1}


def symbols(program: str, patterns: Sequence[str]) -> tuple[str, ...]:
    """Return these patterns, and the mangled names of functions in this program whose names in the source match one.

    A name may be written without parameters, and that of a template without the result and its arguments.
    """
    from cachegrind_bench.valgrind.demangling import demangled

    found = {
        name
        for pattern in patterns
        for name in _named(program, pattern)
        if any(matches(form, pattern) for form in _forms(demangled(name)))
    }
    return (*patterns, *sorted(found)[:_MOST])


def _named(program: str, pattern: str) -> Iterator[str]:
    """Yield the mangled names in this file that have the longest word of a pattern; none for one that has no word."""
    words = [word for word in _WORD.findall(_masked(pattern).partition("(")[0]) if word not in _UNSPELLED]
    if not words:
        return
    word = max(words, key=len).encode()
    data = b""
    with suppress(OSError), open(program, "rb") as file:
        data = file.read(_MOST_BYTES)
    at = data.find(word)
    while at >= 0:
        start, end = data.rfind(b"\0", max(at - _LONGEST, 0), at), data.find(b"\0", at, at + _LONGEST)
        text = data[start + 1 : end].decode("ascii", "replace")
        if start >= 0 and _NAME.fullmatch(text) and ".cold" not in text:
            # The linker stores a name that another one ends with only once, as the end of that.
            yield from (text[found.start() :] for found in _START.finditer(text))
        at = data.find(word, max(end, at + 1))


def _masked(name: str) -> str:
    """Return a name of the same length whose first parenthesis, if any, begins its parameters."""
    return _PART_OF_NAME.sub(lambda match: "-" * len(match[0]), name)


def _forms(name: str) -> Iterator[str]:
    """Yield a function's name in the source as it may be written: whole, without parameters, result and template's arguments."""
    yield name
    depth, start, end, plain = 0, 0, len(name), 0
    for place, sign in enumerate(_masked(name)):
        if sign == "(" and not depth and place:
            end = min(end, place)
        if sign == "<" and not depth and place < end:
            plain = place
        depth += _BRACKETS.get(sign, 0)
        if sign == " " and not depth and place < end:
            start = place + 1
    yield name[:end]
    yield name[start:end]
    yield name[start:plain] if name[:end].endswith(">") else ""
