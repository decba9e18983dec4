"""The filter program, executed here as the kernel would, and the traps it is made of."""

from __future__ import annotations

import os
import struct

import pytest

from cachegrind_bench.hermetic import kernel, syscall_filter
from cachegrind_bench.hermetic.file_trace import CALLS
from cachegrind_bench.hermetic.kernel import ARCHITECTURES, CLONE_THREAD, Architecture
from cachegrind_bench.hermetic.syscall_filter import Condition, Trap, traps

ALLOW, NOTIFY = 0x7FFF0000, 0x7FC00000


def verdict(code: bytes, audit: int, number: int, *arguments: int) -> int:
    """Interpret classic BPF over `struct seccomp_data`."""
    filled = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=iIQ6Q", number, audit, 0, *filled)
    steps = [struct.unpack_from("=HBBI", code, place) for place in range(0, len(code), 8)]
    accumulator, place = 0, 0
    constant: int
    while True:
        operation, if_true, if_false, constant = steps[place]
        place += 1
        match operation:
            case 0x20:  # load a word
                (accumulator,) = struct.unpack_from("=I", data, constant)
            case 0x15:  # jump if equal
                place += if_true if accumulator == constant else if_false
            case 0x54:  # and
                accumulator &= constant
            case 0x06:  # return
                return constant
            case _:
                pytest.fail(f"unexpected instruction {operation:#x}")


@pytest.fixture(params=sorted(ARCHITECTURES))
def table(request: pytest.FixtureRequest) -> Architecture:
    return ARCHITECTURES[request.param]


def test_only_the_trapped_calls_are_reported(table: Architecture) -> None:
    code = syscall_filter._program(table.audit, [Trap(7), Trap(9, (Condition(2, (0x11,), 0xFF),)), Trap(11)])
    told = {
        (number, argument)
        for number in range(20)
        for argument in (0, 0x11, 0xAB11, 0x12)
        if verdict(code, table.audit, number, 1, 2, argument) == NOTIFY
    }
    assert told == {
        *((7, any_) for any_ in (0, 0x11, 0xAB11, 0x12)),
        (9, 0x11),
        (9, 0xAB11),
        *((11, any_) for any_ in (0, 0x11, 0xAB11, 0x12)),
    }


def test_a_trap_with_conditions_needs_all_of_them(table: Architecture) -> None:
    conditions = (Condition(0, (3, 5, 7)), Condition(1, (0, 1), among=False))
    code = syscall_filter._program(table.audit, [Trap(9, conditions), Trap(9, (Condition(0, (8,)),))])
    told = {
        (first, second): verdict(code, table.audit, 9, first | 1 << 32, second)
        for first in range(10)
        for second in range(3)
    }
    notified = {(first, 2): NOTIFY for first in (3, 5, 7)}
    notified |= {(8, second): NOTIFY for second in range(3)}
    assert {arguments: value for arguments, value in told.items() if value != ALLOW} == notified


def test_calls_of_another_architecture_pass(table: Architecture) -> None:
    code = syscall_filter._program(table.audit, [Trap(7)])
    assert verdict(code, table.audit ^ 1, 7) == ALLOW


def test_the_program_has_these_bytes() -> None:
    assert syscall_filter._program(0xC000003E, [Trap(318)]).hex(" ", 8) == (
        "2000000004000000 150001003e0000c0 060000000000ff7f 2000000000000000 150000013e010000 060000000000c07f 060000000000ff7f"
    )


def test_threads_and_forks_are_reported(table: Architecture) -> None:
    code = syscall_filter._program(table.audit, traps(table, clock=True))
    clone = table.calls["clone"]
    assert verdict(code, table.audit, clone, CLONE_THREAD | 0x100) == NOTIFY
    assert verdict(code, table.audit, clone, 0x11) == NOTIFY
    assert verdict(code, table.audit, table.calls["clone3"]) == NOTIFY
    assert verdict(code, table.audit, table.calls["execve"]) == NOTIFY


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (os.O_RDONLY, True),
        (os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK, True),
        (os.O_WRONLY, False),
        (os.O_RDWR, False),
        (os.O_RDONLY | os.O_CREAT, False),
        (os.O_RDONLY | os.O_TRUNC, False),
    ],
)
def test_only_plain_reading_opens_are_reported(table: Architecture, flags: int, told: bool) -> None:
    code = syscall_filter._program(table.audit, traps(table, clock=False))
    wanted = NOTIFY if told else ALLOW
    assert verdict(code, table.audit, table.calls["openat"], 0, 0, flags) == wanted
    if "open" in table.calls:
        assert verdict(code, table.audit, table.calls["open"], 0, flags) == wanted


@pytest.mark.parametrize("clock", [False, True])
def test_a_clock_that_is_not_pinned_is_not_reported(table: Architecture, clock: bool) -> None:
    code = syscall_filter._program(table.audit, traps(table, clock=clock))
    assert verdict(code, table.audit, table.calls["getrandom"]) == NOTIFY
    assert verdict(code, table.audit, table.calls["sysinfo"]) == NOTIFY
    assert verdict(code, table.audit, table.calls["clock_gettime"]) == (NOTIFY if clock else ALLOW)
    assert verdict(code, table.audit, table.calls["gettimeofday"]) == (NOTIFY if clock else ALLOW)
    if "time" in table.calls:
        assert verdict(code, table.audit, table.calls["time"]) == (NOTIFY if clock else ALLOW)


def test_every_call_that_reads_or_changes_files_is_reported_when_files_are_recorded(table: Architecture) -> None:
    code = syscall_filter._program(table.audit, traps(table, clock=False, files=True))
    plain = syscall_filter._program(table.audit, traps(table, clock=False))
    for name in {*CALLS} & {*table.calls}:
        assert verdict(code, table.audit, table.calls[name], *[0xFFFF] * 6) == NOTIFY
    for name in ("openat", "renameat2", "newfstatat", "connect", "io_uring_setup"):
        assert verdict(plain, table.audit, table.calls[name], *[0xFFFF] * 6) == ALLOW


def test_the_calls_to_record_have_numbers(table: Architecture) -> None:
    """Those that arm64 lacks are the old ones, whose successors it has."""
    old = {"open", "stat", "lstat", "access", "readlink", "mkdir", "rmdir", "mknod", "creat", "link", "unlink"}
    old |= {"symlink", "rename", "utime", "utimes", "futimesat", "chmod", "chown", "lchown"}
    assert {*CALLS} - {*table.calls} <= (set() if "open" in table.calls else old)


def test_an_unknown_machine_has_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "h", "6", "1", "riscv64")))
    assert kernel.architecture() is None


def test_a_refused_call_reports_its_name_and_reason() -> None:
    with pytest.raises(OSError, match=r"prctl\(x\): EINVAL, Invalid argument"):
        kernel.prctl(-1, 0, "prctl(x)")
