"""Idle waits until the program has nothing to execute."""

from __future__ import annotations

import os

from cachegrind_bench.hermetic.idle import Idle


def test_it_waits_until_nothing_is_executed_unless_another_file_can_be_read() -> None:
    idle = Idle()
    read_end, write_end = os.pipe()
    for _ in range(3):
        assert not idle.is_called([read_end], 600)
    os.write(write_end, b".")
    assert idle.is_called([read_end], 600)
    os.read(read_end, 1)
    assert not idle.is_called([read_end], 600)  # also if that was so before
    os.close(read_end)
    os.close(write_end)
