"""The reader of Callgrind's out files: parts, names, positions, and what is self cost."""

from __future__ import annotations

from operator import add
from pathlib import Path

import pytest
from msgspec.structs import replace

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.valgrind.callgrind_file import CallgrindPart, parse_callgrind, parse_callgrind_bytes
from cachegrind_bench.valgrind.out_file import parse_cachegrind

DATA = Path(__file__).resolve().parent.parent / "data"
VERSIONS = ["3.16.1", "3.19.0", "3.24.0"]
RECORDED = sorted((DATA / "valgrind").glob("*/*.callgrind"))
HEADER = b"version: 1\ncreator: callgrind-3.24.0\npid: 7\ncmd:  ./a b\npart: 1\n\npositions: line\nevents: Ir Dr\nsummary: 9\n\n"
GOOD = HEADER + b"fl=(1) a.c\nfn=(1) main\n1 4 1\ncfn=(2) f\ncalls=1 9\n* 5\nfn=(2)\n+8 5\n\ntotals: 9 1\n"


def parse(data: bytes, *, lines: bool = False) -> tuple[CallgrindPart, ...]:
    return parse_callgrind_bytes(data, "a.out", lines=lines)


def source_lines(part: CallgrindPart) -> dict[tuple[str, str, int], tuple[int, ...]]:
    return {(row.file, row.name, row.line): row.counts for row in part.profile.lines}


def rows(part: CallgrindPart) -> dict[tuple[str, str], tuple[int, ...]]:
    return {(row.file, row.name): row.counts for row in part.profile.functions}


def refusal(data: bytes) -> FileFormatError:
    with pytest.raises(FileFormatError) as caught:
        parse(data)
    return caught.value


def test_the_cost_of_calls_is_not_counted_as_self_cost() -> None:
    (part,) = parse(GOOD)
    assert rows(part) == {("a.c", "main"): (4, 1), ("a.c", "f"): (5, 0)}
    assert part.summary == (9, 1)


def test_everything_odd_the_grammar_allows_is_read() -> None:
    first, second = parse_callgrind(DATA / "outfiles" / "odd.callgrind")
    assert rows(first) == {
        ("main.c", "(below main)"): (100, 20),
        ("numbered.c", "f"): (251, 81),
        ("header.h", "f"): (400, 0),
        ("numbered.c", "g"): (50, 3),
        ("header.h", "f'2"): (200, 100),
    }
    assert first.part == 1
    assert first.trigger == "Client Request: half: way"
    assert first.command_line == "./program one\\two three\nfour"
    assert first.header_summary == (1001, 204)

    assert second.events == ("Dr", "Ir")
    assert rows(second) == {("numbered.c", "g"): (1, 6)}
    assert second.part == 2
    assert second.trigger == "Program termination"
    assert second.command_line == first.command_line
    assert second.header_summary == (2, 9)


def test_source_lines_are_relative_to_the_line_before_be_it_a_calls_or_a_jumps() -> None:
    first, second = parse_callgrind(DATA / "outfiles" / "odd.callgrind", lines=True)
    assert source_lines(first) == {
        ("main.c", "(below main)", 1): (100, 20),
        ("numbered.c", "f", 10): (201, 41),
        ("header.h", "f", 1): (400, 0),
        ("numbered.c", "g", 20): (50, 3),
        ("numbered.c", "f", 30): (50, 40),
        ("header.h", "f'2", 30): (200, 100),
    }
    assert source_lines(second) == {("numbered.c", "g", 15): (0, 2), ("numbered.c", "g", 20): (1, 4)}
    (part,) = parse(GOOD.replace(b"* 5\n", b"+2 5\n"), lines=True)
    assert source_lines(part) == {("a.c", "main", 1): (4, 1), ("a.c", "f", 11): (5, 0)}


@pytest.mark.parametrize(
    ("odd", "lines"),
    [
        (b"-9 4 1\n+1 0 0", (0, 0)),
        (b"-9 4 1\n7 0 0", (0, 7)),
    ],
)
def test_a_position_that_cannot_be_is_unknown_and_so_is_what_is_relative_to_it(
    odd: bytes, lines: tuple[int, int]
) -> None:
    (part,) = parse(GOOD.replace(b"1 4 1", odd), lines=True)
    main = {line: counts for (_, name, line), counts in source_lines(part).items() if name == "main"}
    assert main == {lines[1]: (0, 0), lines[0]: (4, 1)}
    assert rows(part) == rows(parse(GOOD)[0])


