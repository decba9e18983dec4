"""From out files to one exact account: who ran what, what was copied, what was lost."""

from __future__ import annotations

import functools
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import FileFormatError, MeasurementError
from cachegrind_bench.model.metrics import EVENTS, ZERO, Counts, LineCost
from cachegrind_bench.valgrind.options import Tool
from cachegrind_bench.valgrind.processes import Accounts, account
from tests.unit.samples import VECTOR, image, outcome, times

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.hermetic.execution import Image

CACHEGRIND, CALLGRIND = Tool.CACHEGRIND, Tool.CALLGRIND
END = "Program termination"
FORK = "--dump-before=_Fork"
EXEC = "--dump-before=execve"


def cachegrind(
    folder: Path, name: str, counts: Counts = VECTOR, *, command: str = "/bin/p", function: str = "main"
) -> None:
    numbers = " ".join(map(str, counts.as_tuple()))
    text = (
        f"desc: x\ncmd: {command}\nevents: {' '.join(EVENTS)}\nfl=p.c\nfn={function}\n1 {numbers}\nsummary: {numbers}\n"
    )
    (folder / name).write_text(text)


def callgrind(
    folder: Path,
    name: str,
    trigger: str,
    counts: Counts = VECTOR,
    *,
    command: str = "/bin/p",
    function: str = "main",
    rest: int = 0,
) -> None:
    # Callgrind's own order of events.
    events = ("Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw")
    values = counts.as_dict()
    numbers = " ".join(str(values[event]) for event in events)
    whole = " ".join(str(values[event] + rest * (event == "Ir")) for event in events)
    (folder / name).write_text(
        f"# callgrind format\nversion: 1\ncreator: callgrind-3.24.0\npid: 1\ncmd:  {command}\npart: 1\n\n"
        f"desc: Trigger: {trigger}\n\npositions: line\nevents: {' '.join(events)}\nsummary: {whole}\n\n"
        f"fl=(1) p.c\nfn=(1) {function}\n1 {numbers}\n\ntotals: {numbers}\n"
    )


def accounts(
    tool: Tool, folder: Path, images: list[Image] | None, leftover: int = 0, *, lines: bool = False
) -> Accounts:
    found = None if images is None else tuple(images)
    return account(tool, folder, outcome(images=found, leftover=leftover), ["/bin/p"], lines=lines)


def shares(found: Accounts) -> dict[str, int]:
    return {item.executable: item.counts.Ir for item in found.processes}


def test_one_process_is_exact(tmp_path: Path) -> None:
    cachegrind(tmp_path, "out.7")
    (tmp_path / "log.7").write_text("==7==\n")
    found = accounts(CACHEGRIND, tmp_path, [image(7, "/bin/p")])
    assert found.profile.counts() == VECTOR == sum((process.counts for process in found.processes), ZERO)
    assert shares(found) == {"/bin/p": 1353}
    assert (found.doubts, found.split_needed) == ((), False)


def test_a_path_that_is_not_utf8_is_recorded_with_escapes(tmp_path: Path) -> None:
    cachegrind(tmp_path, "out.7")
    assert shares(accounts(CACHEGRIND, tmp_path, [image(7, "/f\udcff/p")])) == {r"/f\xff/p": 1353}


def test_no_out_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "log.7").write_text("==7==\n")
    with pytest.raises(MeasurementError, match="Valgrind wrote no out file"):
        accounts(CACHEGRIND, tmp_path, [image(7, "/bin/p")])


def test_a_damaged_out_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "out.7").write_text("desc: x\n")
    with pytest.raises(FileFormatError, match=r"out\.7"):
        accounts(CACHEGRIND, tmp_path, [image(7, "/bin/p")])


def test_a_forked_child_has_a_copy_of_its_parents_counts_so_callgrind_is_asked(tmp_path: Path) -> None:
    cachegrind(tmp_path, "out.7")
    cachegrind(tmp_path, "out.8", times(VECTOR, 2))
    found = accounts(CACHEGRIND, tmp_path, [image(7, "/bin/p", forks=1), image(8, "/bin/p", parent=7, forked=True)])
    assert found.split_needed
    assert found.doubts == ("a forked process of /bin/p began with a copy of its parent's counts",)


