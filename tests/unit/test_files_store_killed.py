"""A process killed at any step while it adds or removes leaves a file store in which nothing is wrong."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.store.files import FileStore
from tests.unit.stored import (
    NAMES,
    RECORDS,
    fold,
    problems,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def killed_at(step: int, act: Callable[[], object]) -> bool:
    """Do something in a process of its own that is killed before its `step`th call that opens, makes, links or removes.

    Return whether it was; False means that it was done before.
    """
    child = os.fork()
    if not child:
        left = [step]

        def strike(event: str, _: tuple[object, ...]) -> None:
            if event in {"open", "os.mkdir", "os.link", "os.remove", "os.rename", "os.listdir", "os.scandir"}:
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(strike)
            act()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert status in {0, signal.SIGKILL}
    return status == signal.SIGKILL


def test_a_writer_killed_at_any_step_leaves_whole_records_and_nothing_wrong(tmp_path: Path) -> None:
    steps = 0
    for steps in range(1, 200):
        store = FileStore(tmp_path / str(steps))
        killed = killed_at(steps, partial(store.add, RECORDS[:3]))
        assert {*store.names()} <= {*NAMES[:3]}
        assert problems(store) == []
        assert store.add(RECORDS[:3]) <= (3 if killed else 0)
        assert list(store.read()) == RECORDS[:3]
        if not killed:
            break
    assert 10 < steps < 199


@pytest.mark.parametrize("folded", [False, True])
def test_a_removal_killed_at_any_step_removes_nothing_else(tmp_path: Path, folded: bool) -> None:
    steps = 0
    for steps in range(1, 200):
        store = FileStore(tmp_path / str(steps))
        store.add(RECORDS[:4])
        if folded:
            fold(store, RECORDS[:4])
        killed = killed_at(steps, partial(store.remove, NAMES[:2]))
        assert {*NAMES[2:4]} <= {*store.names()} <= {*NAMES[:4]}
        assert problems(store) == []
        store.remove(NAMES[:2])
        assert list(store.read()) == RECORDS[2:4]
        if not killed:
            break
    assert 5 < steps < 199