def test_without_a_column_of_lines_all_is_unknown() -> None:
    data = GOOD.replace(b"positions: line", b"positions: instr").replace(b"1 4 1", b"0x1 4 1")
    assert {row.line for row in parse(data, lines=True)[0].profile.lines} == {0}


@pytest.mark.parametrize("version", VERSIONS)
def test_source_lines_are_those_of_cachegrind(version: str) -> None:
    folder = DATA / "valgrind" / version
    cachegrind = parse_cachegrind(folder / "tinyfork.1.cgout", lines=True).profile
    expected = {(row.file, row.name, row.line): row.counts[0] for row in cachegrind.lines if row.name == "burn_parent"}
    assert len({file for file, _, _ in expected}) == 2
    for names in (("before-fork", "parent"), ("combined",)):
        parts = [part for name in names for part in parse_callgrind(folder / f"tinyfork.{name}.callgrind", lines=True)]
        found = [source_lines(part) for part in parts]
        assert {key: sum(lines.get(key, (0,))[0] for lines in found) for key in expected} == expected


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_source_lines_change_no_row_of_a_real_file_and_add_up_to_it(path: Path) -> None:
    for plain, part in zip(parse_callgrind(path), parse_callgrind(path, lines=True), strict=True):
        assert plain.profile.lines == ()
        assert replace(part, profile=replace(part.profile, lines=())) == plain
        sums: dict[tuple[str, str], tuple[int, ...]] = {}
        for row in part.profile.lines:
            key = (row.file, row.name)
            sums[key] = tuple(map(add, sums.get(key, [0] * len(part.events)), row.counts))
        assert sums == rows(part)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dump_before_a_fork_splits_the_run_exactly(version: str) -> None:
    folder = DATA / "valgrind" / version
    names = ("before-fork", "parent", "child")
    before, parent, child = (parse_callgrind(folder / f"tinyfork.{name}.callgrind")[0] for name in names)
    assert (before.trigger, before.part) == ("--dump-before=fork", 1)
    assert (parent.trigger, parent.part) == ("Program termination", 2)
    assert (child.trigger, child.part) == ("Program termination", 1)
    assert {name for _, name in rows(child)} >= {"burn_child"}
    assert not {name for _, name in rows(child)} & {"burn_parent", "recurse"}

    # Cachegrind's file of the child starts with the counts of its parent. The exit system call ends the last basic
    # block of each process, which the header's summary has and no line.
    of_parent, of_child = (parse_cachegrind(folder / f"tinyfork.{number}.cgout").profile.counts() for number in (1, 2))
    instructions = [part.header_summary[part.events.index("Ir")] for part in (before, parent, child)]
    assert instructions[0] + instructions[1] == of_parent.Ir
    assert instructions[0] + instructions[2] == of_child.Ir


@pytest.mark.parametrize("version", VERSIONS)
def test_one_file_may_hold_several_parts_and_instruction_addresses(version: str) -> None:
    folder = DATA / "valgrind" / version
    parts = parse_callgrind(folder / "tinyfork.combined.callgrind")
    assert [(part.part, part.trigger) for part in parts] == [(1, "--dump-before=fork"), (2, "Program termination")]
    for part, name in zip(parts, ("before-fork", "parent"), strict=True):
        (alone,) = parse_callgrind(folder / f"tinyfork.{name}.callgrind")
        assert part.profile.counts() == alone.profile.counts()
        ours, theirs = rows(part), rows(alone)
        assert ours.keys() == theirs.keys()
        assert all(ours[key][: len(alone.events)] == theirs[key] for key in ours)