def test_a_process_nobody_saw_start_counts_as_forked(tmp_path: Path) -> None:
    cachegrind(tmp_path, "out.7")
    cachegrind(tmp_path, "out.9", command="/bin/other x")
    found = accounts(CACHEGRIND, tmp_path, [image(7, "/bin/p")])
    assert found.doubts == ("1 forked process(es) began with a copy of another's counts",)
    assert found.split_needed
    assert shares(found) == {"/bin/other": 1353, "/bin/p": 1353}


def test_an_exec_loses_what_was_counted_before_so_callgrind_is_asked(tmp_path: Path) -> None:
    cachegrind(tmp_path, "out.7")
    images = [image(7, "/bin/sh", replaced=True), image(7, "/bin/p")]
    found = accounts(CACHEGRIND, tmp_path, images)
    assert found.doubts == ("what /bin/sh did before it executed another program is lost",)
    assert found.split_needed
    assert shares(found) == {"/bin/p": 1353}


def test_callgrind_splits_a_fork_exactly(tmp_path: Path) -> None:
    callgrind(tmp_path, "out.7.1", FORK, times(VECTOR, 3))
    callgrind(tmp_path, "out.7", END, times(VECTOR, 2))
    callgrind(tmp_path, "out.8", END, function="child")
    found = accounts(CALLGRIND, tmp_path, [image(7, "/bin/p", forks=1), image(8, "/bin/p", parent=7, forked=True)])
    assert (found.doubts, found.split_needed) == ((), False)
    assert found.profile.events == EVENTS
    assert found.profile.counts() == times(VECTOR, 6)
    assert {row.name: row.counts[0] for row in found.profile.functions} == {"child": 1353, "main": 5 * 1353}


CLONE = "--dump-before=clone"


@pytest.mark.parametrize(("threads", "doubted"), [(0, False), (1, False), (2, True)])
def test_the_clone_of_a_thread_is_not_taken_for_that_of_a_fork(tmp_path: Path, threads: int, doubted: bool) -> None:
    callgrind(tmp_path, "out.7.1", CLONE)
    callgrind(tmp_path, "out.7.2", CLONE)
    callgrind(tmp_path, "out.7", END)
    callgrind(tmp_path, "out.8", END)
    images = [image(7, "/bin/p", forks=1, threads=threads), image(8, "/bin/p", parent=7, forked=True)]
    assert bool(accounts(CALLGRIND, tmp_path, images).doubts) == doubted


def test_callgrind_keeps_what_ran_before_an_exec_under_its_own_name(tmp_path: Path) -> None:
    callgrind(tmp_path, "image0.0.out.7.1", EXEC, times(VECTOR, 2), command="/bin/sh -c p", function="sh")
    callgrind(tmp_path, "out.7", END, VECTOR)
    (tmp_path / "image0.0.out.7").touch()  # made at the start, for the end that never came
    found = accounts(CALLGRIND, tmp_path, [image(7, "/bin/sh", replaced=True), image(7, "/bin/p")])
    assert found.doubts == ()
    assert shares(found) == {"/bin/sh": 2706, "/bin/p": 1353}
    assert [item.executable for item in found.processes] == ["/bin/sh", "/bin/p"]


def test_an_exec_that_was_not_seen_is_reported(tmp_path: Path) -> None:
    callgrind(tmp_path, "out.7", END)
    found = accounts(CALLGRIND, tmp_path, [image(7, "/bin/sh", replaced=True), image(7, "/bin/p")])
    assert found.doubts == ("what /bin/sh did before it executed another program is lost",)
    assert not found.split_needed


def test_a_killed_process_is_reported(tmp_path: Path) -> None:
    callgrind(tmp_path, "out.7.1", FORK)
    callgrind(tmp_path, "out.7", END)
    (tmp_path / "out.8").touch()
    found = accounts(CALLGRIND, tmp_path, [image(7, "/bin/p", forks=1), image(8, "/bin/p", parent=7, forked=True)])
    assert found.doubts == ("a process of /bin/p was killed, and the counts since its last fork are lost",)


