"""Python profiles in the formats of other tools. Costs are in Ir.

`speedscope` is that of https://www.speedscope.app (https://www.speedscope.app/file-format-schema.json), `callgrind` that of
KCachegrind and callgrind_annotate (the Valgrind manual's "Callgrind format specification").
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping

from cachegrind_bench._version import __version__
from cachegrind_bench.model.python_profile import NATIVE, TOP, PythonFunction, PythonProfile
from cachegrind_bench.model.text import plain

SPEEDSCOPE_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_NATIVE = PythonFunction(file="???", name=NATIVE, line=0)


def speedscope(profiles: Mapping[str, PythonProfile]) -> bytes:
    """Return one file with the profiles of these benchmarks: as if time went by in Ir, from 0 to each profile's total."""
    frames: dict[PythonFunction, int] = {}
    document = {
        "$schema": SPEEDSCOPE_SCHEMA,
        "exporter": f"cg-bench@{__version__}",
        "name": plain(", ".join(profiles))[:200],
        "activeProfileIndex": 0,
        "profiles": [
            {
                "type": "evented",
                "name": plain(name),
                "unit": "none",
                "startValue": 0,
                "endValue": profile.total,
                "events": list(_events(profile, frames)),
            }
            for name, profile in profiles.items()
        ],
        "shared": {"frames": list(map(_frame, frames))},
    }
    return (json.dumps(document, ensure_ascii=True, separators=(",", ":"), sort_keys=True) + "\n").encode()


def _events(profile: PythonProfile, frames: dict[PythonFunction, int]) -> Iterator[dict[str, object]]:
    """Enter and leave each path once, in their order; what a function costs itself comes after what it called."""

    def event(kind: str, function: PythonFunction) -> dict[str, object]:
        return {"type": kind, "at": at, "frame": frames.setdefault(function, len(frames))}

    def called(caller: int) -> list[int]:
        return [index for index in reversed(profile.children[caller]) if profile.inclusive[index]]

    at, waiting = 0, called(TOP)
    while waiting:
        index = waiting.pop()
        path = profile.paths[max(index, ~index)]  # ~index: all below it was entered and left
        if index < 0:
            at += path.ir
            yield event("C", profile.functions[path.function])
        else:
            yield event("O", profile.functions[path.function])
            waiting += [~index, *called(index)]
    if profile.native:
        yield event("O", _NATIVE)
        at += profile.native
        yield event("C", _NATIVE)


def _frame(function: PythonFunction) -> dict[str, object]:
    if function is _NATIVE:
        return {"name": NATIVE}
    line = {"line": function.line} if function.line else {}
    return {"name": plain(function.name), "file": plain(function.file), **line}


def callgrind(name: str, profile: PythonProfile) -> bytes:
    """Return the profile of the benchmark of this name; the self costs add up to the profile's total.

    Native code is a function that calls the outermost ones.
    """
    head = (
        "# callgrind format",
        "version: 1",
        f"creator: cg-bench-{__version__}",
        "pid: 0",
        f"cmd:  {plain(name)}",
        "part: 1",
        "",
        f"desc: Trigger: {plain(name)}",
        "",
        "positions: line",
        "events: Ir",
        f"summary: {profile.total}",
        "",
    )
    lines = [*head, *_functions(profile), f"totals: {profile.total}"]
    return "".join(f"{line}\n" for line in lines).encode()


def _functions(profile: PythonProfile) -> Iterator[str]:
    own, calls = defaultdict[int, int](int), _calls(profile)
    for path in profile.paths:
        own[path.function] += path.ir
    own[TOP] = profile.native
    functions = {TOP: _NATIVE, **dict(enumerate(profile.functions))}
    files: dict[Hashable, int] = {}
    names: dict[Hashable, int] = {}
    for key in sorted(own):
        function = functions[key]
        yield f"fl={_short(files, function.file, function.file)}"
        yield f"fn={_short(names, (function.file, function.name), function.name)}"
        yield f"{function.line} {own[key]}"
        for callee, number, inclusive in calls[key]:
            called = functions[callee]
            yield f"cfi={_short(files, called.file, called.file)}"
            yield f"cfn={_short(names, (called.file, called.name), called.name)}"
            yield f"calls={number} {called.line}"
            yield f"{function.line} {inclusive}"
        yield ""


def _short(known: dict[Hashable, int], key: Hashable, name: str) -> str:
    """Return a name as Callgrind shortens it: in full once, with a number by which it goes from then on."""
    if key in known:
        return f"({known[key]})"
    known[key] = len(known) + 1
    return f"({known[key]}) {plain(name) or '???'}"


def _calls(profile: PythonProfile) -> dict[int, list[tuple[int, int, int]]]:
    """Return callee, calls and their inclusive cost by caller. Readers add up what a function calls, or is called for:

    so a call of what is running already costs nothing, else recursion (as of Python's imports) would count many times.
    """
    outermost = frozenset(profile.outermost())
    found = defaultdict[int, list[tuple[int, int, int]]](list)
    sums: dict[tuple[int, int], tuple[int, int]] = {}
    for index, path in enumerate(profile.paths):
        pair = TOP if path.parent == TOP else profile.paths[path.parent].function, path.function
        number, cost = sums.get(pair, (0, 0))
        sums[pair] = number + path.calls, cost + (profile.inclusive[index] if index in outermost else 0)
    for (caller, callee), (number, cost) in sorted(sums.items()):
        found[caller].append((callee, number, cost))
    return found
