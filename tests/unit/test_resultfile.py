"""An open result file: profiles are read when they are wanted, and no layout, border or forgery confuses what they are."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model import skeleton
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.metrics import LineCost
from cachegrind_bench.model.resultfile import open_result
from tests.unit.samples import VECTOR, benchmark, failed_benchmark, profile_of, result, rich_benchmark, times

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.model.resultfile import ResultFile

SMALLEST_WINDOW = 31
ROWS = b"[[0,1,1353,51,50,255,12,3,233,0,0]]"


def opened(data: bytes) -> ResultFile:
    return open_result(io.BytesIO(data), "r.json")


def many() -> Result:
    """Return a result with all there is: hostile text, lines, no profile, a failure."""
    lines = (LineCost("main.c", "main", 1, VECTOR.as_tuple()), LineCost("main.c", "main", 2, VECTOR.as_tuple()))
    whole = times(VECTOR, 2)
    lined = benchmark(id="lined", counts=whole, profile=replace(profile_of(main=whole), lines=lines))
    keys = 'see "functions":[[1]] and {"lines":[2]}, \\"functions":[3'
    return result(rich_benchmark(), lined, failed_benchmark(error=keys), benchmark(id=keys, profile=None))


def refusal(data: bytes) -> str:
    with pytest.raises(FileFormatError) as caught:
        opened(data)
    return str(caught.value)


def profile_refusal(data: bytes) -> str:
    """Return why the profile of a file is refused that can be opened."""
    source = opened(data)
    with pytest.raises(FileFormatError) as caught:
        source.profile("sieve")
    return str(caught.value)


def test_all_but_the_profiles_is_read_at_once_and_the_profiles_on_demand() -> None:
    value = many()
    source = opened(encode(value))
    assert source.name == "r.json"
    assert source.result == replace(value, benchmarks=tuple(replace(item, profile=None) for item in value.benchmarks))
    assert [source.profile(item.id) for item in value.benchmarks] == [item.profile for item in value.benchmarks]
    assert [source.has_profile(item.id) for item in value.benchmarks] == [True, True, False, False]
    assert source.profile("no such benchmark") is None
    assert not source.has_profile("no such benchmark")


@pytest.mark.parametrize("window", [*range(SMALLEST_WINDOW, 130), 1000, 5000])
def test_the_borders_of_what_is_read_at_a_time_do_not_matter(monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    value = many()
    plain, spaced = encode(value), json.dumps(json.loads(encode(value)), indent=3).encode()
    monkeypatch.setattr(skeleton, "_CHUNK", window)
    assert decode(plain, "r.json") == value
    assert decode(spaced, "r.json") == value


@pytest.mark.parametrize("form", [{"indent": 2}, {"indent": "\t"}, {"separators": (" ,\r\n ", " : ")}, {}])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_other_layouts_and_orders_of_keys_are_read(form: Any, backwards: bool, ascii_only: bool) -> None:
    def turned(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return dict(reversed(pairs) if backwards else pairs)

    value = many()
    data = json.dumps(json.loads(encode(value), object_pairs_hook=turned), ensure_ascii=ascii_only, **form).encode()
    assert decode(data, "r.json") == value


@pytest.mark.parametrize("blanks", [0, 8, 9, 1000])
def test_any_number_of_blanks_may_stand_around_a_colon(blanks: int) -> None:
    data = encode(many())
    for key in (b'"functions"', b'"lines"'):
        data = data.replace(key + b":[[", key + b" " * blanks + b":" + b"\n" * blanks + b"[" + b" " * blanks + b"[")
    assert decode(data, "r.json") == many()


def test_profiles_that_nobody_asks_for_are_not_read_row_by_row() -> None:
    data = encode(result(benchmark(id="a"), benchmark(id="b"))).replace(ROWS, b"[[0,1]]", 1)
    source = opened(data)
    assert source.profile("b") == benchmark().profile
    with pytest.raises(FileFormatError, match=r"benchmarks\[0\]\.profile\.functions\[0\]: it has 2 numbers"):
        source.profile("a")


@pytest.mark.parametrize("wrong", [b"-1353", b"null", b'"x"', b"{}", b"true"])
def test_a_profile_that_is_more_than_numbers_is_refused_at_once(wrong: bytes) -> None:
    message = refusal(encode(result()).replace(b"[[0,1,1353", b"[[0,1," + wrong))
    assert message == "r.json: benchmarks[0].profile.functions[0]: expected whole numbers that are not negative"


@pytest.mark.parametrize("wrong", [b"1353.0", b"1e3", b"NaN", b"-Infinity"])
def test_a_profile_with_a_fraction_is_refused_at_once(wrong: bytes) -> None:
    message = refusal(encode(result()).replace(b"[[0,1,1353", b"[[0,1," + wrong))
    assert message.startswith("r.json: not a result file: it holds the number ")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (b"[[0,1,,1353]]", "not JSON: Expecting value (byte {})"),
        (b"[[0,1 1353]]", "not JSON: Expecting ',' delimiter (byte {})"),
        (b"[[0,1,01353]]", "not JSON: Expecting ',' delimiter (byte {})"),
        (b"[0]],[[1]", "not JSON: Extra data (byte {})"),
        (b"[[0,1," + b"9" * 5000 + b"]]", "Exceeds the limit"),
        (b"[" * 50_000 + b"]" * 50_000, "maximum recursion depth exceeded"),
    ],
)
def test_a_profile_that_is_no_json_is_refused_when_it_is_read(rows: bytes, message: str) -> None:
    data = encode(result())
    message = message.replace(
        "{}", str(data.index(ROWS) + 1 + {b"[[0,1,,": 6, b"[[0,1 1": 6, b"[[0,1,0": 7}.get(rows[:7], 3))
    )
    assert profile_refusal(data.replace(ROWS, rows)).startswith(f"r.json: benchmarks[0].profile.functions: {message}")


@pytest.mark.parametrize("rows", [b"[[0,1]", b"[[0,1]]]", b"[", b"[[1]]5", b"[[1]],,", b"[1]}"])
def test_what_only_looks_like_a_profile_is_no_json(rows: bytes) -> None:
    assert refusal(encode(result()).replace(ROWS, rows)).startswith("r.json:1: not JSON: ")


@pytest.mark.parametrize("forged", [b"0.5", b"0.0", b"[5,10]", b"[[5,10]]", b"[0]", b"[[5],[10]]"])
@pytest.mark.parametrize("key", [b'"functions":', b'"function\\u0073":'])
def test_what_stands_for_a_profile_while_it_is_read_cannot_be_forged(forged: bytes, key: bytes) -> None:
    data = encode(result()).replace(b'"functions":' + ROWS, key + forged)
    with pytest.raises(FileFormatError):
        decode(data, "r.json")


def test_the_same_key_twice_is_refused_even_where_its_lists_are_left_out() -> None:
    data = encode(result()).replace(ROWS, ROWS + b',"functions":' + ROWS)
    assert refusal(data) == "r.json: not a result file: the key 'functions' stands twice in one object"


def test_such_keys_elsewhere_are_passed_over_as_other_unknown_keys_are() -> None:
    data = encode(result()).replace(b'{"benchmarks"', b'{"functions":[[1,2]],"a":{"lines":[7]},"benchmarks"')
    assert decode(data, "r.json") == result()


def test_a_file_cut_off_inside_a_profile_is_told_with_the_place() -> None:
    data = encode(result())
    place = data.index(ROWS) + 8
    assert refusal(data[:place]) == f"r.json:1: not JSON: Expecting ',' delimiter (byte {place + 1})"


def test_a_place_after_left_out_profiles_is_that_of_the_file() -> None:
    data = json.dumps(json.loads(encode(many())), indent=1, ensure_ascii=False).encode()
    place = data.rindex(b'"wall_ms"')
    line = data[:place].count(b"\n") + 1
    message = refusal(data[:place] + b"?" + data[place:])
    assert message.startswith(f"r.json:{line}: not JSON: ")
    assert message.endswith(f"(byte {place + 1})")
    message = refusal(data[:place] + b"\xff" + data[place:])
    assert message == f"r.json: not a result file: it is not UTF-8 (byte {place + 1})"


def test_what_follows_the_document_is_refused() -> None:
    data = encode(result())
    assert refusal(data + b"{}") == f"r.json:2: not JSON: Extra data (byte {len(data) + 1})"


def test_a_file_that_shrinks_between_opening_and_reading_is_told() -> None:
    stream = io.BytesIO(encode(result()))
    source = open_result(stream, "r.json")
    stream.truncate(stream.getvalue().index(ROWS) + 5)
    with pytest.raises(FileFormatError, match=r"^r\.json: it became shorter while it was read$"):
        source.profile("sieve")


@pytest.mark.parametrize("other", [b"\xff" * len(ROWS), b"?" * len(ROWS), b" " * len(ROWS)])
def test_a_file_that_changes_between_opening_and_reading_is_told(other: bytes) -> None:
    stream = io.BytesIO(encode(result()))
    source = open_result(stream, "r.json")
    stream.getbuffer()[:] = stream.getvalue().replace(ROWS, other)
    with pytest.raises(FileFormatError, match=r"^r\.json: benchmarks\[0\]\.profile\.functions: "):
        source.profile("sieve")


class Broken(io.BytesIO):
    """A file whose bytes cannot be read, or whose end cannot be found."""

    def __init__(self, data: bytes, failing: str) -> None:
        super().__init__(data)
        self.failing = failing

    def read(self, size: int | None = -1, /) -> bytes:
        self._fail("read")
        return super().read(size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._fail("seek")
        return super().seek(offset, whence)

    def _fail(self, name: str) -> None:
        if name == self.failing:
            raise OSError(5, "Input/output error")


@pytest.mark.parametrize("failing", ["read", "seek"])
def test_a_disk_that_fails_is_told_with_the_file(failing: str) -> None:
    with pytest.raises(FileFormatError, match=r"^r\.json: cannot be read: Input/output error$"):
        open_result(Broken(encode(result()), failing), "r.json")
    stream = Broken(encode(result()), "")
    source = open_result(stream, "r.json")
    stream.failing = failing
    with pytest.raises(FileFormatError, match=r"^r\.json: cannot be read: Input/output error$"):
        source.profile("sieve")


def test_what_is_parsed_in_one_piece_is_bounded() -> None:
    rows = [[0, 1, *VECTOR.as_tuple()], *([number, 0, *[0] * 9] for number in range(2, 400))]
    value = json.loads(encode(result()))
    value["strings"] += ["x"] * 400
    value["benchmarks"][0]["profile"]["functions"] = rows
    data = json.dumps(value).encode()
    assert open_result(io.BytesIO(data), "r.json", 100_000).profile("sieve") is not None
    source = open_result(io.BytesIO(data), "r.json", 6000)
    with pytest.raises(FileFormatError, match=r"^r\.json: benchmarks\[0\]\.profile\.functions: its .* bytes are over"):
        source.profile("sieve")
    with pytest.raises(FileFormatError, match=r"^r\.json: it has more than 1,000 bytes beside its profiles$"):
        open_result(io.BytesIO(data), "r.json", 1000)


def test_odd_lists_do_not_make_reading_slow() -> None:
    looked_at = 0

    class Counting(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            nonlocal looked_at
            data = super().read(size)
            looked_at += len(data)
            return data

    data = b"{" + b",".join(b'"lines":[-1]' for _ in range(100_000)) + b"}"
    with pytest.raises(FileFormatError, match="stands twice"):
        open_result(Counting(data), "r.json")
    assert looked_at < 1.1 * len(data)