def test_a_fork_that_was_not_split_is_reported(tmp_path: Path) -> None:
    callgrind(tmp_path, "out.7.1", FORK)
    callgrind(tmp_path, "out.7", END)
    found = accounts(CALLGRIND, tmp_path, [image(7, "", forks=2)])
    assert found.doubts == ("a program forked in a way that could not be seen, so counts may be in it twice",)


def test_processes_that_had_to_be_killed_are_counted(tmp_path: Path) -> None:
    cachegrind(tmp_path, "out.7")
    (doubt,) = accounts(CACHEGRIND, tmp_path, [image(7, "/bin/p")], leftover=2).doubts
    assert doubt.startswith("2 process(es) still ran long after the command had ended")
    (doubt,) = accounts(CACHEGRIND, tmp_path, None, leftover=1).doubts
    assert doubt.startswith("1 process(es) still ran after the command had ended")


@pytest.mark.parametrize("tool", [CACHEGRIND, CALLGRIND])
def test_a_file_that_a_killed_process_was_writing_is_left_out_and_any_other_that_is_cut_is_an_error(
    tmp_path: Path, tool: Tool
) -> None:
    write = cachegrind if tool is CACHEGRIND else functools.partial(callgrind, trigger=END)
    for name in ("out.7", "out.8"):
        write(tmp_path, name)
    cut = tmp_path / "out.8"
    cut.write_bytes(cut.read_bytes()[:-20])
    found = accounts(tool, tmp_path, [image(7, "/bin/p")], leftover=1)
    assert found.profile.counts() == VECTOR
    assert "still ran long after the command had ended" in found.doubts[0]
    for images, leftover in (([image(7, "/bin/p")], 0), ([image(8, "/bin/p")], 1), (None, 1)):
        with pytest.raises(FileFormatError, match=r"ends within|add up to"):
            accounts(tool, tmp_path, images, leftover)
    (tmp_path / "out.9").write_bytes(cut.read_bytes())
    with pytest.raises(FileFormatError, match=r"ends within|add up to"):
        accounts(tool, tmp_path, [image(7, "/bin/p")], leftover=1)


def test_without_seccomp_one_process_is_exact_and_several_are_in_doubt(tmp_path: Path) -> None:
    cachegrind(tmp_path, "out.7")
    assert accounts(CACHEGRIND, tmp_path, None).doubts == ()
    cachegrind(tmp_path, "out.8", command="/usr/bin/tool -x")
    found = accounts(CACHEGRIND, tmp_path, None)
    assert found.doubts == (
        "processes were started, and without seccomp it is not known whether all were counted apart",
    )
    assert shares(found) == {"/bin/p": 1353, "/usr/bin/tool": 1353}


def test_without_seccomp_a_program_whose_name_begins_alike_keeps_its_own(tmp_path: Path) -> None:
    cachegrind(tmp_path, "out.7", command="/bin/python3 x")
    assert shares(accounts(CACHEGRIND, tmp_path, None)) == {"/bin/python3": 1353}


def test_the_same_program_in_several_processes_is_added_up(tmp_path: Path) -> None:
    for pid in (7, 8, 9):
        callgrind(tmp_path, f"out.{pid}", END)
    callgrind(tmp_path, "out.7.1", FORK)
    callgrind(tmp_path, "out.7.2", FORK)
    children = [image(pid, "/bin/p", parent=7, forked=True) for pid in (8, 9)]
    found = accounts(CALLGRIND, tmp_path, [image(7, "/bin/p", forks=2), *children])
    assert found.doubts == ()
    assert shares(found) == {"/bin/p": 5 * 1353}


def test_thousands_of_processes_are_not_in_memory_all_at_once(tmp_path: Path) -> None:
    numbers = " ".join(map(str, VECTOR.as_tuple()))
    rows = "".join(f"fn=f{number}\n1 {numbers}\n" for number in range(50))
    whole = " ".join(map(str, times(VECTOR, 50).as_tuple()))
    text = f"desc: x\ncmd: /bin/p\nevents: {' '.join(EVENTS)}\nfl=p.c\n{rows}summary: {whole}\n"
    most: list[int] = []
    for count in (1, 60, 180):
        for pid in range(count):
            (tmp_path / f"out.{pid}").write_text(text)
        tracemalloc.start()
        found = accounts(CACHEGRIND, tmp_path, [image(pid, "/bin/p") for pid in range(count)])
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.profile.counts() == times(VECTOR, 50 * count)
    assert most[2] - most[1] < most[1] - most[0]


