"""What is recorded of a benchmark once more: whose evidence it becomes, and what is said where it is not of the same execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.measure.run import RECORDED
from cachegrind_bench.model.call_graph import CallGraph, Code
from cachegrind_bench.usecases.comparison import InMemory, Side
from cachegrind_bench.usecases.evidence import Evidence, is_explained, with_evidence
from tests.unit.comparing import counts, gates, measured
from tests.unit.samples import failed_benchmark, result

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Benchmark

CALLS = CallGraph({Code("/bin/sieve", "sieve.c", "main"): 1_000_000}, {})


def side(*benchmarks: Benchmark) -> Side:
    return Side(name="main", file=InMemory(result(*benchmarks)))


def recorded(**changes: Any) -> Benchmark:
    return measured(calls=CALLS, **changes)


@pytest.mark.parametrize(
    ("evidence", "ids"),
    [(Evidence.REGRESSIONS, ("worse",)), (Evidence.ALWAYS, ("worse", "better")), (Evidence.NEVER, ())],
)
def test_evidence_is_wanted_of_benchmarks_on_both_sides(evidence: Evidence, ids: tuple[str, ...]) -> None:
    after = {"worse": 1_100_000, "better": 900_000, "same": 1_000_000, "new": 1}
    base = [measured(name) for name in (*after, "gone") if name != "new"]
    candidate = [measured(name, counts(ir)) for name, ir in after.items()]
    assert sorted(evidence.wants(result(*base), result(*candidate), gates())) == sorted(ids)


def test_evidence_of_the_same_counts_is_taken_without_a_word() -> None:
    found = with_evidence(side(measured(), measured("other")), side(recorded()))
    (sieve, other) = found.file.whole().benchmarks
    assert (sieve.calls, other.calls, found.remarks) == (CALLS, None, ())
    assert (is_explained(sieve), is_explained(other)) == (True, False)
    assert not is_explained(measured(calls=CallGraph({}, {})))


def test_other_counts_and_doubts_about_the_execution_are_said() -> None:
    doubtful = recorded(value=counts(1_000_300), warnings=(f"{RECORDED}a process was killed", "something else"))
    found = with_evidence(side(measured()), side(doubtful))
    assert found.file.whole().benchmarks[0].calls == CALLS
    said, doubt = found.remarks
    assert said.startswith(
        "sieve of main: when calls were recorded, the program executed 1,000,300 instructions, not 1,000,000"
    )
    assert doubt == "sieve of main: when calls were recorded, a process was killed"


def test_a_benchmark_that_fails_when_calls_are_recorded_keeps_what_it_has() -> None:
    found = with_evidence(side(measured()), side(failed_benchmark(id="sieve")))
    assert found.file.whole().benchmarks == (measured(),)
    assert found.remarks[0].startswith("sieve failed when its calls were recorded: ")
