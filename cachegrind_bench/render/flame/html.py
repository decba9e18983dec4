"""The flame graph of one benchmark as an HTML page that loads nothing; without its script, the table says what matters.

Knows the template; what is drawn comes from `tree`.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from cachegrind_bench.render.flame.tree import OTHERS, frames
from cachegrind_bench.render.names import plain, shortened
from cachegrind_bench.render.numbers import counted, grouped, share
from cachegrind_bench.render.page.html import block, looks, ours, template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cachegrind_bench.model.pythonprofile import PythonFunction, PythonProfile
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.render.flame.tree import Frame

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