@pytest.mark.parametrize("version", VERSIONS)
def test_inlined_code_is_booked_by_file_and_function_as_cachegrind_does(version: str) -> None:
    folder = DATA / "valgrind" / version
    (before,) = parse_callgrind(folder / "tinyfork.before-fork.callgrind")
    (after,) = parse_callgrind(folder / "tinyfork.parent.callgrind")
    cachegrind = parse_cachegrind(folder / "tinyfork.1.cgout").profile
    expected = {(row.file, row.name): row.counts[0] for row in cachegrind.functions if row.name == "burn_parent"}
    assert {file.rsplit("/", 1)[-1] for file, _ in expected} == {"tinyfork.c", "inlined.h"}
    assert {key: rows(before)[key][0] + rows(after)[key][0] for key in expected} == expected


def test_the_order_of_events_does_not_matter() -> None:
    (part,) = parse_callgrind(DATA / "valgrind" / "3.24.0" / "tinyfork.before-fork.callgrind")
    assert part.events == ("Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw")
    counts = part.profile.counts()
    assert (counts.Ir, counts.Dr, counts.Dw, counts.I1mr, counts.D1mr, counts.DLmw) == (9010, 2001, 2004, 2, 1, 1)


def test_threads_in_one_file_repeat_the_header_and_the_names() -> None:
    second = GOOD.replace(b"part: 1\n", b"part: 1\nthread: 2\n").replace(b"(1) main", b"(1) other")
    parts = parse(GOOD.replace(b"part: 1\n", b"part: 1\nthread: 1\n") + b"# callgrind format\n" + second)
    assert [sorted(name for _, name in rows(part)) for part in parts] == [["f", "main"], ["f", "other"]]


def test_a_part_may_be_empty() -> None:
    (part,) = parse(HEADER + b"totals:\n")
    assert part.summary == (0, 0)
    assert part.profile.functions == ()


def test_the_command_is_unescaped() -> None:
    escaped = GOOD.replace(b"cmd:  ./a b", b"cmd:   ./a\\nb \\\\n")
    assert parse(escaped)[0].command_line == " ./a\nb \\n"


def test_names_that_are_not_utf_8_are_escaped() -> None:
    (part,) = parse(GOOD.replace(b"(1) main", b"(1) \xff a: b=c'2"))
    assert ("a.c", "\\xff a: b=c'2") in rows(part)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.out: the file is empty"),
        (b"desc: I1 cache: 1\n", "a.out:1: the file does not end with a `totals:` line"),
        (b"\x7fELF\x00\n", "a.out:1: not a line of a Callgrind out file"),
        (b"fl=a\n", "a.out:1: a name outside of a part"),
        (GOOD[: GOOD.index(b"totals")], "a.out:19: the file does not end with a `totals:` line"),
        (GOOD[:-1], "a.out:20: the file does not end with a `totals:` line"),
        (GOOD + b"1 2\n" + GOOD, "a.out:22: a `version:` line among the counts"),
        (GOOD + b"part: 2\n", "a.out:21: the file does not end with a `totals:` line"),
        (b"totals: 1\n", "a.out:1: `totals:` outside of a part"),
        (GOOD.replace(b"fn=(2)\n", b"fn=(3)\n"), "a.out:17: function (3) has no name yet"),
        (GOOD.replace(b"* 5\n", b""), "a.out:16: the line with the cost of a call is missing"),
        (GOOD.replace(b"fn=(1) main\n", b""), "a.out:12: counts without `fl=` and `fn=` lines before them"),
        (GOOD.replace(b"1 4 1\n", b"1 4 1 7\n"), "a.out:13: 3 counts, but only 2 events: Ir Dr"),
        (GOOD.replace(b"1 4 1\n", b"1 4 x\n"), "a.out:13: not a line of counts: '4 x'"),
        (GOOD.replace(b"1 4 1\n", b"1 3 1\n"), "a.out:20: the lines add up to 8 Ir, but `totals:` says 9"),
        (GOOD.replace(b"1 4 1\n", b"part: 2\n1 4 1\n"), "a.out:13: a `part:` line among the counts"),
        (GOOD.replace(b"events: Ir Dr", b"events:"), "a.out:8: the `events:` line does not name any event"),
    ],
)
def test_a_damaged_file_is_refused_and_the_place_is_named(data: bytes, message: str) -> None:
    assert refusal(data).message.startswith(message)


def test_a_missing_file_points_to_the_log(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="cannot be read: No such file or directory"):
        parse_callgrind(tmp_path / "absent")
