"""Which Python function of the base is which of the candidate, although lines moved and packages lie elsewhere.

Swapping base and candidate gives the same pairs, swapped. Must not know what the functions cost.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cachegrind_bench.model.python_profile import PythonFunction

    _Key = Callable[[PythonFunction], object]  # None for a function that must not be paired by it

_OF_A_FOLDER = frozenset({"__init__.py", "__main__.py"})  # names that tell nothing without the folder's


class Pairs(msgspec.Struct, frozen=True, kw_only=True):
    """A number for each function of either side, in their order; those that are one function have the same."""

    base: tuple[int, ...]
    candidate: tuple[int, ...]


def pair_functions(base: Sequence[PythonFunction], candidate: Sequence[PythonFunction]) -> Pairs:
    """Pair functions of equal file and name, then of what is left those of one name whose paths end alike.

    The longest common end goes first, and only where it is one file on each side; last come names that are left in one
    file on each side. Several of one name in one file (a property's getter and setter, lambdas) are paired in the order
    of their lines.
    """
    ours, theirs = (dict(enumerate(dict.fromkeys(side))) for side in (base, candidate))
    before, after = ({function: index for index, function in side.items()} for side in (ours, theirs))
    partner: dict[int, int] = {}  # the base's index by the candidate's
    _take(ours, theirs, partner, lambda item: item)
    _take(ours, theirs, partner, lambda item: (item.file, item.name))
    longest = max((item.file.count("/") + 1 for item in ours.values()), default=0)
    for parts in range(longest, 0, -1):
        _take(ours, theirs, partner, partial(_end, parts=parts), one_file=True)
    _take(ours, theirs, partner, _own_name, one_file=True)
    numbers = [partner.get(index, len(before) + index) for index in range(len(after))]
    return Pairs(
        base=tuple(before[function] for function in base),
        candidate=tuple(numbers[after[function]] for function in candidate),
    )


def _end(function: PythonFunction, *, parts: int) -> object:
    """Return the name and the last parts of the path; None if it has fewer, or they tell too little."""
    path = function.file.split("/")
    if len(path) < parts or (parts == 1 and path[-1] in _OF_A_FOLDER):
        return None
    return tuple(path[-parts:]), function.name


def _own_name(function: PythonFunction) -> object:
    """Return the name, None for one that Python gave: any file has its `<module>`, and many a `<lambda>`."""
    return None if function.name.startswith("<") else function.name


def _take(
    ours: dict[int, PythonFunction],
    theirs: dict[int, PythonFunction],
    partner: dict[int, int],
    key: _Key,
    *,
    one_file: bool = False,
) -> None:
    """Move what has the same key on both sides from these to the partners; if wanted, only what is of one file on each."""
    left, right = _grouped(ours, key), _grouped(theirs, key)
    for name, before in left.items():
        after = right.get(name, [])
        if one_file and any(
            len({side[index].file for index in found}) > 1 for side, found in ((ours, before), (theirs, after))
        ):
            continue
        for old, new in zip(before, after, strict=False):
            partner[new] = old
            del ours[old], theirs[new]


def _grouped(functions: dict[int, PythonFunction], key: _Key) -> dict[object, list[int]]:
    found = defaultdict[object, list[int]](list)
    for index in sorted(functions, key=lambda index: (functions[index].line, index)):
        name = key(functions[index])
        if name is not None:
            found[name].append(index)
    return found
