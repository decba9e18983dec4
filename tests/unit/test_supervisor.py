"""What the supervisor answers, without a kernel: clock readings and random bytes."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import struct
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.hermetic.execution import Clock, Execution
from cachegrind_bench.hermetic.fake_proc import maps_without_tool, substitute
from cachegrind_bench.hermetic.file_trace import Recorder
from cachegrind_bench.hermetic.kernel import ARCHITECTURES
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.hermetic.scheduling import Scheduling
from cachegrind_bench.hermetic.supervisor import Supervisor, _RefuseError

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000_000
BUFFER = 0x1000
AT_FDCWD, NOFOLLOW = (1 << 64) - 100, 0x100


class Watched(Supervisor):
    """A supervisor that notes what it would write into the program's memory."""

    def __init__(self, clock: Clock | None, recorder: Recorder | None = None) -> None:
        super().__init__(
            -1,
            ARCHITECTURES["x86_64"],
            Execution((), {}, "/", seed=b"seed", clock=clock, scratch="/nowhere"),
            root=os.getpid(),
            scheduling=Scheduling(None, wanted=False),
            recorder=recorder,
        )
        self.written: list[tuple[int, bytes]] = []

    def _poke(self, ident: int, thread: int, address: int, data: bytes) -> None:
        assert (ident, thread) == (5, os.getpid())
        self.written.append((address, data))

    def ask(self, name: str, *args: int) -> tuple[bool, int]:
        return self._answer(5, name, os.getpid(), [*args, 0, 0, 0, 0, 0, 0])


def told(supervisor: Watched) -> tuple[int, int]:
    address, data = supervisor.written[-1]
    assert address == BUFFER
    seconds, fraction = struct.unpack("=qq", data)
    return seconds, fraction


def test_every_reading_moves_the_wall_clock_by_one_step() -> None:
    supervisor = Watched(Clock(1_000 * SECOND, 300_000_000))
    readings = []
    for _ in range(4):
        assert supervisor.ask("clock_gettime", 0, BUFFER) == (True, 0)
        readings.append(told(supervisor))
    assert readings == [(1000, 300_000_000), (1000, 600_000_000), (1000, 900_000_000), (1001, 200_000_000)]


def test_all_ways_to_ask_for_the_time_agree() -> None:
    supervisor = Watched(Clock(1_000 * SECOND, SECOND))
    supervisor.ask("gettimeofday", BUFFER, 0)
    assert told(supervisor) == (1001, 0)
    assert supervisor.ask("time", 0) == (True, 1002)
    assert supervisor.ask("time", BUFFER) == (True, 1003)
    assert supervisor.written[-1] == (BUFFER, struct.pack("=q", 1003))
    supervisor.ask("clock_gettime", 5, BUFFER)  # CLOCK_REALTIME_COARSE
    assert told(supervisor) == (1004, 0)


def test_microseconds_are_reported_where_they_are_asked_for() -> None:
    supervisor = Watched(Clock(0, 1_500_000))
    supervisor.ask("gettimeofday", BUFFER, 0)
    assert told(supervisor) == (0, 1500)


@pytest.mark.parametrize("clock", [1, 4, 7])
def test_other_clocks_lag_behind_those_of_any_machine_that_has_booted(clock: int) -> None:
    supervisor = Watched(Clock(1_000_000 * SECOND, SECOND))
    supervisor.ask("clock_gettime", clock, BUFFER)
    assert told(supervisor) == (2, 0)


def test_a_reading_without_an_address_writes_nothing() -> None:
    supervisor = Watched(PINNED_CLOCK)
    assert supervisor.ask("gettimeofday", 0, 0) == (True, 0)
    assert supervisor.written == []


def test_the_pinned_clock_starts_in_2025_and_moves_by_a_millisecond() -> None:
    supervisor = Watched(PINNED_CLOCK)
    supervisor.ask("clock_gettime", 0, BUFFER)
    assert told(supervisor) == (1_735_689_600, 1_000_000)


