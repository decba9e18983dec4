"""The reader of Cachegrind's out files: what it takes, and what it refuses rather than return wrong counts."""

from __future__ import annotations

import gzip
from io import BytesIO
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.metrics import LineCost
from cachegrind_bench.valgrind import out_file
from cachegrind_bench.valgrind.out_file import parse_cachegrind, read_cachegrind

if TYPE_CHECKING:
    from cachegrind_bench.valgrind.out_format import OutFile

DATA = Path(__file__).resolve().parent.parent / "data"
RECORDED = sorted((DATA / "valgrind").glob("*/*.cgout*"))
HEADER = b"cmd: ./a\nevents: Ir Dr\n"
GOOD = HEADER + b"fl=a.c\nfn=main\n1 10 2\n2 20\nfn=f\n5 3 1\nsummary: 33 3\n"


def parse(data: bytes, command: list[bytes] | None = None, *, lines: bool = False) -> OutFile:
    return read_cachegrind(BytesIO(data), "a.out", command, lines=lines)


def rows(out: OutFile) -> dict[tuple[str, str], tuple[int, ...]]:
    return {(row.file, row.name): row.counts for row in out.profile.functions}


def refusal(data: bytes, command: list[bytes] | None = None) -> FileFormatError:
    with pytest.raises(FileFormatError) as caught:
        parse(data, command)
    return caught.value


def test_counts_are_added_up_by_file_and_function() -> None:
    out = parse(GOOD)
    assert rows(out) == {("a.c", "main"): (30, 2), ("a.c", "f"): (3, 1)}
    assert out.events == out.profile.events == ("Ir", "Dr")
    assert out.summary == out.profile.totals() == (33, 3)
    assert out.command_line == "./a"


def test_source_lines_are_kept_when_asked_for() -> None:
    assert parse(GOOD, lines=True).profile.lines == (
        LineCost("a.c", "f", 5, (3, 1)),
        LineCost("a.c", "main", 1, (10, 2)),
        LineCost("a.c", "main", 2, (20, 0)),
    )


def test_source_lines_of_everything_odd_are_kept() -> None:
    profile = parse_cachegrind(DATA / "outfiles" / "odd.cgout", lines=True).profile
    main = [(row.line, row.counts) for row in profile.lines if row.name == "main"]
    assert main == [(1, (10, 0, 0)), (2, (20, 3, 0)), (3, (31, 5, 6)), (99, (2, 2, 2))]
    assert LineCost("???", "???", 0, (1000, 200, 300)) in profile.lines
    assert LineCost("diff.c", "shrunk", 4, (0, -1, 0)) in profile.lines


def test_rows_are_sorted_by_file_and_function() -> None:
    assert [row.name for row in parse(GOOD).profile.functions] == ["f", "main"]


def test_everything_odd_the_grammar_allows_is_read() -> None:
    out = parse_cachegrind(DATA / "outfiles" / "odd.cgout")
    main = "/home/some one/C:/main.c"
    assert rows(out) == {
        (main, "main"): (63, 10, 8),
        (main, "operator()(int, std::map<int, int>::iterator) const"): (100, 0, 0),
        (main, "summary: 1 2 3"): (5, 5, 5),
        (main, "#not a comment"): (6, 0, 0),
        (main, "fl=nested"): (7, 0, 1),
        ("???", "???"): (1000, 200, 300),
        ("diff.c", "shrunk"): (0, -1, 0),
        ("big.c", "huge"): (100000000000000000000, 0, 0),
    }
    assert out.command_line == './program --flag "quoted by nobody"'


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_files_of_real_valgrinds_are_read(path: Path) -> None:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if "never-started" in path.name:
        assert "nothing was counted" in refusal(data).message
        return
    out = parse(data)
    last = data.splitlines()[-1]
    assert out.profile.totals() == out.summary == tuple(map(int, last.removeprefix(b"summary: ").split()))
    assert ("Bc" in out.events) == ("branch" in path.name)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_source_lines_change_no_row_of_a_real_file_and_add_up_to_it(path: Path) -> None:
    if "never-started" in path.name:
        return
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    plain, out = parse(data), parse(data, lines=True)
    assert plain.profile.lines == ()
    assert replace(out, profile=replace(out.profile, lines=())) == plain
    sums: dict[tuple[str, str], tuple[int, ...]] = {}
    for row in out.profile.lines:
        sums[row.file, row.name] = tuple(map(add, sums.get((row.file, row.name), [0] * len(out.events)), row.counts))
    assert sums == rows(out)
    # The same once more, without the reading in bulk.
    assert parse(data.replace(b"\nfn=", b"\n# odd\nfn="), lines=True).profile == out.profile


