"""When a wait under the pinned clock ends, without a kernel: what the threads of the run do is made up here."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import select
import struct
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.hermetic.clock import PinnedTime
from cachegrind_bench.hermetic.execution import Clock, Image
from cachegrind_bench.hermetic.images import Process
from cachegrind_bench.hermetic.process_memory import Threads
from cachegrind_bench.hermetic.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Iterator

SECOND = 1_000_000_000
FUTEX_WAIT, FUTEX_WAIT_BITSET = 0, 9


class Run(Threads):
    """Threads that do what a test says."""

    def __init__(self) -> None:
        super().__init__({})
        self.doing, self.cpu, self.signal = self.ASLEEP, 0.0, False

    def state(self, held: set[int]) -> str:
        assert held == {os.getpid()}
        return self.doing

    def cpu_s(self) -> float:
        return self.cpu

    def has_signal(self, thread: int, mask: int | None) -> bool:
        del thread, mask
        return self.signal


class Held(Waits):
    """The waits of this process; `sent` are the answers, by the number of the call."""

    def __init__(self, listener: int) -> None:
        self.sent: list[tuple[int, dict[str, Any]]] = []
        self.pinned = PinnedTime(Clock(0, SECOND // 1000))
        super().__init__(
            listener,
            self.pinned,
            numbers={},
            poke=lambda *_: None,
            send=lambda ident, **how: self.sent.append((ident, how)),
        )
        self.run = self._threads = Run()
        self.process = Process(b"", Image(os.getpid(), "", [], 0, forked=False), 0)
        self.kept: list[object] = []

    def ask(self, ident: int, name: str, *args: int) -> bool:
        return self.hold(ident, os.getpid(), name, [*args, *[0] * (6 - len(args))], self.process)

    def at(self, seconds: float) -> int:
        """Return where this time is in our memory."""
        whole, fraction = divmod(int(seconds * SECOND), SECOND)
        return self.bytes(struct.pack("=qq", whole, fraction))

    def bytes(self, data: bytes) -> int:
        self.kept.append(ctypes.create_string_buffer(data, len(data)))
        return ctypes.addressof(self.kept[-1])  # type: ignore[arg-type]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    monkeypatch.setattr(fcntl, "ioctl", lambda *_: 0)  # they are all waiting yet
    quiet, end = os.pipe()
    yield Held(quiet)
    os.close(quiet)
    os.close(end)


def test_where_all_wait_the_shortest_ends_first_and_time_goes_on_by_it(held: Held) -> None:
    assert held.ask(1, "nanosleep", held.at(10))
    assert held.ask(2, "nanosleep", held.at(3))
    assert held.settle() == 0
    assert (held.sent, held.pinned.waited_ns) == ([(2, {})], 3 * SECOND)
    held.settle()
    assert (held.sent[1:], held.pinned.waited_ns) == ([(1, {})], 10 * SECOND)
    assert not held


def test_readings_bring_a_wait_of_the_same_process_to_its_end(held: Held) -> None:
    held.run.doing = Threads.BUSY
    held.ask(1, "clock_nanosleep", 1, 1, held.at(1 + 0.005))  # until, by a clock that began with 1
    held.end_due()
    held.settle()
    assert held.sent == []
    held.process.ticks = 5
    held.settle()
    assert held.sent == [], "only a call of the program ends it: else it would depend on how far the others have got"
    held.end_due()
    assert (held.sent, held.pinned.waited_ns) == ([(1, {})], 0)


@pytest.mark.parametrize(("operation", "timeout"), [(FUTEX_WAIT, 2.0), (FUTEX_WAIT_BITSET | 256, 2.0)])
def test_a_futex_that_changed_is_not_a_time_out(held: Held, operation: int, timeout: float) -> None:
    word = held.bytes(b"\1\0\0\0")
    for expected, error in ((1, errno.ETIMEDOUT), (0, errno.EAGAIN)):
        held.ask(expected, "futex", word, operation | 128, expected, held.at(timeout + held.pinned.waited_ns / SECOND))
        held.settle()
        assert held.sent.pop() == (expected, {"error": error})


def test_an_event_comes_before_any_time_out_and_is_left_to_the_kernel(held: Held) -> None:
    reader, writer = os.pipe()
    entry = held.bytes(struct.pack("=ihh", reader, select.POLLIN, 0))
    held.ask(1, "nanosleep", held.at(1))
    held.ask(2, "poll", entry, 1, 5000)
    os.write(writer, b"x")
    held.settle()
    assert (held.sent, held.pinned.waited_ns) == ([(2, {"go_on": True})], 0)
    os.close(reader)
    os.close(writer)


def test_a_thread_that_works_on_keeps_no_other_from_its_time_out(held: Held) -> None:
    held.run.doing = Threads.BUSY
    held.ask(1, "nanosleep", held.at(0.01))
    assert held.settle() > 0
    held.run.cpu = 59.0
    assert held.settle() > 0
    held.run.cpu = 60.1
    assert held.settle() == 0
    assert (held.sent, held.pinned.waited_ns) == ([(1, {})], SECOND // 100)
    held.ask(2, "nanosleep", held.at(0.01))
    held.run.cpu = 62.2
    assert held.settle() == 0, "of a thread that may spin for others, less is waited for"


def test_where_one_waits_for_the_world_outside_waits_last_as_long_as_they_say(held: Held) -> None:
    held.run.doing = Threads.OUTSIDE
    held.ask(1, "nanosleep", held.at(0.05))
    held.settle()
    assert held.sent == []
    time.sleep(0.06)
    held.settle()
    assert (held.sent, held.pinned.waited_ns) == ([(1, {})], SECOND // 20)


def test_waits_last_as_long_as_they_say_once_an_alarm_is_set(held: Held) -> None:
    held.note_timer("alarm", os.getpid(), [5], held.process)
    held.ask(1, "nanosleep", held.at(60))
    held.settle()
    assert held.sent == []
    held.note_timer("alarm", os.getpid(), [0], held.process)
    held.settle()
    assert held.sent == [(1, {})]


def test_a_signal_interrupts_a_wait(held: Held) -> None:
    held.run.signal = True
    held.ask(1, "nanosleep", held.at(60))
    held.settle()
    held.ask(2, "clock_nanosleep", 1, 1, held.at(60))
    held.settle()
    assert held.sent == [(1, {"error": 0, "go_on": True}), (2, {"error": errno.EINTR, "go_on": False})]


def test_what_does_not_wait_is_the_kernels_matter(held: Held) -> None:
    assert not held.ask(1, "nanosleep", held.at(0))
    assert held.process.ticks == 1, "a thread that only lets others run sees the time go on"
    assert not held.ask(2, "poll", 0, 0, (1 << 32) - 1)
    assert not held.ask(3, "clock_nanosleep", 2, 1, held.at(1))  # by CPU time
    assert not held.ask(4, "nanosleep", held.bytes(struct.pack("=qq", 0, SECOND)))
    assert not held


# In a process of its own: all that descends from it is looked at, and this one may have other children.
SLEEPS_THEN_WORKS = """
import os, time
from cachegrind_bench.hermetic.process_memory import Threads
futex, read = 202, 0
threads = Threads({futex: "futex", read: "read"})
inside = os.pipe()
child = os.fork()
if child == 0:
    os.read(inside[0], 1)
    while True:
        pass
def seen(state):
    for _ in range(2_000):
        if threads.state(set()) == state:
            return True
        time.sleep(0.01)
try:
    print("slept", seen(Threads.ASLEEP))
    os.write(inside[1], b"x")
    print("worked", seen(Threads.BUSY), threads.cpu_s() > 0)
finally:
    os.kill(child, 9)
"""


def test_the_threads_of_a_run_are_seen_to_sleep_or_to_work() -> None:
    done = subprocess.run([sys.executable, "-c", SLEEPS_THEN_WORKS], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "slept True\nworked True True\n"
