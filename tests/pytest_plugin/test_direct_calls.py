"""Machine code that CPython calls as its own functions in C."""

from __future__ import annotations

import ctypes
import platform
import sys

import pytest

from cachegrind_bench.pytest_plugin.cpython.direct_calls import direct


@pytest.mark.parametrize("machine", [platform.machine(), "other"])
def test_a_function_gets_the_contents_and_keeps_no_reference(monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    seen: set[bytes] = set()
    function = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(lambda place: seen.add(ctypes.string_at(place, 6)))
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address
    monkeypatch.setattr(platform, "machine", lambda: machine)
    call = direct(address)
    assert (type(call).__name__ == "builtin_function_or_method") == (machine != "other")
    argument, bound = b"\1ab\0cd", getattr(call, "__self__", None)
    before = sys.getrefcount(argument), sys.getrefcount(bound)
    for _ in range(1000):
        call(*(argument,))
    assert seen == {argument}
    if machine != "other":  # there it is None, of which others make references
        assert (sys.getrefcount(argument), sys.getrefcount(bound)) == before
    assert machine == "other" or repr(call).startswith("<built-in method")
