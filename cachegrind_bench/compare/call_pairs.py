"""The calls of two executions as graphs of the same numbers: functions that are one in both have one number.

A stub, through which a library is called, is the function that it leads to. What calls cost must not matter here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from cachegrind_bench.compare.call_split import Label, Side, Sides
from cachegrind_bench.compare.pairing import is_included, is_library, pair_functions, pair_sources, stem
from cachegrind_bench.model.call_graph import CallGraph, Calls, Code, add_calls, graph_of
from cachegrind_bench.model.python_profile import NATIVE, TOP, PythonProfile
from cachegrind_bench.model.symbols import STUB, UNKNOWN, Symbol, folded

_Key = tuple[object, str]  # file or library, and name


def native_sides(base: CallGraph, candidate: CallGraph) -> Sides:
    """Return the calls of a program's functions."""
    graphs = _without_stubs(base), _without_stubs(candidate)
    numbers = dict[_Key, int]()
    sides, labels = (Side(), Side()), dict[int, Label]()
    for side, graph, keys in zip(sides, graphs, _keys(*map(_codes, graphs)), strict=True):
        number = {code: numbers.setdefault(key, len(numbers)) for code, key in keys.items()}
        labels |= {
            number[code]: Label(Symbol(code.name), code.file, graph.lines.get(code, 0), code.object)
            for code in sorted(graph.own, key=lambda code: (not is_included(code.file), graph.own[code], code))
            if number[code] not in labels or not is_included(code.file)  # where a function begins may be inlined code
        }
        for code, ir in graph.own.items():
            side.own[number[code]] += ir
        for (caller, callee), calls in graph.calls.items():
            add_calls(side.calls, (number[caller], number[callee]), calls)
    return *sides, labels


def _codes(graph: CallGraph) -> list[Code]:
    return sorted(graph.own)


def _without_stubs(graph: CallGraph) -> CallGraph:
    """Return the graph with each stub as a part of the function that it leads to, and all functions among its costs."""
    ways = defaultdict[Code, list[tuple[int, Code]]](list)
    for (caller, callee), calls in graph.calls.items():
        if caller.name.endswith(STUB) and caller.name == callee.name + STUB:
            ways[caller].append((calls.number, callee))
    targets = {stub: max(found)[1] for stub, found in ways.items()}
    pairs = (
        ((targets.get(caller, caller), targets.get(callee, callee)), found)
        for (caller, callee), found in graph.calls.items()
        if targets.get(caller) != callee
    )
    whole = {code: 0 for pair in graph.calls for code in pair} | dict(graph.own)
    return graph_of(((targets.get(code, code), ir) for code, ir in whole.items()), pairs, graph.lines.items())


def _keys(*sides: list[Code]) -> list[dict[Code, _Key]]:
    """Return what identifies each function on both sides: its file, else its library, and the name as in any build."""
    sources = pair_sources(*({code.file for code in side} for side in sides))
    keys: list[dict[Code, _Key]] = [
        {
            code: (found[code.file] if code.file != UNKNOWN else _library(code.object), folded(code.name))
            for code in side
        }
        for found, side in zip(sources, sides, strict=True)
    ]
    # A name that has no counterpart there, and is the only one of its kind on either side, has moved.
    left, right = ({*side.values()} for side in keys)
    alone = [Counter(name for _, name in side) for side in (left - right, right - left)]
    moved = {name for name in alone[0] if alone[0][name] == alone[1][name] == 1 and name != UNKNOWN}
    common = left & right
    return [
        {code: (None, key[1]) if key[1] in moved and key not in common else key for code, key in side.items()}
        for side in keys
    ]


def _library(path: str) -> str:
    return stem(path) if is_library(path) else ""


def python_labels(profiles: Iterable[PythonProfile], numbers: Iterable[Sequence[int]]) -> dict[int, Label]:
    """Return what the functions with these numbers are called, rather in the last profile."""
    return {
        at: Label(Symbol(function.name), function.file, function.line, "")
        for profile, number in zip(profiles, numbers, strict=True)
        for at, function in zip(number, profile.functions, strict=True)
    }


def python_sides(base: PythonProfile, candidate: PythonProfile) -> Sides:
    """Return the calls of Python functions; native code not under any of them is TOP."""
    numbers = pair_functions(base.functions, candidate.functions)
    sides, labels = (
        (Side(), Side()),
        {TOP: Label(Symbol(NATIVE), "", 0, "")} | python_labels((base, candidate), numbers),
    )
    for side, profile, number in zip(sides, (base, candidate), numbers, strict=True):
        side.own[TOP] = profile.native
        for path, inclusive in zip(profile.paths, profile.inclusive, strict=True):
            side.own[number[path.function]] += path.ir
            caller = TOP if path.parent == TOP else number[profile.paths[path.parent].function]
            add_calls(side.calls, (caller, number[path.function]), Calls(path.calls, inclusive))
    return *sides, labels
