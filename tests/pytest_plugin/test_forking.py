"""Numbered work in forked processes: each finds the same memory, whatever its number and what became of others."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

_SCRIPT = """
import os, signal
from cachegrind_bench.startup.exchange import FIRST
from cachegrind_bench.pytest_plugin.inner.forking import NoMoreError, fork_for_each
def work(index):
    place = index - FIRST
    if place == 300: raise NoMoreError
    if place in (3, 200): os._exit(3)
    if place == 7: os.kill(os.getpid(), signal.SIGKILL)
    del place
    made = [id(thing) for thing in [*map(float, range(40)), *(10**6 + n for n in range(5)), str(index)]]
    print(hash(tuple(made)), flush=True)
def bury(index, pid, status): print("buried", index - FIRST, status, flush=True)
fork_for_each(work, bury)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measures on Linux only")
@pytest.mark.parametrize("before", [(), ("unshare", "--pid", "--fork", "--map-root-user")], ids=["here", "new"])
def test_memory_does_not_depend_on_numbers_nor_on_deaths(before: tuple[str, ...]) -> None:
    """In a new container, processes have small numbers at first."""
    if before and subprocess.run([*before, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs a namespace of its own for numbers of processes (unshare)")
    done = subprocess.run(
        [*before, sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True, timeout=100
    )
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("buried")] == ["buried 3 768", "buried 7 9", "buried 200 768"]
    assert list(Counter(line for line in lines if not line.startswith("buried")).values()) == [297]
