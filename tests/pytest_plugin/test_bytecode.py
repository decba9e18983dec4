"""Code that was specialised for one type forgets it, also while it runs, and goes on to do the same."""

from __future__ import annotations

import ctypes
import dis
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType

import pytest

from cachegrind_bench.pytest_plugin.cpython.bytecode import executed, forget_specialised, keep_specialised, restoring


@pytest.fixture(autouse=True)
def _untraced() -> Iterator[None]:
    """Where calls are traced, as for coverage, CPython 3.11 specialises nothing."""
    before = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(before)


class Box:
    def __init__(self, value: int) -> None:
        self.value = value


def read(box: Box) -> int:
    return box.value + box.value


def total(boxes: list[Box]) -> Iterator[int]:
    for box in boxes:
        yield read(box)


def instructions(function: FunctionType) -> list[str]:
    return [one.opname for one in dis.get_instructions(function, adaptive=True)]


def plain(function: FunctionType) -> list[str]:
    return [one.opname for one in dis.get_instructions(function)]


def used() -> FunctionType:
    """Return a function whose code nobody else has executed, specialised for `Box`."""
    fresh = FunctionType(read.__code__.replace(co_firstlineno=1), {})
    for number in range(100):
        assert fresh(Box(number)) == 2 * number
    assert instructions(fresh) != plain(fresh)
    return fresh


def test_the_code_that_is_called_is_collected() -> None:
    before = sys.getprofile()
    with executed() as codes:
        list(total([Box(1)]))
    assert {read.__code__, total.__code__, Box.__init__.__code__} <= codes
    assert used.__code__ not in codes
    assert sys.getprofile() is before


def test_what_is_forgotten_is_specialised_anew_by_the_next_calls() -> None:
    function = used()
    specialised = instructions(function)
    forget_specialised({function.__code__})
    assert instructions(function) == plain(function)
    assert [function(Box(number)) for number in range(5)] == [0, 2, 4, 6, 8]
    assert instructions(function) == specialised


def test_code_goes_on_where_it_is_when_it_forgets() -> None:
    boxes = [Box(number) for number in range(300)]
    with executed() as codes:
        running = total(boxes)
        first = [next(running) for _ in range(100)]
    forget_specialised(codes)
    assert [*first, *running] == [2 * number for number in range(300)]


class Other(Box):
    pass


def test_what_meets_several_types_is_not_specialised_again_and_again() -> None:
    kinds = [Box, Other] * 5
    met: list[int] = []
    for keep in (False, True):
        function = used()
        seen = set[bytes]()
        if keep:
            keep_specialised({function.__code__})
        for kind in kinds:
            for number in range(200):
                assert function(kind(number)) == 2 * number
            seen.add(version(function))
        met.append(len(seen))
    often, once = met
    assert often > once == 1


@pytest.mark.parametrize("misses", [20, 4000])
def test_code_that_misses_often_is_put_back_before_each_call(misses: int) -> None:
    function, prepared = used(), list[int]()
    kept = keep_specialised({function.__code__})
    ((place, code),) = kept.items()
    for number in range(misses):
        function(Other(number))
    assert ctypes.string_at(place, len(code)) != code
    prepare = restoring(kept, lambda: prepared.append(1))
    prepare()
    assert prepared == [1]
    assert (ctypes.string_at(place, len(code)) == code) == (misses == 4000)


def version(function: FunctionType) -> bytes:
    """Return the version of the type that its first attribute is specialised for."""
    begin = id(function.__code__) + CodeType.__basicsize__
    load = next(one for one in dis.get_instructions(function) if one.opname == "LOAD_ATTR")
    return ctypes.string_at(begin + load.offset + 4, 4)  # after the instruction and its counter
