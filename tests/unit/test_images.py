"""Which processes there were: by their numbers, which may come again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.hermetic import process_memory
from cachegrind_bench.hermetic.execution import Execution
from cachegrind_bench.hermetic.images import ProcessTable

if TYPE_CHECKING:
    import pytest


def test_a_number_that_comes_again_is_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    began = {1: "10", 200: "20"}
    monkeypatch.setattr(process_memory, "group_of", lambda thread: thread)
    monkeypatch.setattr(process_memory, "parent_of", lambda _pid: 1)
    monkeypatch.setattr(process_memory, "children_of", lambda _pid: [])
    monkeypatch.setattr(process_memory, "started", lambda pid: began[pid])
    table = ProcessTable(1, Execution((), {}, "/", seed=b"seed", tool="callgrind", scratch="/none", forks_alike=True))
    first = table.of_thread(200)
    first.drawn = 7
    table.end(200)
    assert table.of_thread(200) is first, "its last calls are its own"
    began[200] = "90"
    again = table.of_thread(200)
    assert (again.drawn, again.stream) == (0, first.stream)
    assert [image.pid for image in table.images] == [1, 200, 200]
