"""What misses of CPython's method cache explain of a change: which look-ups share an entry is decided by addresses.

A miss looks the name up in the dictionary of each base class. On two arrangements of the same code this has moved
benchmarks by up to 8 % (docs/memory-layouts.md).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from cachegrind_bench.model.metrics import ZERO, Counts

if TYPE_CHECKING:
    from cachegrind_bench.model.metrics import Profile

# Objects/typeobject.c and dictobject.c, CPython 3.11 to 3.14: what a miss executes, and what does nothing else but that.
_MISS = "find_name_in_mro"
_ITS_CALLEES = frozenset({
    "_PyType_Lookup",
    "_PyType_LookupRef",
    "assign_version_tag",
    "_PyDict_GetItem_KnownHash",
    "_PyDict_GetItemRef_KnownHash",
    "_Py_dict_lookup",
    "unicodekeys_lookup_unicode",
    "unicodekeys_lookup_generic",
    "PyErr_Occurred",
})  # fmt: skip
# Instructions of all of these for one of `_MISS`: 4.3 to 6.3 on 3.11. Dictionaries that are used for more than misses
# execute others.
_MOST_FOR_A_MISS = 8
# What gives types new versions: misses come from the code itself where it does so more often.
_INVALIDATES = frozenset({"PyType_Modified", "PyType_Modified_Unlocked", "type_modified_unlocked"})
_MOST = Fraction(1, 10)


def but_for_misses(base: Profile, candidate: Profile) -> Counts | None:
    """Return what the candidate would have cost with as many misses as the base; None where they explain nothing."""
    before, after = _costs(base), _costs(candidate)
    misses = after.pop(_MISS, ZERO) - before.pop(_MISS, ZERO)
    if any(after.get(name, ZERO).Ir > before.get(name, ZERO).Ir for name in _INVALIDATES):
        return None
    names = _ITS_CALLEES & (before.keys() | after.keys())
    explained = sum((after.get(name, ZERO) - before.get(name, ZERO) for name in names), misses)
    whole = base.counts()
    if not 0 < Fraction(explained.Ir, misses.Ir or 1) <= _MOST_FOR_A_MISS or abs(explained.Ir) > whole.Ir * _MOST:
        return None
    return candidate.counts() - explained


def _costs(profile: Profile) -> dict[str, Counts]:
    found: dict[str, Counts] = {}
    for row in profile.functions:
        name = row.name.partition(".")[0]  # compilers append .isra.0 and the like
        if name == _MISS or name in _ITS_CALLEES or name in _INVALIDATES:
            cost = Counts.from_mapping(dict(zip(profile.events, row.counts, strict=True)))
            found[name] = found.get(name, ZERO) + cost
    return found
