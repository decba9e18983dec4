"""The flame graph of one benchmark as an HTML page that loads nothing; without its script, the table says what matters."""

from __future__ import annotations

from zlib import crc32

from cachegrind_bench.compare.call_paths import ALL, OTHERS, OUTSIDE, CallPaths, python_paths
from cachegrind_bench.model.python_profile import PythonProfile
from cachegrind_bench.model.result import Result
from cachegrind_bench.model.text import plain, share, shortened
from cachegrind_bench.render.page import block, render
from cachegrind_bench.valgrind.demangling import demangle, demangled

_ROWS = 100
_LONGEST = 200
_COLOURS = 8  # of the style
_NOWHERE = ("", "not under any Python function")


def page(result: Result, name: str, profile: PythonProfile) -> str:
    """Return the page of the benchmark of this name."""
    paths, costs, commit = python_paths(profile), profile.costs(), result.commit
    return render(
        "flame",
        data=block([graph(paths)]),
        title=_cut(name),
        origin=f"{f'commit {_cut(commit.described)}, ' if commit is not None else ''}measured {result.created_at}",
        profile=profile,
        costs=costs[:_ROWS],
        rest=costs[_ROWS:],
        paths=paths,
        share=share,
        cut=_cut,
        tool_version=result.tool_version,
    )


def graph(paths: CallPaths) -> dict[str, object]:
    """Return what the script draws: columns of numbers, and the functions that they name by index."""
    found = paths.frames
    used = sorted({frame.function for frame in found} - {ALL, OTHERS})
    number = {function: place for place, function in enumerate(used)}
    sides = range(len(found[0].own))
    demangle(paths.labels[function].name for function in used)
    return {
        "functions": [  # name, place and colour, which is that of the file, or of none
            (
                plain(_cut(demangled(item.name) + _others(paths.circles.get(function, 0)))),
                plain(_cut(item.place)) or _NOWHERE[function == OUTSIDE],
                -1 if function == OUTSIDE else crc32(item.file.encode(errors="surrogatepass")) % _COLOURS,
            )
            for function, item in ((function, paths.labels[function]) for function in used)
        ],
        "parent": [frame.parent for frame in found],
        "function": [number.get(frame.function, frame.function) for frame in found],
        "own": [[frame.own[side] for frame in found] for side in sides],
        "calls": [[frame.calls[side] for frame in found] for side in sides],
        "merged": {place: frame.merged for place, frame in enumerate(found) if frame.function == OTHERS},
    }


def _others(number: int) -> str:
    return f" and {number} that call each other" if number else ""


def _cut(text: str) -> str:
    return shortened(text, _LONGEST)
