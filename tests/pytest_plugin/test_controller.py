"""What ends pytest ends it, whatever hooks of others catch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from cachegrind_bench.pytest_plugin.outer.controller import Controller
from tests.unit.samples import result

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


def test_a_result_whose_reader_did_not_come_before_an_interrupt_is_kept_and_not_called_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("cachegrind_bench.waiting.Waiting.look", Mock(side_effect=KeyboardInterrupt))
    controller, terminal = Controller(Mock(stash={}, rootpath=tmp_path), Mock(output=tmp_path / "pipe"), Mock()), Mock()
    controller._result = result()
    with pytest.raises(KeyboardInterrupt) as caught:
        controller._write(result())
    (file,) = (tmp_path / ".cg-bench/unstored").iterdir()
    assert caught.value.__notes__ == [f"what was measured is kept in {file}"]
    controller.pytest_terminal_summary(terminal)
    assert not [call for call in terminal.write_line.call_args_list if "written to" in call.args[0]]
