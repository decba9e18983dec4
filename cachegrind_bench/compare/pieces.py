"""Puts functions together again: code inlined into one stands in rows of its own, under the files it came from.

Knows how source files are called that others include; must not know how rows are matched.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.model.metrics import ZERO
from cachegrind_bench.model.symbols import MANGLED, UNKNOWN, folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cachegrind_bench.compare.explain import FunctionDelta

    _Key = tuple[str, str]  # file and name of a row

_INCLUDED = re.compile(r"\.(?:h|hh|hpp|hxx|h\+\+|inl|inc|ipp|tcc|tpp|def)$|(?:^|/)include/|^/rustc/|(?:^|/)registry/")

_LOCAL = re.compile(r"_GLOBAL__N_|_ZL|L[0-9]")  # anonymous namespaces, and static functions


def joined(functions: Sequence[FunctionDelta], base: Iterable[_Key], candidate: Iterable[_Key]) -> list[FunctionDelta]:
    """Return the functions with the pieces of each as one; their sum stays the same.

    `base` and `candidate` are all rows of the profiles: a name that is local to a file need not be unique, so only they
    show whether two rows of one name are two functions. Mangled names that are not local are unique.
    """
    pieces = defaultdict[str, list["FunctionDelta"]](list)
    for row in functions:
        pieces[folded(row.name)].append(row)
    several = {name: rows for name, rows in pieces.items() if len(rows) > 1 and name != UNKNOWN}
    names = {key[1] for rows in several.values() for row in rows for key in (*row.base_keys, *row.candidate_keys)}
    homes = [_homes(side, names) for side in (base, candidate)]
    found: list[FunctionDelta] = []
    for name, rows in pieces.items():
        whole = name in several and (_global(rows) or all(len(side.get(name, ())) <= 1 for side in homes))
        found += [_one(rows)] if whole else rows
    return found


def _global(rows: Sequence[FunctionDelta]) -> bool:
    return all(row.name.startswith(MANGLED) and not _LOCAL.search(row.name) for row in rows)


def _homes(rows: Iterable[_Key], names: set[str]) -> Mapping[str, set[str]]:
    """Return the files in which functions of these names are defined, by folded name: those nobody includes."""
    homes = defaultdict[str, set[str]](set)
    for file, name in rows:
        if name in names and file != UNKNOWN and not _INCLUDED.search(file):
            homes[folded(name)].add(file)
    return homes


def _one(rows: Sequence[FunctionDelta]) -> FunctionDelta:
    """Add the pieces up, under the file where most is spent of those that are not included."""

    def importance(row: FunctionDelta) -> tuple[bool, bool, int, str]:
        here = bool(row.candidate_keys)
        return not _INCLUDED.search(row.file), here, row.base.Ir + row.candidate.Ir, row.file

    first = max(rows, key=importance)
    return replace(
        first,
        base=sum((row.base for row in rows), ZERO),
        candidate=sum((row.candidate for row in rows), ZERO),
        base_keys=tuple(sorted(key for row in rows for key in row.base_keys)),
        candidate_keys=tuple(sorted(key for row in rows for key in row.candidate_keys)),
    )