def test_without_a_pinned_clock_the_kernel_answers() -> None:
    assert Watched(None).ask("clock_gettime", 0, BUFFER) == (False, 0)


def test_random_bytes_are_the_same_in_every_run_and_differ_from_draw_to_draw() -> None:
    draws = []
    for _run in range(2):
        supervisor = Watched(None)
        assert supervisor.ask("getrandom", BUFFER, 16) == (True, 16)
        assert supervisor.ask("getrandom", BUFFER, 16) == (True, 16)
        draws.append([data for _address, data in supervisor.written])
    assert draws[0] == draws[1]
    assert draws[0][0] != draws[0][1]
    assert draws[0][0] == hashlib.shake_128(b"seed0").digest(16)


def test_the_machines_memory_and_load_are_reported_as_those_of_an_idle_one() -> None:
    supervisor = Watched(None)
    real = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    gib = 1 << 30
    for asked in (1, 2):  # who waits for a time since boot must not wait for ever
        assert supervisor.ask("sysinfo", BUFFER) == (True, 0)
        address, data = supervisor.written[-1]
        uptime, *loads, total, free, shared, buffers, swap, free_swap = struct.unpack_from("=q9Q", data)
        assert (address, len(data)) == (BUFFER, 112)
        assert (uptime, loads, free) == (asked, [0, 0, 0], total)
        assert total == (real // gib * gib or real)
        assert (shared, buffers, swap, free_swap) == (0, 0, 0, 0)
        assert struct.unpack_from("=I", data, 104) == (1,), "the unit of memory is a byte"


def test_a_huge_draw_is_answered_in_part_as_the_kernel_may() -> None:
    supervisor = Watched(None)
    assert supervisor.ask("getrandom", BUFFER, 1 << 30) == (True, 1 << 20)
    assert len(supervisor.written[0][1]) == 1 << 20


@pytest.mark.parametrize("address", [(1 << 64) - 1, 1 << 63])
def test_an_address_in_the_kernels_half_is_left_to_the_kernel(address: int) -> None:
    with pytest.raises(OSError, match="Bad address"):
        Watched(None).ask("openat", 0, address, os.O_RDONLY)


def test_bytes_for_such_an_address_are_refused_as_the_kernel_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "ioctl", lambda *_: 0)  # still the caller
    with pytest.raises(_RefuseError) as caught:
        Supervisor._poke(Watched(None), 5, os.getpid(), (1 << 64) - 1, b"x")
    assert caught.value.number == errno.EFAULT


def test_an_unknown_call_is_left_to_the_kernel() -> None:
    assert Watched(None).ask("") == (False, 0)


def address_of(text: bytes) -> int:
    """Return where this text is in our memory; it stays there for as long as the test runs."""
    buffer = ctypes.create_string_buffer(text)
    KEPT.append(buffer)
    return ctypes.addressof(buffer)


KEPT: list[object] = []


def test_a_recorded_call_is_the_kernels_to_answer_even_with_a_pinned_clock(tmp_path: Path) -> None:
    recorder = Recorder("/scratch")
    supervisor = Watched(PINNED_CLOCK, recorder)
    path = os.fsencode(tmp_path / "data")
    assert supervisor.ask("stat", address_of(path)) == (False, 0)
    assert supervisor.ask("newfstatat", AT_FDCWD, address_of(path), 0, NOFOLLOW) == (False, 0)
    assert recorder.notes.as_list() == [["look", path, "ENOENT", ()], ["link", path, "ENOENT", ()]]
    assert supervisor.written == []


def test_a_random_device_that_is_opened_for_writing_is_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Supervisor, "_open", lambda *_: pytest.fail("it was answered"))
    device = address_of(b"/dev/urandom")
    supervisor = Watched(None, Recorder("/scratch"))
    assert supervisor.ask("openat", AT_FDCWD, device, os.O_WRONLY) == (False, 0)
    with pytest.raises(pytest.fail.Exception, match="it was answered"):
        supervisor.ask("openat", AT_FDCWD, device, os.O_RDONLY)


