"""The flame graph of one benchmark as an HTML page that loads nothing; without its script, the table says what matters.

The frames are the paths of a Python profile, but for those too narrow to be seen.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

from cachegrind_bench.model.python_profile import TOP, PythonProfile
from cachegrind_bench.model.result import Result
from cachegrind_bench.model.text import plain, share, shortened
from cachegrind_bench.render.page import block, render

# What is in a frame that is not a function.
ALL, NATIVE, OTHERS = -1, -2, -3
_NARROWEST = 20_000  # a frame is at least this part of the total
_MOST = 6_000  # frames, so that a page stays within a megabyte
_ROWS = 100
_LONGEST = 200
_COLOURS = 8  # of the style


class Frame(msgspec.Struct, frozen=True):
    """A frame: `parent` is its caller's index, -1 for the first; costs are in Ir, inclusive of all that it covers.

    `function` is an index of the profile's functions, or ALL, NATIVE, or OTHERS for several (`merged`) narrow callees.
    """

    parent: int
    function: int
    inclusive: int
    ir: int = 0
    calls: int = 0
    merged: int = 0


def frames(profile: PythonProfile, *, most: int = _MOST) -> list[Frame]:
    """Return the frames, callers before callees and the widest callee first. Those of equal caller add up with its own cost."""
    paths, inclusive = profile.paths, profile.inclusive
    ranked = sorted(inclusive, reverse=True)
    least = max(profile.total // _NARROWEST, 1, ranked[most] + 1 if len(ranked) > most else 0)  # to be drawn by itself
    found = [Frame(-1, ALL, profile.total)]
    waiting = [(TOP, 0)]  # paths whose callees are still to be added, with their frames
    for caller, parent in waiting:
        callees = sorted(profile.children[caller], key=lambda index: (-inclusive[index], index))
        for index in callees:
            if inclusive[index] >= least:
                path = paths[index]
                waiting.append((index, len(found)))
                found.append(Frame(parent, path.function, inclusive[index], path.ir, path.calls))
        narrow = [index for index in callees if inclusive[index] < least]
        if narrow:
            cost, calls = sum(inclusive[index] for index in narrow), sum(paths[index].calls for index in narrow)
            found.append(Frame(parent, OTHERS, cost, cost, calls, merged=len(narrow)))
    if profile.native:
        found.append(Frame(0, NATIVE, profile.native, profile.native))
    return found


def page(result: Result, name: str, profile: PythonProfile) -> str:
    """Return the page of the benchmark of this name."""
    found, costs, commit = frames(profile), profile.costs(), result.commit
    return render(
        "flame",
        data=block(_data(profile, found)),
        title=_cut(name),
        origin=f"{f'commit {_cut(commit.described)}, ' if commit is not None else ''}measured {result.created_at}",
        profile=profile,
        costs=costs[:_ROWS],
        rest=costs[_ROWS:],
        merged=sum(frame.merged for frame in found),
        share=share,
        cut=_cut,
        tool_version=result.tool_version,
    )


def _data(profile: PythonProfile, found: list[Frame]) -> dict[str, object]:
    """Return what the script draws: columns of numbers, and the functions that they name by index."""
    used = sorted({frame.function for frame in found if frame.function >= 0})
    number = {function: place for place, function in enumerate(used)}
    return {
        "functions": [  # name, place and colour, which is that of the file
            (
                plain(_cut(item.name)),
                plain(_cut(item.place)),
                crc32(item.file.encode(errors="surrogatepass")) % _COLOURS,
            )
            for item in map(profile.functions.__getitem__, used)
        ],
        "parent": [frame.parent for frame in found],
        "function": [number.get(frame.function, frame.function) for frame in found],
        "inclusive": [frame.inclusive for frame in found],
        "self": [frame.ir for frame in found],
        "calls": [frame.calls for frame in found],
        "merged": {place: frame.merged for place, frame in enumerate(found) if frame.function == OTHERS},
    }


def _cut(text: str) -> str:
    return shortened(text, _LONGEST)
