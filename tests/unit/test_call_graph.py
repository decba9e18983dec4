"""The calls in Callgrind's out files, their sums and their names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.call_graph import CallGraph, Calls, Code, every, merge_graphs, named_graph, of_system
from cachegrind_bench.valgrind.callgrind_file import parse_callgrind, parse_callgrind_bytes

DATA = Path(__file__).resolve().parent.parent / "data"
RECORDED = sorted((DATA / "valgrind").glob("*/*.callgrind"))
HEADER = b"version: 1\npid: 7\ncmd:  ./a\npart: 1\n\npositions: line\nevents: Dr Ir\n\n"
MAIN, WORK = Code("/bin/a", "a.c", "main"), Code("/bin/a", "a.c", "work")


def calls_of(body: bytes) -> CallGraph:
    (part,) = parse_callgrind_bytes(HEADER + body, "a.out", calls=every)
    assert part.calls is not None
    return part.calls


def test_calls_are_read_with_the_object_and_file_of_both_functions() -> None:
    first, second = parse_callgrind(DATA / "outfiles" / "odd.callgrind", calls=every)
    assert first.calls is not None
    assert second.calls is not None
    below_main = Code("/bin/program", "main.c", "(below main)")
    assert first.calls.calls == {(below_main, Code("/lib/libc.so", "string.c", "memcpy")): Calls(3, 5000)}
    assert first.calls.own[below_main] == 100
    assert first.calls.own[Code("/bin/program", "numbered.c", "f")] == 200 + 300 + 1 + 100 + 50  # with what was inlined
    # The numbers of functions hold for all parts, whatever object and file these are called from.
    f, g = (Code("/bin/program", "numbered.c", name) for name in "fg")
    assert second.calls.calls == {(g, f): Calls(1, 99)}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_self_costs_add_up_to_those_of_the_profile(path: Path) -> None:
    for part, plain in zip(parse_callgrind(path, calls=every), parse_callgrind(path), strict=True):
        assert part.calls is not None
        assert part.calls.total == part.summary[part.events.index("Ir")]
        assert part.profile == plain.profile
        for (_caller, callee), calls in part.calls.calls.items():
            assert callee in part.calls.own or not calls.number or not calls.ir


def test_of_the_system_alone_calls_are_kept_without_costs_of_functions() -> None:
    body = (
        b"ob=/bin/a\nfl=(1) a.c\nfn=(1) main\n1 0 4\ncfn=(2) work\ncalls=2 9\n1 1 20\ncob=/lib/libc.so.6\ncfi=???\ncfn=(3) memset\n"
        b"calls=3 9\n3 1 30\nfn=(2)\n9 2 50\ncfn=(3)\ncalls=1 9\n3 1 7\ncfn=(2)\ncalls=9\n1 1\n\ntotals: 2 54\n"
    )
    (part,) = parse_callgrind_bytes(HEADER + body, "a.out", calls=of_system)
    memset = Code("/lib/libc.so.6", "???", "memset")
    assert part.calls == CallGraph({}, {(MAIN, memset): Calls(3, 30), (WORK, memset): Calls(1, 7)})


def test_calls_of_one_function_from_many_lines_are_one() -> None:
    body = (
        b"ob=/bin/a\nfl=(1) a.c\nfn=(1) main\n1 0 4\ncfn=(2) work\ncalls=2 9\n1 1 20\n3 0 1\ncfn=(2)\ncalls=3 9\n3 1 30\n"
        b"fn=(2)\n9 2 50\n\ntotals: 2 55\n"
    )
    assert calls_of(body) == CallGraph({MAIN: 5, WORK: 50}, {(MAIN, WORK): Calls(5, 50)}, {WORK: 9})


def test_where_a_function_begins_may_be_relative_to_the_line_of_costs_before() -> None:
    body = (
        b"ob=/bin/a\nfl=(1) a.c\nfn=(1) main\n20 0 4\n+3 0 1\ncfn=(2) work\ncalls=2 -8\n* 1 20\n+2 0 1\n\ntotals: 0 6\n"
    )
    assert calls_of(body).lines == {WORK: 15}


def test_a_function_begins_where_most_calls_lead_and_not_where_another_stack_returns_to() -> None:
    # Go returns into the middle of functions after it has switched stacks: Callgrind takes that for calls, mostly none of them.
    call, body = b"cfn=(2) work\ncalls=%b\n1 0 20\n", b"ob=/bin/a\nfl=(1) a.c\nfn=(1) main\n1 0 4\n%b\ntotals: 0 4\n"
    texts = [call % text for text in (b"0 6", b"1 +86", b"1000 15")]
    graphs = [calls_of(body % found) for found in (b"".join(texts), texts[2], texts[0], texts[1])]
    assert [graph.lines for graph in graphs] == [{WORK: line} for line in (15, 15, 6, 87)]
    assert merge_graphs(graphs[1:]).lines == {WORK: 15}


def test_an_inlined_file_is_that_of_its_callees_and_another_function_may_have_the_same_name() -> None:
    body = (
        b"ob=/bin/a\nfl=(1) a.c\nfn=(1) main\nfi=(2) b.h\n1 0 4\ncfn=(2) help\ncalls=1 1\n* 0 6\nfe=(1)\n2 0 1\n"
        b"cfi=(3) c.c\ncfn=(3) help\ncalls=1\n* 0 7\n\ntotals: 0 5\n"
    )
    found = calls_of(body)
    assert {callee.file: calls.ir for (_, callee), calls in found.calls.items()} == {"b.h": 6, "c.c": 7}


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        (b"calls=1 9\n1 1 20\n", "a call without"),
        (b"cfn=(2) work\ncalls=x 9\n1 1 20\n", "'x' is not a number"),
        (b"cfn=(2) work\ncalls=1 9\n1 1 20\ncalls=1 9\n1 1 20\n", "a call without"),
    ],
)
def test_calls_that_cannot_be_are_an_error_with_its_line(calls: bytes, message: str) -> None:
    body = b"ob=/bin/a\nfl=(1) a.c\nfn=(1) main\n1 0 4\n" + calls + b"\ntotals: 0 4\n"
    with pytest.raises(FileFormatError, match=re.escape(message)) as caught:
        calls_of(body)
    assert caught.value.line is not None
    assert caught.value.line > len(HEADER.splitlines())


def test_code_without_a_name_is_one_function_and_a_stub_has_the_name_of_where_it_leads() -> None:
    stub, memset = Code("???", "???", "0x0000109060 [PLT]"), Code("/lib/libc.so.6", "string.c", "memset")
    resolver = Code("/lib/ld.so", "???", "_dl_runtime_resolve_xsave")
    jit = [Code("???", "???", f"0x000{place}") for place in (1, 2)]
    graph = CallGraph(
        {stub: 6, memset: 100, jit[0]: 1, jit[1]: 2},
        {
            (MAIN, stub): Calls(3, 160),
            (stub, resolver): Calls(1, 50),
            (stub, memset): Calls(3, 100),
            (jit[0], jit[1]): Calls(1, 1),
            (jit[1], MAIN): Calls(1, 1),
        },
    )
    named, unknown = Code("???", "???", "memset@plt"), Code("???", "???", "???")
    assert named_graph(graph) == CallGraph(
        {named: 6, memset: 100, unknown: 3},
        {
            (MAIN, named): Calls(3, 160),
            (named, resolver): Calls(1, 50),
            (named, memset): Calls(3, 100),
            (unknown, unknown): Calls(1, 1),
            (unknown, MAIN): Calls(1, 1),
        },
    )
    assert merge_graphs([named_graph(graph)] * 2).total == 2 * graph.total


@pytest.mark.parametrize(
    ("executed", "calls", "numbers"),
    [
        ("0x400 2 0 9", "5 0x500 9", 5),  # nothing was called outside
        ("0x400 2 0 2", "5 0x500 9", 2),
        ("0x3f0 2 0 2", "5 0x500 9", 5),  # into a toggled function: the instruction that calls has no cost
    ],
)
def test_calls_that_callgrind_counted_while_it_counted_no_costs_are_left_out(
    executed: str, calls: str, numbers: int
) -> None:
    header = HEADER.replace(b"positions: line", b"positions: instr line")
    body = f"fl=(1) a.c\nfn=(1) main\n{executed}\ncob=(2) b\ncfn=(2) work\ncalls={calls}\n0x400 2 0 70\n+16 * 0 1\n\ntotals: 0 "
    total = int(executed.rsplit(maxsplit=1)[-1]) + 1
    (part,) = parse_callgrind_bytes(header + f"{body}{total}\n".encode(), "a.out", calls=every)
    assert part.calls is not None
    assert [found for _pair, found in part.calls.calls.items()] == [Calls(numbers, 70)]
