"""Machine code that CPython calls as its own functions in C."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from cachegrind_bench.pytest_plugin.cpython import direct_calls
from cachegrind_bench.pytest_plugin.cpython.direct_calls import direct

# Whatever is kept until the end is freed after the modules that made it.
KEPT = """
import builtins, ctypes, sys
from cachegrind_bench.pytest_plugin.cpython.direct_calls import direct
from cachegrind_bench.region.requests import RUNNING_ON_VALGRIND, Request, Requests
builtins.kept = sys.kept = direct(Requests().address)
"""


@pytest.mark.parametrize("verified", [True, False])
def test_a_function_gets_the_contents_and_keeps_no_reference(monkeypatch: pytest.MonkeyPatch, verified: bool) -> None:
    seen: set[bytes] = set()
    function = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(lambda place: seen.add(ctypes.string_at(place, 6)))
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address
    monkeypatch.setattr(direct_calls, "IS_VERIFIED", verified)
    call = direct(address)
    assert (type(call).__name__ == "builtin_function_or_method") == verified
    argument, bound = b"\1ab\0cd", getattr(call, "__self__", None)
    before = sys.getrefcount(argument), sys.getrefcount(bound)
    for _ in range(1000):
        call(*(argument,))
    assert seen == {argument}
    if verified:  # else it is None, of which others make references
        assert (sys.getrefcount(argument), sys.getrefcount(bound)) == before
        assert repr(call).startswith("<built-in method")


def test_a_function_that_is_kept_to_the_end_does_not_crash_the_interpreter() -> None:
    assert subprocess.run([sys.executable, "-c", KEPT], check=False).returncode == 0
