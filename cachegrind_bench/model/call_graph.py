"""Which function called which, how often, and what that cost, in instructions (Ir). Values and their sums only.

How they are read is in `valgrind.callgrind_file`, how they are written in `codec`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, NamedTuple, TypeVar

import msgspec

from cachegrind_bench.model.described import Instructions, doc
from cachegrind_bench.model.symbols import STUB, UNKNOWN

# Functions of libc and the like, which say little without their caller: by their library, or where that is linked in.
_SYSTEM = re.compile(r"(?:lib(?:c|m|pthread|stdc\+\+|gcc_s|dl|rt|musl-\w+)[-.]|ld-)")
_LEAF = re.compile(
    r"_*(?:mem(?:set|cpy|move|cmp|chr)|str(?:len|n?cmp|cpy|chr)|(?:int_)?(?:malloc|free|calloc|realloc))(?=$|[_@])"
)
_STUB = " [PLT]"
_ADDRESS = re.compile(r"0x[0-9a-f]+(?P<stub> \[PLT\])?")  # what Callgrind calls a function without a name
_RESOLVER = "_dl_runtime_resolve"
Pair = TypeVar("Pair")


class Code(NamedTuple):
    """A function of a program: the executable or library it is in, its source file, and its name; `???` if unknown.

    All code of one object and file that has no name is one function.
    """

    object: str
    file: str
    name: str

    @property
    def is_system(self) -> bool:
        """Whether it is a function of libc or the like, which says little without its caller."""
        return _is_system(self.object) or _LEAF.match(self.name) is not None


@cache
def _is_system(path: str) -> bool:
    return _SYSTEM.match(path.rpartition("/")[2]) is not None


class Calls(msgspec.Struct, frozen=True):
    """Calls of a function on one side."""

    number: Annotated[int, doc("number of calls")] = msgspec.field(name="calls")
    ir: Annotated[Instructions, doc("what they cost")]  # with all that was called from there

    def plus(self, other: Calls) -> Calls:
        """Return both together."""
        return Calls(self.number + other.number, self.ir + other.ir)


class CallGraph(msgspec.Struct, frozen=True):
    """The self cost of each function in Ir, and the calls from one to another.

    The cost of calls within a recursion contains that of the calls inside of them, so only that of the calls into it is
    to be added up. A call that had begun before counting, or ended after it, may lack a part of its cost. A graph without
    any cost has only calls of functions of the system, to name these with their callers. `lines` are the lines of their files
    where functions begin, as far as debug information says. `heavy` are instructions that took a hundredth of all or more, by
    function and address, where instructions are counted one by one.
    """

    own: Mapping[Code, int]
    calls: Mapping[tuple[Code, Code], Calls]
    lines: Mapping[Code, int] = {}
    heavy: Mapping[tuple[Code, int], int] = {}

    @property
    def total(self) -> int:
        """All instructions that were executed."""
        return sum(self.own.values())

    @property
    def is_whole(self) -> bool:
        """Whether it has all calls, not only those of functions of the system."""
        return self.total > 0

    def scaled(self, times: int, by: int) -> CallGraph:
        """Return all numbers times `times` / `by`, rounded down."""
        own = {code: ir * times // by for code, ir in self.own.items()}
        calls = {pair: Calls(found.number * times // by, found.ir * times // by) for pair, found in self.calls.items()}
        return CallGraph(own, calls, self.lines)


def add_calls(sums: dict[Pair, Calls], pair: Pair, calls: Calls) -> None:
    """Add calls to those of a pair of functions, by whatever functions are known."""
    sums[pair] = calls.plus(sums[pair]) if pair in sums else calls


def graph_of(
    own: Iterable[tuple[Code, int]],
    calls: Iterable[tuple[tuple[Code, Code], Calls]],
    lines: Iterable[tuple[Code, int]] = (),
    heavy: Iterable[tuple[tuple[Code, int], int]] = (),
) -> CallGraph:
    """Return the graph of these self costs and calls, each of which may occur many times."""
    costs = defaultdict[Code, int](int)
    for code, ir in own:
        costs[code] += ir
    sums = dict[tuple[Code, Code], Calls]()
    for pair, found in calls:
        add_calls(sums, pair, found)
    instructions = Counter[tuple[Code, int]]()
    for place, ir in heavy:
        instructions[place] += ir
    return CallGraph(dict(costs), sums, dict(lines), instructions)


def merge_graphs(graphs: Iterable[CallGraph]) -> CallGraph:
    """Add several graphs up."""
    parts = [*graphs]
    own = (item for part in parts for item in part.own.items())
    # Where a function begins is known best where most is called: the last of several lines is what stays.
    fullest = sorted(parts, key=lambda part: sum(found.number for found in part.calls.values()))
    lines = (item for part in fullest for item in part.lines.items())
    heavy = (item for part in parts for item in part.heavy.items())
    return graph_of(own, (item for part in parts for item in part.calls.items()), lines, heavy)


_NONE = Calls(0, 0)
NO_CALLS = CallGraph({}, {})


def graph_without(graph: CallGraph, empty: CallGraph, times: int, total: int) -> CallGraph:
    """Return `graph` less `times` times `empty`, where that leaves a `total` in Ir; nothing becomes negative.

    What its functions cannot give is taken from the one that has most.
    """
    own = {code: max(0, ir - times * empty.own.get(code, 0)) for code, ir in graph.own.items()}
    for code in sorted(own, key=lambda code: (-own[code], code)):
        excess = sum(own.values()) - total
        if excess <= 0:
            break
        own[code] -= min(own[code], excess)
    left = {
        pair: Calls(max(0, found.number - times * less.number), max(0, found.ir - times * less.ir))
        for pair, found in graph.calls.items()
        for less in [empty.calls.get(pair, _NONE)]
    }
    calls = {pair: found for pair, found in left.items() if found != _NONE}
    called = {code for pair in calls for code in pair}
    return CallGraph({code: ir for code, ir in own.items() if ir or code in called}, calls, graph.lines)


def every(_object: str, _name: str) -> bool:
    """Choose all calls."""
    return True


def of_system(of_object: str, name: str) -> bool:
    """Choose calls of functions of the system, and of stubs, which may lead to one."""
    return _is_system(of_object) or name.endswith(_STUB) or _LEAF.match(name) is not None


def named_graph(graph: CallGraph) -> CallGraph:
    """Return the graph with code without a name as one function for each object and file.

    The stub through which an object calls a library gets the name of the function that it mostly leads to, and a suffix.
    """
    targets = defaultdict[Code, Counter[str]](Counter)
    for (caller, callee), found in graph.calls.items():
        if caller.name.endswith(_STUB) and not callee.name.startswith(_RESOLVER):
            targets[caller][callee.name] += found.number

    def named(code: Code) -> Code:
        match = _ADDRESS.fullmatch(code.name)
        if match is None:
            return code
        name, _times = max(targets[code].items(), key=lambda item: (item[1], item[0]), default=(UNKNOWN, 0))
        return code._replace(name=name + STUB if match["stub"] else UNKNOWN)

    names = {code: named(code) for code in graph.own.keys() | {code for pair in graph.calls for code in pair}}
    own = [(names[code], ir) for code, ir in graph.own.items()]
    calls = (((names[caller], names[callee]), found) for (caller, callee), found in graph.calls.items())
    lines = ((code, line) for code, line in graph.lines.items() if names.get(code) == code)
    kept = (item for item in calls if own or item[0][1].name != UNKNOWN)
    return graph_of(own, kept, lines, graph.heavy.items())