def test_programs_stand_by_cost_then_by_name(tmp_path: Path) -> None:
    images = []
    for pid, path, factor in ((7, "/b", 1), (8, "/a", 1), (9, "/c", 5)):
        callgrind(tmp_path, f"out.{pid}", END, times(VECTOR, factor))
        images.append(image(pid, path, forked=pid > 7))
    found = accounts(CALLGRIND, tmp_path, images)
    assert [item.executable for item in found.processes] == ["/c", "/a", "/b"]


def test_what_callgrind_counted_and_booked_nowhere_has_a_row_of_its_own(tmp_path: Path) -> None:
    callgrind(tmp_path, "out.7", END, rest=4)
    found = accounts(CALLGRIND, tmp_path, [image(7, "/bin/p")])
    assert {(row.file, row.name): row.counts[0] for row in found.profile.functions} == {
        ("p.c", "main"): 1353,
        ("???", "(last block of a thread)"): 4,
    }
    assert found.profile.counts().Ir == 1357


def test_functions_that_callgrind_names_by_address_are_one_without_a_name(tmp_path: Path) -> None:
    callgrind(tmp_path, "out.7", END, function="0x00000000000110a0")
    callgrind(tmp_path, "out.7.1", FORK, function="0x00000000000110b0")
    found = accounts(CALLGRIND, tmp_path, [image(7, "/bin/p", forks=1)])
    assert [(row.name, row.counts[0]) for row in found.profile.functions] == [("???", 2706)]


def test_source_lines_of_cachegrind_are_kept_when_asked_for(tmp_path: Path) -> None:
    cachegrind(tmp_path, "out.7")
    assert accounts(CACHEGRIND, tmp_path, [image(7, "/bin/p")]).profile.lines == ()
    found = accounts(CACHEGRIND, tmp_path, [image(7, "/bin/p")], lines=True)
    assert found.profile.lines == (LineCost("p.c", "main", 1, VECTOR.as_tuple()),)


def test_source_lines_of_callgrind_are_added_up_renamed_and_ordered_as_its_functions_are(tmp_path: Path) -> None:
    callgrind(tmp_path, "out.7", END, function="0x00000000000110a0")
    callgrind(tmp_path, "out.7.1", FORK, function="0x00000000000110b0", rest=4)
    callgrind(tmp_path, "out.7.2", FORK, Counts.of([0] * 9), rest=1)
    images = [image(7, "/bin/p", forks=2), image(8, "/bin/p", forked=True), image(9, "/bin/p", forked=True)]
    found = accounts(CALLGRIND, tmp_path, images, lines=True).profile
    assert found.lines == (
        LineCost("???", "(last block of a thread)", 0, (5, *[0] * 8)),
        LineCost("p.c", "???", 1, times(VECTOR, 2).as_tuple()),
        LineCost("p.c", "main", 1, (0,) * 9),
    )
    assert [(row.file, row.name, row.counts) for row in found.lines] == [
        (row.file, row.name, row.counts) for row in found.functions
    ]
    assert found.functions == accounts(CALLGRIND, tmp_path, images).profile.functions


def test_an_empty_part_with_a_rest_has_a_line_for_it(tmp_path: Path) -> None:
    callgrind(tmp_path, "out.7", END)
    callgrind(tmp_path, "out.7.1", FORK, Counts.of([0] * 9), rest=4)
    text = (tmp_path / "out.7.1").read_text()
    (tmp_path / "out.7.1").write_text(text[: text.index("fl=")] + text[text.index("totals:") :])
    found = accounts(CALLGRIND, tmp_path, [image(7, "/bin/p", forks=1)], lines=True).profile
    assert [(row.line, row.counts[0]) for row in found.lines] == [(0, 4), (1, 1353)]


def test_a_child_that_left_no_trace_is_reported(tmp_path: Path) -> None:
    callgrind(tmp_path, "out.7.1", FORK)
    callgrind(tmp_path, "out.7", END)
    found = accounts(CALLGRIND, tmp_path, [image(7, "/bin/p", forks=1)])
    assert found.doubts == ("1 child process(es) were killed or left no trace, and their counts are lost",)