def test_reading_in_bulk_and_line_by_line_give_the_same() -> None:
    data = gzip.decompress((DATA / "valgrind" / "3.24.0" / "true.cache-yes.cgout.gz").read_bytes())
    irregular = data.replace(b"\nfn=", b"\n# odd\nfn=").replace(b"\nfl=", b"\n\nfl=")
    assert parse(irregular).profile == parse(data).profile


def test_pieces_may_end_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    data = (DATA / "valgrind" / "3.16.1" / "true.cache-yes.cgout").read_bytes()
    whole = parse(data)
    for size in (400, 997, 4096, len(data) - 1, len(data)):
        monkeypatch.setattr(out_file, "_CHUNK", size)
        assert parse(data) == whole


def test_events_are_mapped_by_name() -> None:
    data = b"cmd: a\nevents: DLmw D1mw Dw DLmr D1mr Dr ILmr I1mr Ir Bc\nfl=a\nfn=b\n1 9 8 7 6 5 4 3 2 1 0\n"
    counts = parse(data + b"summary: 9 8 7 6 5 4 3 2 1 0\n").profile.counts()
    assert counts.as_tuple() == (1, 2, 3, 4, 5, 6, 7, 8, 9)


def test_names_that_are_not_utf_8_are_escaped() -> None:
    out = parse(b"cmd: \xff\nevents: Ir\nfl=\xe4.c\nfn=f\xc3\xbc\xfe\n1 2\nsummary: 2\n")
    assert rows(out) == {("\\xe4.c", "fü\\xfe"): (2,)}
    assert out.command_line == "\\xff"


def test_the_desc_lines_may_be_missing_and_the_summary_may_have_spaces() -> None:
    assert parse(b"cmd: a\nevents: Ir \nfl=a\nfn=b\n1 2\nsummary:  2  \n").summary == (2,)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.out: the file is empty"),
        (b"cmd: ./a", "a.out:1: the file ends within its header"),
        (b"cmd: ./a\nevents: Ir", "a.out:2: the file ends within its header"),
        (b"# callgrind format\nversion: 1\n", "a.out:2: not a Cachegrind out file"),
        (b"\x7fELF\x00\x01\n", "a.out:1: not a Cachegrind out file"),
        (b"cmd: a\nfl=x\n", "a.out:2: the `events:` line belongs here"),
        (b"cmd: a\nevents: \nsummary: 0\n", "a.out:2: the `events:` line does not name any event"),
        (HEADER, "a.out:3: the file ends without a `summary:` line"),
        (GOOD[: GOOD.index(b"summary")], "a.out:9: the file ends without a `summary:` line"),
        (GOOD[:-1], "a.out:9: the file ends within its `summary:` line"),
        (GOOD[: GOOD.index(b"mary")], "a.out:9: neither a name nor counts: 'sum'"),
        (GOOD + b"summary: 33 3\n", "a.out:10: there is something after the `summary:` line"),
        (GOOD.replace(b"2 20\n", b"2 20\nevents: Ir\n"), "a.out:7: a second header"),
        (GOOD.replace(b"5 3 1", b"5 3 1 1"), "a.out:8: 3 counts, but only 2 events: Ir Dr"),
        (GOOD.replace(b"summary: 33 3", b"summary: 33 3 1"), "a.out:9: 3 counts, but only 2 events"),
        (GOOD.replace(b"5 3 1", b"5 3 x"), "a.out:8: not a line of counts: '3 x'"),
        (GOOD.replace(b"5 3 1", b"five 3 1"), "a.out:8: neither a name nor counts: 'five 3 1'"),
        (GOOD.replace(b"fn=main\n", b""), "a.out:4: counts without `fl=` and `fn=` lines before them"),
        (GOOD.replace(b"5 3 1", b"5 4 1"), "a.out:9: the lines add up to 34 Ir, but `summary:` says 33"),
        (GOOD.replace(b"summary: 33 3", b"summary: 33"), "a.out:9: the lines add up to 3 Dr, but `summary:` says 0"),
        (HEADER + b"summary: 0 0\n", "a.out:3: nothing was counted"),
    ],
)
def test_a_damaged_file_is_refused_and_the_place_is_named(data: bytes, message: str) -> None:
    assert refusal(data).message.startswith(message)


