"""Parts that Callgrind wrote at the marks of regions: what follows a mark is its own, and the marks' cost is taken off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.launch import Outcome
from cachegrind_bench.valgrind.region_parts import region_accounts

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw"
COUNTER = "0x0000000004dfd021"
CLIENT = "Client Request: cg-bench:"


def part(folder: Path, number: int, trigger: str, rows: dict[str, int], *, pid: int = 7) -> None:
    """Write one part as Callgrind does, with rows of instructions by function."""
    body = "".join(f"fn={name}\n0 {ir}\n" for name, ir in rows.items())
    text = (
        f"# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: {pid}\ncmd:  python s.py\npart: {number}\n\n"
        f"desc: Trigger: {trigger}\n\npositions: line\nevents: {EVENTS}\nsummary: 0\n\nfl=x.c\n{body}"
        f"\ntotals: {sum(rows.values())}\n"
    )
    last = trigger == "Program termination"
    (folder / (f"out.{pid}" if last else f"out.{pid}.{number}")).write_text(text)


def outcome(threads: int = 0, leftover: int = 0) -> Outcome:
    from cachegrind_bench.hermetic.execution import Image

    image = Image(7, "/usr/bin/python", ["python", "s.py"], 1, forked=False, threads=threads)
    return Outcome(
        exit_status=0,
        signal=None,
        timed_out=False,
        leftover=leftover,
        wall_ms=1,
        tail=b"",
        unsealed={},
        images=(image,),
    )


def calibrated(folder: Path) -> None:
    """Write the parts before the first region: an empty one costs 30, of which 1 is the counter."""
    part(folder, 1, f"{CLIENT}warm", {})
    part(folder, 2, f"{CLIENT}empty:0x4dfd021", {"enter": 480, COUNTER: 16})
    part(folder, 3, f"{CLIENT}none", {"enter": 29, COUNTER: 1})


def ir(folder: Path) -> dict[str, int]:
    found = region_accounts(folder, outcome(), ["python", "s.py"])
    return {name: accounts.profile.counts().Ir for name, accounts in found.items()}


def test_what_follows_a_mark_is_its_own_and_entries_are_taken_off(tmp_path: Path) -> None:
    calibrated(tmp_path)
    part(tmp_path, 4, f"{CLIENT}region:a", {})
    part(tmp_path, 5, f"{CLIENT}region:b", {"work": 100, "enter": 58, COUNTER: 2})
    part(tmp_path, 6, f"{CLIENT}region:a", {"work": 7, "enter": 29, COUNTER: 1})
    part(tmp_path, 7, "Program termination", {"work": 1000, "enter": 29, COUNTER: 1})
    assert ir(tmp_path) == {"a": 1100, "b": 7}


def test_a_part_written_for_another_reason_belongs_to_the_mark_before(tmp_path: Path) -> None:
    calibrated(tmp_path)
    part(tmp_path, 4, f"{CLIENT}region:a", {})
    part(tmp_path, 5, "--dump-before=fork", {"work": 10})
    part(tmp_path, 6, "Program termination", {"work": 5, "enter": 29, COUNTER: 1})
    assert ir(tmp_path) == {"a": 15}


def test_parts_are_ordered_by_number_and_not_by_name(tmp_path: Path) -> None:
    calibrated(tmp_path)
    for number in range(4, 12):
        part(tmp_path, number, f"{CLIENT}region:r{number}", {"work": number, "enter": 29, COUNTER: 1})
    part(tmp_path, 12, "Program termination", {})
    assert ir(tmp_path) == {f"r{number}": number + 1 for number in range(4, 11)} | {"r11": 0}


def test_a_child_that_was_forked_inside_of_a_region_uses_its_parents_calibration(tmp_path: Path) -> None:
    calibrated(tmp_path)
    part(tmp_path, 4, f"{CLIENT}region:a", {})
    part(tmp_path, 5, "Program termination", {"work": 5, "enter": 29, COUNTER: 1})
    part(tmp_path, 1, f"{CLIENT}region:a", {"between fork and mark": 3}, pid=9)
    part(tmp_path, 2, "Program termination", {"work": 50}, pid=9)
    assert ir(tmp_path) == {"a": 55}


def test_a_child_that_leaves_the_region_it_was_forked_in_counts_until_it_enters_one_of_its_own(tmp_path: Path) -> None:
    part(tmp_path, 1, f"{CLIENT}warm", {})
    part(tmp_path, 2, f"{CLIENT}empty:0x4dfd021", {"enter": 448, COUNTER: 32})
    part(tmp_path, 3, f"{CLIENT}none", {"enter": 28, COUNTER: 2})
    part(tmp_path, 4, f"{CLIENT}region:a", {})
    part(tmp_path, 5, "Program termination", {"work": 5, "enter": 28, COUNTER: 2})
    part(tmp_path, 1, f"{CLIENT}region:a", {}, pid=9)
    part(tmp_path, 2, f"{CLIENT}warm", {"work": 50, COUNTER: 1}, pid=9)  # half an entry: it only left
    part(tmp_path, 3, f"{CLIENT}empty:0x4dfd021", {"enter": 448, COUNTER: 32}, pid=9)
    part(tmp_path, 4, f"{CLIENT}none", {"enter": 28, COUNTER: 2}, pid=9)
    part(tmp_path, 5, f"{CLIENT}region:a", {}, pid=9)
    part(tmp_path, 6, "Program termination", {"work": 700, "enter": 28, COUNTER: 2}, pid=9)
    assert ir(tmp_path) == {"a": 756}  # with what left it, as before
    part(tmp_path, 6, "Program termination", {"work": 700, "enter": 14, COUNTER: 1}, pid=9)
    with pytest.raises(MeasurementError, match="region 'a' has counts that its marks do not explain"):
        ir(tmp_path)


def test_a_mark_says_names_that_are_not_ascii(tmp_path: Path) -> None:
    calibrated(tmp_path)
    part(tmp_path, 4, f"{CLIENT}region:d%C3%A9cor%0Asummary%3A 5 %25", {})
    part(tmp_path, 5, "Program termination", {"work": 5, "enter": 29, COUNTER: 1})
    assert ir(tmp_path) == {"décor\nsummary: 5 %": 5}


def test_a_c_programs_marks_are_counted_by_the_name_of_their_function(tmp_path: Path) -> None:
    part(tmp_path, 1, f"{CLIENT}empty:1", {})
    part(tmp_path, 2, f"{CLIENT}region:a", {"cg_bench_toggle_region": 4})
    part(tmp_path, 3, "Program termination", {"work": 5, "cg_bench_toggle_region": 12})
    assert ir(tmp_path) == {"a": 5}


def test_counts_that_are_not_of_whole_entries_are_refused(tmp_path: Path) -> None:
    part(tmp_path, 1, f"{CLIENT}empty:1", {})
    part(tmp_path, 2, f"{CLIENT}region:a", {"cg_bench_toggle_region": 4})
    part(tmp_path, 3, "Program termination", {"work": 5, "cg_bench_toggle_region": 13})
    with pytest.raises(MeasurementError, match="region 'a' has counts that its marks do not explain"):
        ir(tmp_path)


def test_a_program_without_regions_has_none(tmp_path: Path) -> None:
    part(tmp_path, 1, "Program termination", {})
    assert ir(tmp_path) == {}


def test_threads_and_processes_that_were_killed_are_doubts(tmp_path: Path) -> None:
    calibrated(tmp_path)
    part(tmp_path, 4, f"{CLIENT}region:a", {})
    part(tmp_path, 5, "Program termination", {"work": 5, "enter": 29, COUNTER: 1})
    found = region_accounts(tmp_path, outcome(threads=2, leftover=1), ["python"])["a"]
    assert [doubt.partition(":")[0] for doubt in found.doubts] == [
        "the program started 2 thread(s)",
        "1 process(es) were killed after the command had ended; their counts are lost",
    ]
    assert found.processes[0].executable == "/usr/bin/python"
