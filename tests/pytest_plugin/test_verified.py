"""Only interpreters that were verified are looked into."""

from __future__ import annotations

import platform
import sys
from types import SimpleNamespace

import pytest

from cachegrind_bench.pytest_plugin.cpython.verified import VERSIONS, why_unverified


def test_the_interpreters_that_tests_run_on_are_verified() -> None:
    assert not why_unverified()


@pytest.mark.parametrize(
    ("implementation", "machine", "said"),
    [
        (("cpython", (3, 99, 0, "final", 0), ""), "x86_64", "CPython 3.99.0"),
        (("cpython", (*VERSIONS[-1], 0, "alpha", 4), ""), "x86_64", f"CPython 3.{VERSIONS[-1][1]}.0"),
        (("cpython", (3, 14, 1, "final", 0), "t"), "x86_64", "this CPython 3.14.1, free-threaded"),
        (("cpython", (3, 13, 0, "final", 0), "d"), "x86_64", "this CPython 3.13.0, free-threaded"),
        (("cpython", (3, 13, 0, "final", 0), ""), "aarch64", "CPython on aarch64"),
        (("pypy", (7, 3, 19, "final", 0), ""), "x86_64", "pypy 7.3.19"),
    ],
)
def test_any_other_one_is_named(
    monkeypatch: pytest.MonkeyPatch, implementation: tuple[str, object, str], machine: str, said: str
) -> None:
    name, version, flags = implementation
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name=name, version=version))
    monkeypatch.setattr(sys, "abiflags", flags)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert why_unverified().startswith(said)
    assert f"CPython 3.11 to 3.{VERSIONS[-1][1]} on x86_64" in why_unverified()
