"""The table of threaded programs (benchmarks/threads), made from the rows of a journal."""

from __future__ import annotations

from typing import Any

from benchmarks.threads.__main__ import CLOCK, DEFAULT, WITHOUT, cell, table, valid


def run(variant: str, ir: int, state: str = "pinned", data: int = 5) -> dict[str, Any]:
    return {
        "program": "queue",
        "variant": variant,
        "counts": {"Ir": ir, "Dr": data},
        "score": 2 * ir,
        "scheduling": {"state": state},
    }


def test_runs_that_agree_in_every_count_are_0() -> None:
    assert cell([run(DEFAULT, 1000)] * 2, 2) == "0"


def test_a_count_that_differs_is_reported_even_if_instructions_and_score_agree() -> None:
    assert cell([run(DEFAULT, 1000), run(DEFAULT, 1000, data=6), run(DEFAULT, 1000)], 3) == "Ir 0, score 0, 2 agree"


def test_spreads_are_relative_to_the_smallest_run() -> None:
    assert cell([run(DEFAULT, 1000), run(DEFAULT, 1010)], 2) == "Ir 1.0e-2, score 1.0e-2, 1 agree"


def test_only_pinned_runs_are_in_the_table_except_without_scheduling() -> None:
    failed = {"program": "queue", "variant": DEFAULT, "failed": 4}
    rows = [run(DEFAULT, 1), run(DEFAULT, 2, "kept"), failed, run(WITHOUT, 3, "unavailable")]
    assert valid(rows, "queue", DEFAULT) == rows[:1]
    assert valid(rows, "queue", WITHOUT) == rows[3:]


def test_a_row_with_fewer_runs_than_asked_for_says_so() -> None:
    rows = [run(DEFAULT, 1000), run(WITHOUT, 1000, "unavailable"), run(WITHOUT, 1000, "unavailable")]
    assert table(rows, 2).splitlines() == [
        f"| Program | {DEFAULT} | {WITHOUT} | {CLOCK} |",
        "| --- | --- | --- | --- |",
        "| queue | 0 (1 of 2 runs) | 0 | – |",
    ]
