"""The frames of a flame graph: the paths of a Python profile as they are, but for those too narrow to be seen.

Knows the profile; must not know how frames are drawn.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.model.pythonprofile import TOP

if TYPE_CHECKING:
    from cachegrind_bench.model.pythonprofile import PythonProfile

# What stands in a frame that is no function.
ALL, NATIVE, OTHERS = -1, -2, -3
_NARROWEST = 20_000  # a frame is at least this part of the total
_MOST = 6_000  # frames, so that a page stays within a megabyte


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """A frame: `parent` is its caller's index, -1 for the first; costs are in Ir, inclusive of what it stands for.

    `function` is an index of the profile's functions, or ALL, NATIVE, or OTHERS for so many (`merged`) narrow callees.
    """

    parent: int
    function: int
    inclusive: int
    ir: int
    calls: int
    merged: int = 0


def frames(profile: PythonProfile, *, most: int = _MOST) -> list[Frame]:
    """Return the frames, callers before callees and the widest callee first. Those of equal caller add up with its own cost."""
    least = _least(profile, most)
    children = defaultdict[int, list[int]](list)
    for index, made in enumerate(profile.paths):
        children[made.parent].append(index)
    found = [Frame(parent=-1, function=ALL, inclusive=profile.total, ir=0, calls=0)]
    waiting = [(TOP, 0)]  # paths whose callees are still to be added, with their frames
    for path, place in waiting:
        narrow: list[int] = []
        for child in sorted(children[path], key=lambda index: (-profile.inclusive[index], index)):
            if profile.inclusive[child] < least:
                narrow.append(child)
                continue
            waiting.append((child, len(found)))
            found.append(_frame(profile, child, place))
        if narrow:
            found.append(_merged(profile, narrow, place))
    if profile.native:
        found.append(Frame(parent=0, function=NATIVE, inclusive=profile.native, ir=profile.native, calls=0))
    return found


def _least(profile: PythonProfile, most: int) -> int:
    """Return what a frame must cost to be drawn by itself."""
    least = max(profile.total // _NARROWEST, 1)
    ranked = sorted(profile.inclusive, reverse=True)
    return max(least, ranked[most] + 1) if len(ranked) > most else least


def _frame(profile: PythonProfile, index: int, parent: int) -> Frame:
    path = profile.paths[index]
    return Frame(
        parent=parent, function=path.function, inclusive=profile.inclusive[index], ir=path.ir, calls=path.calls
    )


def _merged(profile: PythonProfile, paths: list[int], parent: int) -> Frame:
    inclusive = sum(profile.inclusive[path] for path in paths)
    calls = sum(profile.paths[path].calls for path in paths)
    return Frame(parent=parent, function=OTHERS, inclusive=inclusive, ir=inclusive, calls=calls, merged=len(paths))
