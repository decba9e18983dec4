"""Python profiles for https://www.speedscope.app: each path of calls is entered and left once.

Format: https://www.speedscope.app/file-format-schema.json
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from cachegrind_bench._version import __version__
from cachegrind_bench.model.python_profile import TOP
from cachegrind_bench.model.text import plain
from cachegrind_bench.render.exports import NATIVE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cachegrind_bench.model.python_profile import PythonFunction, PythonProfile

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def encode(profiles: Mapping[str, PythonProfile]) -> bytes:
    """Return one file with the profiles of these benchmarks: as if time went by in Ir, from 0 to each profile's total."""
    frames: dict[PythonFunction | None, int] = {}  # None is native code
    document = {
        "$schema": SCHEMA,
        "exporter": f"cg-bench@{__version__}",
        "name": plain(", ".join(profiles))[:200],
        "activeProfileIndex": 0,
        "profiles": [_profile(name, profile, frames) for name, profile in profiles.items()],
        "shared": {"frames": [_frame(function) for function in frames]},
    }
    return (json.dumps(document, ensure_ascii=True, separators=(",", ":"), sort_keys=True) + "\n").encode()


def _profile(name: str, profile: PythonProfile, frames: dict[PythonFunction | None, int]) -> dict[str, object]:
    events = list(_events(profile, frames))
    return {
        "type": "evented",
        "name": plain(name),
        "unit": "none",
        "startValue": 0,
        "endValue": profile.total,
        "events": events,
    }


def _events(profile: PythonProfile, frames: dict[PythonFunction | None, int]) -> Iterator[dict[str, object]]:
    """Enter and leave all paths in their order; what a function costs itself comes after what it called."""

    def event(kind: str, function: PythonFunction | None) -> dict[str, object]:
        return {"type": kind, "at": at, "frame": frames.setdefault(function, len(frames))}

    children = defaultdict[int, list[int]](list)
    for index in reversed(range(len(profile.paths))):
        if profile.inclusive[index]:
            children[profile.paths[index].parent].append(index)
    at = 0
    waiting = children[TOP].copy()
    while waiting:
        index = waiting.pop()
        path = profile.paths[max(index, ~index)]  # ~index: all below it was entered and left
        if index < 0:
            at += path.ir
            yield event("C", profile.functions[path.function])
        else:
            yield event("O", profile.functions[path.function])
            waiting += [~index, *children[index]]
    if profile.native:
        yield event("O", None)
        at += profile.native
        yield event("C", None)


def _frame(function: PythonFunction | None) -> dict[str, object]:
    if function is None:
        return {"name": NATIVE}
    line = {"line": function.line} if function.line else {}
    return {"name": plain(function.name), "file": plain(function.file), **line}
