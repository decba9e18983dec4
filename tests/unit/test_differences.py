"""What one execution cost more than another one, by function and line."""

from __future__ import annotations

from cachegrind_bench.harness.engine.differences import difference
from cachegrind_bench.model.call_graph import CallGraph, Calls, Code
from cachegrind_bench.model.metrics import EVENTS, FunctionCost, LineCost, Profile
from cachegrind_bench.model.result import ProcessCost
from cachegrind_bench.valgrind.processes import Accounts

START, LOOP = Code("/bin/java", "main.c", "start"), Code("/bin/java", "main.c", "loop")


def counts(ir: int, dr: int) -> tuple[int, ...]:
    return ir, 0, 0, dr, 0, 0, 0, 0, 0


def accounts(calls: int = 0, lines: tuple[LineCost, ...] = (), **functions: tuple[int, int]) -> Accounts:
    rows = tuple(FunctionCost("main.c", name, counts(*each)) for name, each in sorted(functions.items()))
    profile = Profile(events=EVENTS, functions=rows, lines=lines)
    processes = (ProcessCost(executable="/bin/java", counts=profile.counts()),)
    graph = CallGraph({}, {(START, LOOP): Calls(calls, 10 * calls)}) if calls else None
    return Accounts(profile=profile, processes=processes, doubts=(), split_needed=False, calls=graph)


def test_what_both_cost_cancels_and_the_total_is_that_of_both_subtracted() -> None:
    found = difference(
        accounts(start=(500, 50), loop=(1010, 90), late=(7, 0), noise=(90, 11)),
        accounts(start=(500, 50), loop=(10, 0), noise=(100, 10)),
    )
    rows = {row.name: (row.counts[0], row.counts[3]) for row in found.profile.functions}
    assert rows == {"loop": (990, 90), "late": (7, 0), "noise": (0, 1)}
    assert (found.processes[0].executable, found.processes[0].counts.Ir) == ("/bin/java", 997)


def test_lines_and_calls_are_subtracted_too_and_lines_add_up_to_their_function() -> None:
    def lines(*each: int) -> tuple[LineCost, ...]:
        return tuple(LineCost("main.c", "loop", number, counts(ir, 0)) for number, ir in enumerate(each, 1))

    found = difference(
        accounts(calls=7, lines=lines(50, 20, 38), loop=(108, 0)),
        accounts(calls=2, lines=lines(5, 23, 0), loop=(28, 0)),
    )
    assert [(row.line, row.counts[0]) for row in found.profile.lines] == [(1, 45), (3, 35)]
    assert found.calls is not None
    assert found.calls.calls == {(START, LOOP): Calls(5, 50)}
