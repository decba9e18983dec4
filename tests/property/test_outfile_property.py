"""Out files made at random: written and read again they are the same, and a piece of one never passes for the whole."""

from __future__ import annotations

import contextlib
from io import BytesIO
from operator import add
from typing import TYPE_CHECKING

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.call_graph import every, of_system
from cachegrind_bench.model.metrics import FunctionCost, LineCost, Profile
from cachegrind_bench.valgrind.callgrind_file import parse_callgrind_bytes
from cachegrind_bench.valgrind.out_file import read_cachegrind

if TYPE_CHECKING:
    from collections.abc import Sequence

# What a name may hold: anything but a line break. (A backslash would read like an escape after decoding.)
NAMES = st.one_of(
    st.sampled_from(
        [b"", b"#", b"???", b"fl=x", b"summary: 1", b"1 2 3", b"(below main)", b"a b", b" x ", b"\xff\xfe"]
    ),
    st.binary(max_size=12).map(lambda name: name.replace(b"\n", b"\r").replace(b"\\", b"/")),
)
# Callgrind numbers its names, and takes what follows the number.
FULL_NAMES = NAMES.filter(lambda name: not name.startswith(b"("))
EVENTS = st.lists(st.sampled_from(["Ir", "Dr", "Dw", "Bc", "x:y"]), min_size=1, max_size=4, unique=True)
COUNTS = st.integers(min_value=0, max_value=10**12)
Lines = list[tuple[int, list[int]]]
Blocks = list[tuple[bytes, bytes, Lines]]


@st.composite
def blocks(draw: st.DrawFn, width: int, names: st.SearchStrategy[bytes] = NAMES) -> Blocks:
    """Draw functions with lines of at most `width` counts; at least one count is not zero."""
    line = st.tuples(st.integers(min_value=0, max_value=9999), st.lists(COUNTS, max_size=width))
    drawn = draw(st.lists(st.tuples(names, names, st.lists(line, max_size=4)), max_size=6))
    return [*drawn, (b"last.c", b"last", [(1, [1])])]


def expected(found: Blocks, events: Sequence[str]) -> Profile:
    sums: dict[tuple[str, str], list[int]] = {}
    for file, name, lines in found:
        key = (file.decode("utf-8", "backslashreplace"), name.decode("utf-8", "backslashreplace"))
        for _, counts in lines:
            row = sums.setdefault(key, [0] * len(events))
            for column, count in enumerate(counts):
                row[column] += count
    rows = [FunctionCost(file, name, tuple(counts)) for (file, name), counts in sorted(sums.items())]
    return Profile(events=tuple(events), functions=tuple(rows))


def with_lines(found: Blocks, events: Sequence[str]) -> Profile:
    """Return the expected profile with its source lines."""
    sums: dict[tuple[str, str, int], tuple[int, ...]] = {}
    for file, name, lines in found:
        for number, counts in lines:
            (row,) = expected([(file, name, [(number, counts)])], events).functions
            key = (row.file, row.name, number)
            sums[key] = tuple(map(add, sums.get(key, [0] * len(events)), row.counts))
    return replace(expected(found, events), lines=tuple(LineCost(*key, counts) for key, counts in sorted(sums.items())))


def written(found: Blocks, events: Sequence[str], command: bytes = b"./a") -> bytes:
    """Write the file as Cachegrind does."""
    parts = [b"desc: I1 cache: none\ncmd: ", command, b"\nevents: ", " ".join(events).encode(), b"\n"]
    for file, name, lines in found:
        parts += [b"fl=", file, b"\nfn=", name, b"\n"]
        parts += [" ".join(map(str, [number, *counts])).encode() + b"\n" for number, counts in lines]
    totals = expected(found, events).totals()
    return b"".join([*parts, b"summary: ", " ".join(map(str, totals)).encode(), b"\n"])


@st.composite
def files(draw: st.DrawFn) -> tuple[list[str], Blocks]:
    events = draw(EVENTS)
    return events, draw(blocks(len(events)))


@given(files(), st.integers(min_value=0, max_value=3))
def test_what_is_written_is_read_again(file: tuple[list[str], Blocks], comments: int) -> None:
    events, found = file
    data = written(found, events)
    if comments:
        data = data.replace(b"\nfn=", b"\n# note" * comments + b"\n\nfn=")
    out = read_cachegrind(BytesIO(data), "a.out")
    assert out.profile == expected(found, events)
    assert out.summary == out.profile.totals()
    assert read_cachegrind(BytesIO(data), "a.out", lines=True).profile == with_lines(found, events)


@given(files())
def test_no_piece_of_a_file_passes_for_the_whole(file: tuple[list[str], Blocks]) -> None:
    data = written(file[1], file[0])
    for end in range(len(data)):
        with contextlib.suppress(FileFormatError):
            read_cachegrind(BytesIO(data[:end]), "a.out")
            raise AssertionError(data[:end])


