"""Call graphs for tests, written as what each function costs itself and how often it calls others."""

from __future__ import annotations

from cachegrind_bench.compare.call_pairs import native_sides
from cachegrind_bench.compare.call_split import CallSplit, split
from cachegrind_bench.model.call_graph import CallGraph, Calls, Code

Functions = dict[str, tuple[int, dict[str, int]]]  # by name: self cost of one call, and calls of others in it
LIBC = "/lib/libc.so.6"


def code(name: str) -> Code:
    """Return a function of the program; one with a colon is of the library before that."""
    library, _, short = name.rpartition(":")
    return Code(LIBC, "???", short) if library == "libc" else Code("/work/words", "words.c", name)


def graph(functions: Functions, start: str = "main") -> CallGraph:
    """Return the graph of a program without recursion that calls `start` once."""
    own: dict[Code, int] = {}
    calls: dict[tuple[Code, Code], Calls] = {}

    def run(name: str, times: int) -> int:
        cost, callees = functions[name]
        whole = times * cost
        own[code(name)] = own.get(code(name), 0) + whole
        for callee, number in callees.items():
            ir = run(callee, times * number)
            pair = code(name), code(callee)
            calls[pair] = Calls(times * number, ir).plus(calls.get(pair, Calls(0, 0)))
            whole += ir
        return whole

    run(start, 1)
    return CallGraph(own, calls)


def compared(base: CallGraph, candidate: CallGraph, rows: int = 10) -> CallSplit:
    """Compare two graphs."""
    found = split(native_sides(base, candidate), rows=rows)
    assert sum(row.blame for row in found.rows) + found.rest + found.top == found.total == candidate.total - base.total
    if all(row.members < 100 for row in found.rows):
        assert sum(ir for _label, ir in found.shares) == sum(row.blame for row in found.rows)
    assert all(row.by_calls + row.by_cost == row.candidate.ir - row.base.ir for row in found.rows)
    return found
