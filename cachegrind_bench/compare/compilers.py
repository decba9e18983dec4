"""Which compilers made one of two builds, and not the other, as executables and libraries say it."""

from __future__ import annotations

import re
from collections.abc import Sequence

_VERSIONS = re.compile(r"\b\d+\.\d+\.\d+\b")
_OF_NO_CODE = re.compile(r" -(?:g(?:-?\w)*|fdiagnostics\S*|frecord\S*)(?= |$)")  # options that change no instruction
# What `.comment` says of GCC has no options, and is in every program: the files that a program starts with are GCC's.
_COMMENT, _LINKER = "GCC: ", "Linker: "


def other_compilers(base: Sequence[str], candidate: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the compilers of the base alone, and of the candidate alone; none where those of a side are unknown."""
    ours, theirs = _of_its_code(base), _of_its_code(candidate)
    if not ours or not theirs:
        return (), ()
    gone = tuple(text for text in ours if not any(_is_same(text, other) for other in theirs))
    return gone, tuple(text for text in theirs if not any(_is_same(text, other) for other in ours))


def _of_its_code(compilers: Sequence[str]) -> list[str]:
    found = [*dict.fromkeys(_OF_NO_CODE.sub("", text) for text in compilers)]
    only_comments = all(text.startswith((_COMMENT, _LINKER)) for text in found)
    return [text for text in found if only_comments or not text.startswith(_COMMENT)]


def _is_same(one: str, other: str) -> bool:
    """Return whether both are one compiler with the same options, or one of them does not say these."""
    if one == other or not any(text.startswith(_COMMENT) for text in (one, other)):
        return one == other
    return not {*_VERSIONS.findall(one)}.isdisjoint(_VERSIONS.findall(other))
