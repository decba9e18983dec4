"""What one execution cost more than another one, by function."""

from __future__ import annotations

from cachegrind_bench.measure.differences import difference
from cachegrind_bench.model.metrics import FunctionCost, Profile
from cachegrind_bench.model.result import ProcessCost
from cachegrind_bench.valgrind.processes import Accounts

EVENTS = ("Ir", "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw")


def accounts(**functions: tuple[int, int]) -> Accounts:
    rows = tuple(FunctionCost("main.c", name, (ir, 0, 0, dr, 0, 0, 0, 0, 0)) for name, (ir, dr) in functions.items())
    profile = Profile(events=EVENTS, functions=rows, lines=())
    processes = (ProcessCost(executable="/bin/java", counts=profile.counts()),)
    return Accounts(profile=profile, processes=processes, doubts=(), split_needed=False)


def test_what_both_cost_is_left_out_and_nothing_costs_less_than_nothing() -> None:
    found = difference(
        accounts(start=(500, 50), loop=(1010, 90), late=(7, 0), noise=(90, 11)),
        accounts(start=(500, 50), loop=(10, 0), noise=(100, 10)),
    )
    rows = {row.name: (row.counts[0], row.counts[3]) for row in found.profile.functions}
    assert rows == {"loop": (1000, 90), "late": (7, 0), "noise": (0, 1)}
    assert (found.processes[0].executable, found.processes[0].counts.Ir) == ("/bin/java", 1007)