@pytest.mark.parametrize(("first", "second"), [(b"1 10", b"2 20 0 0"), (b"1 10 2 7", b"2 20")])
def test_lines_too_long_and_too_short_do_not_make_up_for_each_other(first: bytes, second: bytes) -> None:
    assert "counts, but only 2 events" in refusal(GOOD.replace(b"1 10 2\n2 20", first + b"\n" + second)).message


def test_a_missing_file_points_to_the_log(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="cannot be read: No such file or directory") as caught:
        parse_cachegrind(tmp_path / "absent")
    assert caught.value.hint == "Valgrind's log says why it wrote no out file"


def test_a_directory_is_an_error_too(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="Is a directory"):
        parse_cachegrind(tmp_path)


# --- The command, which the file has unquoted -------------------------------------------------------------------------

EVIL = b"a\nsummary: 1\nevents: X\nfn=evil\n1 1"
BODY = b"\nevents: Ir Dr\nfl=a.c\nfn=main\n1 10 2\nsummary: 10 2\n"


def test_the_known_command_is_skipped_with_all_its_line_breaks() -> None:
    command = [b"true", EVIL, b"", b"  x ", b"\n", b"b\xff\r\nc", b""]
    out = parse(b"desc: x: y\ncmd: " + b" ".join(command) + BODY, command)
    assert rows(out) == {("a.c", "main"): (10, 2)}
    assert out.command_line == b" ".join(command).decode("utf-8", "backslashreplace")


def test_lines_are_counted_on_after_a_command_with_line_breaks() -> None:
    command = [b"true", EVIL]
    error = refusal(b"cmd: " + b" ".join(command) + BODY.replace(b"10 2\nsum", b"10 x\nsum"), command)
    assert error.line == 9


def test_a_forged_header_is_refused_when_the_command_is_not_known() -> None:
    error = refusal(b"cmd: true " + EVIL + BODY)
    assert error.line == 2
    assert error.hint is not None
    assert "an argument with a line break" in error.hint


def test_the_file_of_a_child_is_read() -> None:
    out = parse(b"cmd: /usr/bin/true x" + BODY, [b"sh", b"-c", b"true x"])
    assert out.command_line == "/usr/bin/true x"


@pytest.mark.parametrize(
    ("text", "command", "matches"),
    [
        (b"/opt/bin/script a b", [b"script", b"a b"], True),  # a script found on PATH
        (b"/opt/bin/script a\nb", [b"script", b"a\nb"], True),
        (b"/opt/bin/xscript a", [b"script", b"a"], False),
        (b"/opt/./script a", [b"./script", b"a"], False),
        (b"/opt/", [b"true"], False),
        (b"true ", [b"true"], False),
    ],
)
def test_the_command_matches_as_valgrind_writes_it(text: bytes, command: list[bytes], matches: bool) -> None:
    broken = [*command, b"x\ny"]
    data = b"cmd: " + text + b" x\ny" + BODY
    if matches:
        assert parse(data, broken).command_line == (text + b" x\ny").decode()
    else:
        assert refusal(data, broken).line == 2