@given(files(), st.binary(min_size=1, max_size=3), st.data())
def test_a_damaged_byte_is_refused_or_changes_no_total(
    file: tuple[list[str], Blocks], damage: bytes, data: st.DataObject
) -> None:
    whole = written(file[1], file[0])
    begin = whole.index(b"\nfl=") + 1
    place = data.draw(st.integers(min_value=begin, max_value=whole.rindex(b"\nsummary")))
    with contextlib.suppress(FileFormatError):
        out = read_cachegrind(BytesIO(whole[:place] + damage + whole[place + 1 :]), "a.out")
        assert out.summary == read_cachegrind(BytesIO(whole), "a.out").summary


ARGUMENTS = st.lists(
    st.one_of(
        st.sampled_from([b"", b"\n", b"\nevents: Ir", b"a\nsummary: 1\nevents: X\nfn=evil\n1 1", b"\ncmd: x"]),
        st.binary(max_size=20).map(lambda text: text.replace(b"\0", b"\n")),
    ),
    min_size=1,
    max_size=4,
)


@given(files(), ARGUMENTS)
@example((["Ir"], [(b"a", b"b", [(1, [1])])]), [b"x\nevents: Ir\nfl=a\nfn=b\n1 5\nsummary: 5"])
@example((["Ir"], [(b"a", b"b", [(1, [1])])]), [b"x\nevents: Ir\nfl=a\nfn=b\n1 5\nsummary: 5\n#"])
def test_no_command_line_changes_the_counts(file: tuple[list[str], Blocks], command: list[bytes]) -> None:
    events, found = file
    data = written(found, events, b" ".join(command))
    known = read_cachegrind(BytesIO(data), "a.out", command)
    assert known.profile == expected(found, events)
    assert known.command_line == b" ".join(command).decode("utf-8", "backslashreplace")
    with contextlib.suppress(FileFormatError):
        assert read_cachegrind(BytesIO(data), "a.out").profile == known.profile
    with contextlib.suppress(FileFormatError):
        assert read_cachegrind(BytesIO(data), "a.out", [b"other"]).profile == known.profile


@given(files(), st.binary(min_size=1, max_size=3), st.data())
def test_source_lines_decide_neither_what_is_read_nor_what_is_refused(
    file: tuple[list[str], Blocks], damage: bytes, data: st.DataObject
) -> None:
    whole = written(file[1], file[0])
    place = data.draw(st.integers(min_value=0, max_value=len(whole)))
    damaged = whole[:place] + damage + whole[place + 1 :]
    found: list[Profile | str] = []
    for lines in (False, True):
        try:
            found.append(replace(read_cachegrind(BytesIO(damaged), "a.out", lines=lines).profile, lines=()))
        except FileFormatError as error:
            found.append(error.message)
    assert found[0] == found[1]


@given(st.binary(max_size=200))
def test_any_bytes_are_an_error_and_never_a_crash(data: bytes) -> None:
    for prefix in (b"", b"cmd: a\nevents: Ir\nfl=a\nfn=b\n", b"events: Ir\nfl=a\nfn=b\n"):
        for lines in (False, True):
            with contextlib.suppress(FileFormatError):
                read_cachegrind(BytesIO(prefix + data), "a.out", lines=lines)
            with contextlib.suppress(FileFormatError):
                parse_callgrind_bytes(prefix + data, "a.out", lines=lines, calls=every if lines else of_system)


def written_callgrind(found: Blocks, events: Sequence[str]) -> bytes:
    """Write the file as Callgrind does with --compress-strings=no, with a call and a jump in each function."""
    parts = [b"version: 1\npid: 1\ncmd:  ./a\npart: 1\n\npositions: line\nevents: ", " ".join(events).encode(), b"\n"]
    for file, name, lines in found:
        parts += [b"\nfl=", file, b"\nfn=", name, b"\n"]
        parts += [" ".join(map(str, [number, *counts])).encode() + b"\n" for number, counts in lines]
        parts += [b"cfn=", name, b"\ncalls=1 5\n+3 99 99\njump=1 +2\n* \n"]
    totals = expected(found, events).totals()
    return b"".join([*parts, b"\ntotals: ", " ".join(map(str, totals)).encode(), b"\n"])


@st.composite
def callgrind_files(draw: st.DrawFn) -> tuple[list[str], Blocks]:
    events = draw(EVENTS)
    return events, draw(blocks(len(events), FULL_NAMES))


@given(callgrind_files())
def test_what_callgrind_writes_is_read_again(file: tuple[list[str], Blocks]) -> None:
    events, found = file
    (part,) = parse_callgrind_bytes(written_callgrind(found, events), "a.out")
    assert part.profile == expected(found, events)
    (part,) = parse_callgrind_bytes(written_callgrind(found, events), "a.out", lines=True, calls=every)
    assert part.profile == with_lines(found, events)
    assert part.calls is not None
    assert sum(calls.number for calls in part.calls.calls.values()) == len(found)
    assert part.summary == part.profile.totals()


@settings(max_examples=50)  # each is read a hundred times
@given(callgrind_files())
def test_no_piece_of_a_callgrind_file_passes_for_the_whole(file: tuple[list[str], Blocks]) -> None:
    data = written_callgrind(file[1], file[0])
    for end in range(len(data)):
        with contextlib.suppress(FileFormatError):
            parse_callgrind_bytes(data[:end], "a.out")
            raise AssertionError(data[:end])