def test_an_address_where_nothing_is_says_nothing_of_files() -> None:
    recorder = Recorder("/scratch")
    assert recorder.take("stat", os.getpid(), [8])
    assert (recorder.notes.incomplete, recorder.notes.as_list()) == (None, [])


def test_memory_that_may_not_be_read_makes_the_recording_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("cachegrind_bench.hermetic.file_trace.peek_string", refuse)
    recorder = Recorder("/scratch")
    recorder.take("stat", os.getpid(), [8])
    assert recorder.notes.incomplete == "what it reads cannot be followed: Permission denied"


def test_calls_that_others_want_to_know_of_are_handed_on() -> None:
    recorder = Recorder("/scratch")
    assert not any(recorder.take(name, os.getpid(), [0] * 6) for name in ("openat", "execve", "clone", "clock_gettime"))


def test_the_random_device_never_ends_and_is_the_same_for_one_seed() -> None:
    heads = []
    for seed in (b"a", b"a", b"b"):
        descriptor = substitute(b"/dev/random\0", seed)
        try:
            heads.append(os.pread(descriptor, 64, 0))
            assert os.pread(descriptor, 64, 1 << 40) == bytes(64)
        finally:
            os.close(descriptor)
    assert heads[0] == heads[1] != heads[2]


def test_the_one_cpu_of_a_run_is_number_0_and_stays_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor = Watched(None)
    supervisor._execution = supervisor._execution._replace(cpu=5)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _thread: {5})
    assert supervisor.ask("sched_getaffinity", 0, 128, BUFFER) == (True, 8)
    assert supervisor.ask("getcpu", BUFFER, BUFFER + 4) == (True, 0)
    assert supervisor.ask("getcpu", 0, 0) == (True, 0)
    assert supervisor.written == [(BUFFER, b"\1" + bytes(7)), (BUFFER, bytes(4)), (BUFFER + 4, bytes(4))]
    assert supervisor.ask("sched_setaffinity", 0, 128, BUFFER) == (True, 0)
    for length in (0, 7, 12):
        with pytest.raises(_RefuseError):
            supervisor.ask("sched_getaffinity", 0, length, BUFFER)


def test_a_program_that_may_use_other_cpus_sees_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor = Watched(None)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _thread: {0, 1})
    for name in ("sched_getaffinity", "sched_setaffinity", "getcpu"):
        assert supervisor.ask(name, 0, 8, BUFFER) == (False, 0)


def test_a_programs_memory_is_listed_without_that_of_valgrind() -> None:
    tool = b"/usr/libexec/valgrind/callgrind-amd64-linux"
    program = [
        b"00108000-00109000 r-xp 00000000 fe:00 77   /home/me/a program\n",
        b"04035000-04056000 rwxp 00000000 00:00 0 \n",
        b"04837000-04838000 r--p 00000000 fe:00 78   /usr/libexec/valgrind/vgpreload_core-amd64-linux.so\n",
        b"1004900000-1004902000 rw-p 00000000 00:00 0 \n",
        b"1ffeffe000-1fff001000 rwxp 00000000 00:00 0 \n",
    ]
    valgrind = [
        b"58000000-58001000 r--p 00000000 fe:00 79   " + tool + b"\n",
        b"58001000-581b6000 r-xp 00001000 fe:00 79   " + tool + b"\n",
        b"581b6000-58c5a000 rw-p 00000000 00:00 0 \n",
        b"1002001000-1002b8c000 rwxp 00000000 00:00 0 \n",
        b"1002b8c000-1002b8e000 ---p 00000000 00:00 0 \n",
    ]
    listed = b"".join([*program[:3], *valgrind, *program[3:]])
    assert maps_without_tool(listed, tool, 0x108800) == b"".join(program)
    assert maps_without_tool(listed, tool, 0x58001800) is None  # Valgrind itself asks
