"""What the pinned clocks show: one time, whichever way a program asks for it."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.harness.engine.jumping_clock import HOOK, Jumps
from cachegrind_bench.hermetic.clock import PinnedTime, pinned_time
from cachegrind_bench.hermetic.execution import Clock, Execution, Image
from cachegrind_bench.hermetic.fake_proc import statistics, substitute, uptime
from cachegrind_bench.hermetic.images import Process, ProcessTable
from tests.unit.test_supervisor import BUFFER, SECOND, Watched

if TYPE_CHECKING:
    from pathlib import Path

EPOCH = 1_735_689_600
STEP = SECOND // 100


def test_now_less_the_uptime_is_when_the_machine_booted() -> None:
    supervisor = Watched(Clock(EPOCH * SECOND, SECOND))
    supervisor.ask("clock_gettime", 0, BUFFER)
    supervisor.ask("clock_gettime", 7, BUFFER)
    supervisor.ask("sysinfo", BUFFER)
    (wall, _), (since_boot, _) = (struct.unpack("=qq", data) for _address, data in supervisor.written[:2])
    (up,) = struct.unpack_from("=q", supervisor.written[2][1])
    descriptor = substitute(b"/proc/stat\0", b"seed", PinnedTime(Clock(EPOCH * SECOND, SECOND)).boot_s())
    try:
        text = os.pread(descriptor, 1 << 16, 0).decode()
    finally:
        os.close(descriptor)
    (boot,) = (int(line.split()[1]) for line in text.splitlines() if line.startswith("btime"))
    # Each reading is a second after the one before.
    assert (wall, since_boot, up) == (boot + 2, 3, 4)
    assert uptime(3 * SECOND + 219_999_999) == b"3.21 3.21\n"


def test_the_cpus_are_as_many_as_this_machine_has() -> None:
    with open("/proc/stat") as file:
        here = [line.split()[0] for line in file if line.startswith("cpu")]
    assert [line.split()[0] for line in statistics(5).decode().splitlines() if line.startswith("cpu")] == here


def test_cpu_time_is_what_the_readings_took_and_no_waiting() -> None:
    supervisor = Watched(Clock(0, STEP))
    assert supervisor._time is not None
    supervisor._time.waited_ns = 50 * SECOND
    thread_of_another = (~os.getpid() << 3 | 6) & (1 << 32) - 1
    for clock in (2, 3, thread_of_another):
        supervisor.ask("clock_gettime", clock, BUFFER)
    assert [struct.unpack("=qq", data)[1] for _address, data in supervisor.written] == [STEP, 2 * STEP, 3 * STEP]
    assert supervisor.ask("times", BUFFER) == (True, 5104), "in hundredths, since the machine's start"
    assert struct.unpack("=4q", supervisor.written[-1][1]) == (4, 0, 0, 0)
    assert supervisor.ask("getrusage", 0, BUFFER) == (True, 0)
    user, fraction, system, _, memory, *rest = struct.unpack("=18q", supervisor.written[-1][1])
    assert (user, fraction, system, set(rest)) == (0, 5 * STEP // 1000, 0, {0})
    assert (memory > 0, memory % 65536) == (True, 0), "in steps of 64 MiB"
    assert supervisor.ask("getrusage", (1 << 32) - 1, BUFFER) == (True, 0)
    assert set(struct.unpack("=18q", supervisor.written[-1][1])) == {0}


def test_clocks_of_devices_and_those_that_there_are_not_are_left_to_the_kernel() -> None:
    supervisor = Watched(Clock(0, STEP))
    for clock in (12, 99, (~3 << 3 | 3) & (1 << 32) - 1):
        assert supervisor.ask("clock_gettime", clock, BUFFER) == (False, 0)
    assert supervisor.written == []


def test_a_child_goes_on_where_its_parent_forked() -> None:
    table = ProcessTable(os.getppid(), Execution((), {}, "/", seed=b"", scratch="/nowhere"))
    parent = table._meet(os.getppid())
    parent.ticks = parent.forked_at = 7
    parent.ticks = 9
    child: Process = table._meet(os.getpid())
    assert (child.ticks, child.born) == (7, 7)


HEAD = "# callgrind format\ncmd:  /bin/words --bench\n\ndesc: Trigger: --dump-{}\n\nevents: Ir Dr\nsummary: {} 7\n"
KINDS = ((("--dump-after=start",), ("--dump-before=end",)), (("--dump-after=now",), ("--dump-before=elapsed",)))
FIRST = "before=iter:5 after=now:1 after=start:2 before=end:99 before=elapsed:3 before=iter:7"
JUMPS = ((50, 100 * SECOND), (60, 200 * SECOND), (1 << 62, 300 * SECOND))


@pytest.mark.parametrize(
    ("parts", "jumped", "at"),
    [
        # The second call's first section: 12 and 45, as something else read the clock in it.
        (
            f"before=elapsed:9 before=elapsed:9 {FIRST} after=now:80 after=start:9 after=now:12 before=end:45 before=end:1",
            1,
            12,
        ),
        # No start and no end: it reads the clock itself.
        ("before=iter:5 after=now:1 after=now:1 before=elapsed:70 before=iter:7 after=now:1 before=elapsed:61", 2, 7),
        ("before=elapsed:1 before=elapsed:1 before=end:1", None, 0),  # no call has begun
        (
            f"before=iter:1 before=end:1 {'after=now:1 ' * 97} before=iter:1 before=end:1",
            None,
            0,
        ),  # too much time has passed
    ],
)
def test_a_clock_jumps_once_by_what_callgrind_has_counted_there(
    tmp_path: Path, parts: str, jumped: int | None, at: int
) -> None:
    jumps = Jumps(each=JUMPS, calls=("--dump-before=iter",), kinds=KINDS, most_ns=90 * SECOND)
    pinned = pinned_time(Clock(0, SECOND, hook=HOOK, data=jumps), str(tmp_path))
    process = Process(b"", Image(os.getpid(), "", [], 0, forked=False), 0)
    (tmp_path / "out.1.1").write_text(HEAD.format("before=iter", 5))  # of another process
    shown = [pinned.read(process, 0)]
    for number, part in enumerate(parts.split(), 1):
        (tmp_path / f"out.{os.getpid()}.{number}").write_text(HEAD.format(*part.split(":")))
        shown.append(pinned.read(process, 0))
    assert process.image.jump == jumped
    jump_s = 0 if jumped is None else JUMPS[jumped][1] // SECOND
    assert shown == [(place + 1 + (jump_s if place >= at else 0)) * SECOND for place in range(len(shown))]
