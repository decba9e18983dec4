"""A Python profile as Callgrind writes one, for KCachegrind and callgrind_annotate: self costs, calls and what they cost.

Format: the Valgrind manual's "Callgrind format specification". Native code is a function that calls the outermost ones.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from cachegrind_bench._version import __version__
from cachegrind_bench.model.python_profile import TOP, PythonFunction
from cachegrind_bench.model.text import plain
from cachegrind_bench.render.exports import NATIVE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cachegrind_bench.model.python_profile import PythonProfile

_NATIVE = PythonFunction(file="???", name=NATIVE, line=0)


def encode(name: str, profile: PythonProfile) -> bytes:
    """Return the profile of the benchmark of this name. Costs are in Ir; the self costs add up to the profile's total."""
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
    own = defaultdict[int, int](int)
    for path in profile.paths:
        own[path.function] += path.ir
    calls = _calls(profile)
    names = _Names()
    own[TOP] = profile.native
    for key in sorted(own):
        function = _NATIVE if key == TOP else profile.functions[key]
        yield f"fl={names.file(function)}"
        yield f"fn={names.function(function)}"
        yield f"{function.line} {own[key]}"
        for callee, number, inclusive in calls[key]:
            called = profile.functions[callee]
            yield f"cfi={names.file(called)}"
            yield f"cfn={names.function(called)}"
            yield f"calls={number} {called.line}"
            yield f"{function.line} {inclusive}"
        yield ""


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


class _Names:
    """Names as Callgrind shortens them: written in full once, with a number that stands for them from then on."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._functions: dict[tuple[str, str], int] = {}

    def file(self, function: PythonFunction) -> str:
        known = function.file in self._files
        number = self._files.setdefault(function.file, len(self._files) + 1)
        return f"({number})" if known else f"({number}) {plain(function.file) or '???'}"

    def function(self, function: PythonFunction) -> str:
        key = function.file, function.name
        known = key in self._functions
        number = self._functions.setdefault(key, len(self._functions) + 1)
        return f"({number})" if known else f"({number}) {plain(function.name) or '???'}"
