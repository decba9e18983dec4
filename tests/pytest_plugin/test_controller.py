"""What ends pytest ends it, whatever hooks of others catch."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

_SWALLOWS = """
import os, sys
from cachegrind_bench.pytest_plugin.outer.controller import tidied_up
try:
    with tidied_up() as check:
        check()
        try:
            os.kill(os.getpid(), int(sys.argv[1]))
        except BaseException:
            print("caught")
        check()
        print("measures more")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    ("number", "status", "said"),
    [
        (signal.SIGINT, 0, "caught\ninterrupted\n"),
        (signal.SIGTERM, -signal.SIGTERM, "caught\n"),
        (signal.SIGHUP, -signal.SIGHUP, "caught\n"),
    ],
)
def test_an_interrupt_that_somebody_caught_comes_again(number: signal.Signals, status: int, said: str) -> None:
    argv = [sys.executable, "-c", _SWALLOWS, str(int(number))]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, said, "")
