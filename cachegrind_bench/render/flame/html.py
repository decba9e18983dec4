"""The flame graph of one benchmark as an HTML page that loads nothing; without its script, the table says what matters.

The frames are the paths of a Python profile, but for those too narrow to be seen.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.model.python_profile import TOP
from cachegrind_bench.model.text import counted, grouped, plain, share, shortened
from cachegrind_bench.render.page.html import block, looks, ours, template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cachegrind_bench.model.python_profile import PythonFunction, PythonProfile
    from cachegrind_bench.model.result import Result

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


_PACKAGE = "cachegrind_bench.render.flame"
_ROWS = 100
_LONGEST = 200
_COLOURS = 8  # of the style


def page(result: Result, name: str, profile: PythonProfile) -> str:
    """Return the page of the benchmark of this name."""
    found = frames(profile)
    costs = profile.costs()
    return template(_PACKAGE).render(
        title=_cut(name),
        origin=_origin(result),
        profile=profile,
        costs=costs[:_ROWS],
        rest=costs[_ROWS:],
        merged=sum(frame.merged for frame in found),
        counted=counted,
        grouped=grouped,
        share=share,
        cut=_cut,
        place=_place,
        tool_version=result.tool_version,
        data=ours(block(_data(profile, found))),
        **looks(_PACKAGE),
    )


def _data(profile: PythonProfile, found: list[Frame]) -> dict[str, object]:
    """Return what the script draws: columns of numbers, and the functions that they name by index."""
    used = sorted({frame.function for frame in found if frame.function >= 0})
    number = {function: place for place, function in enumerate(used)}
    return {
        "functions": [_function(profile.functions[function]) for function in used],
        "parent": [frame.parent for frame in found],
        "function": [number.get(frame.function, frame.function) for frame in found],
        "inclusive": [frame.inclusive for frame in found],
        "self": [frame.ir for frame in found],
        "calls": [frame.calls for frame in found],
        "merged": {place: frame.merged for place, frame in enumerate(found) if frame.function == OTHERS},
    }


def _function(function: PythonFunction) -> tuple[str, str, int]:
    """Return name, place and colour, which is that of the file."""
    colour = zlib.crc32(function.file.encode("utf-8", "surrogatepass")) % _COLOURS
    return plain(_cut(function.name)), plain(_place(function)), colour


def _place(function: PythonFunction) -> str:
    file = _cut(function.file)
    return f"{file}:{function.line}" if function.line else file


def _cut(text: str) -> str:
    return shortened(text, _LONGEST)


def _origin(result: Result) -> str:
    return ", ".join(_parts(result))


def _parts(result: Result) -> Iterator[str]:
    if result.commit is not None:
        branch = f" on {_cut(result.commit.branch)}" if result.commit.branch else ""
        yield f"commit {result.commit.sha[:12]}{branch}{' with uncommitted changes' if result.commit.dirty else ''}"
    yield f"measured {result.created_at}"
