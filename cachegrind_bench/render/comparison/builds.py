"""Says that base and candidate were built otherwise: another compiler, other options, other files. It comes before any function."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from cachegrind_bench.compare.pairing import ObjectChange, changed_objects
from cachegrind_bench.compare.verdict import Difference
from cachegrind_bench.model.text import grouped, shortened, some

if TYPE_CHECKING:
    from cachegrind_bench.compare.explain import Details

_MOST, _MOST_FILES, _LONGEST = 3, 5, 300


def other_builds(difference: Difference) -> list[ObjectChange]:
    """Return the executables and libraries that other compilers made, or the same with other options."""
    base, candidate = difference.base, difference.candidate
    if difference.change is None or base is None or candidate is None or base.objects == candidate.objects:
        return []
    return [item for item in changed_objects(base.objects, candidate.objects) if any(item.compilers)]


def build_remarks(difference: Difference) -> list[str]:
    """Say which compilers and options are others."""
    return [
        f"{os.path.basename(item.path)} is built otherwise: {some(_changes(*item.compilers), _MOST)}"
        for item in other_builds(difference)
    ]


def _changes(gone: Sequence[str], new: Sequence[str]) -> list[str]:
    return [shortened(_change(old, now), _LONGEST) for old, now in zip_longest(gone, new)]


def _change(old: str | None, new: str | None) -> str:
    """Return how a compiler changed; of the same one only the options that differ."""
    if old is None or new is None:
        return f"also by {new}" if old is None else f"not by {old}"
    (name, *before), (other, *after) = _words(old), _words(new)
    options = [
        " ".join(word for word in side if word not in there) for side, there in ((before, after), (after, before))
    ]
    if name != other:
        return f"{name} → {other}"
    return f"{name} {' → '.join(option or 'without' for option in options)}"


def _words(compiler: str) -> list[str]:
    """Return the name of a compiler with its version, and its options."""
    name, dash, options = compiler.partition(" -")
    return [name, *f"{dash.strip()}{options}".split()]


def other_build(item: Difference, details: Details | None) -> str | None:
    """Say that base and candidate were built otherwise, where functions are not to blame; None where they may be."""
    if other_builds(item):
        return "another build"
    if details is None:
        return None
    if details.only_build_files:
        return "build files"
    return "functions of one side only" if details.lonely else None


def build_file_remarks(details: Details | None) -> list[str]:
    """Name files of the build that changed between the commits."""
    if details is None or not details.build_files:
        return []
    only = ", and no source file did" if details.only_build_files else ""
    return [f"{some(details.build_files, _MOST_FILES)} changed{only}"]


def lonely_remarks(details: Details | None) -> list[str]:
    """Say that functions do not compare where most of the cost is in those of one side only."""
    if details is None or details.lonely is None:
        return []
    gone, new = details.lonely
    sides = f"{grouped(gone)} of the base and {grouped(new)} of the candidate"
    most = f"most of the cost is in functions of one side only, {sides}, so functions are not compared"
    return [f"the build differs, or the code was written anew: {most}"]
