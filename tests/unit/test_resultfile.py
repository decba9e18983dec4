"""A result file that was read: profiles are parsed when they are wanted, in any layout."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.codec import ResultFile, decode, encode
from cachegrind_bench.model.metrics import LineCost
from tests.unit.samples import VECTOR, benchmark, failed_benchmark, profile_of, result, rich_benchmark, times

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Result

ROWS = b"[[0,1,1353,51,50,255,12,3,233,0,0]]"


def opened(data: bytes) -> ResultFile:
    return ResultFile(data, "r.json")


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


def test_all_but_the_profiles_is_read_at_once_and_the_profiles_on_demand() -> None:
    value = many()
    source = opened(encode(value))
    assert source.name == "r.json"
    assert source.result == replace(value, benchmarks=tuple(replace(item, profile=None) for item in value.benchmarks))
    assert [source.profile(item.id) for item in value.benchmarks] == [item.profile for item in value.benchmarks]
    assert source.profile("no such benchmark") is None


@pytest.mark.parametrize("form", [{"indent": 2}, {"indent": "\t"}, {"separators": (" ,\r\n ", " : ")}, {}])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_other_layouts_and_orders_of_keys_are_read(form: Any, backwards: bool, ascii_only: bool) -> None:
    def turned(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return dict(reversed(pairs) if backwards else pairs)

    value = many()
    data = json.dumps(json.loads(encode(value), object_pairs_hook=turned), ensure_ascii=ascii_only, **form).encode()
    assert decode(data, "r.json") == value


def test_profiles_that_nobody_asks_for_are_not_read_row_by_row() -> None:
    data = encode(result(benchmark(id="a"), benchmark(id="b"))).replace(ROWS, b"[[0,1]]", 1)
    source = opened(data)
    assert source.profile("b") == benchmark().profile
    with pytest.raises(FileFormatError, match=r"benchmarks\[0\]\.profile\.functions\[0\]: it has 2 numbers"):
        source.profile("a")


@pytest.mark.parametrize("rows", [b"[[0,1]", b"[[0,1]]]", b"[", b"[[1]]5", b"[[1]],,", b"[1]}"])
def test_what_only_looks_like_a_profile_is_not_json(rows: bytes) -> None:
    assert refusal(encode(result()).replace(ROWS, rows)).startswith("r.json:1: not JSON: ")


def test_such_keys_elsewhere_are_passed_over_as_other_unknown_keys_are() -> None:
    data = encode(result()).replace(b'{"benchmarks"', b'{"functions":[[1,2]],"a":{"lines":[7]},"benchmarks"')
    assert decode(data, "r.json") == result()


def test_what_follows_the_document_is_refused() -> None:
    data = encode(result())
    assert refusal(data + b"{}") == f"r.json:2: not JSON: trailing characters (byte {len(data) + 2})"
