"""What says that the program has nothing to execute: once for each question."""

from __future__ import annotations

import select

from cachegrind_bench.hermetic.idle import Idle


def test_each_question_has_one_answer() -> None:
    idle = Idle()
    assert not select.select([idle], [], [], 0.05)[0], "nobody has asked"
    for _ in range(3):
        idle.ask()
        idle.ask()
        assert select.select([idle], [], [], 10)[0]
        idle.take()
        assert not select.select([idle], [], [], 0.05)[0]
