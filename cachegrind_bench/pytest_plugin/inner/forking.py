"""Does numbered work, each piece in a forked process of its own; the process that forks stays as it is.

Runs inside Valgrind. Whatever user code does there, a piece is known to have come to its end, or not to.
"""

from __future__ import annotations

import functools
import mmap
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from cachegrind_bench.pytest_plugin.cpython.bytecode import forget_specialised, keep_specialised
from cachegrind_bench.pytest_plugin.cpython.verified import IS_VERIFIED
from cachegrind_bench.startup.dumps import last_log
from cachegrind_bench.startup.exchange import (
    FIRST,
    NO_BENCHMARK,
    NO_FILE,
    WAITING,
    Ending,
    Exchange,
    read_order,
    write_current,
)
from cachegrind_bench.startup.os_functions import Real

# The first rounds of the loop leave the heap in another state than later ones, and so do those that bury a process; CPython
# 3.11 rewrites code at its 8th call. Hence this many of both. A fork takes 10 ms: there, only the last of both do; later versions
# would have specialised the loop for what is called in place of it.
_DRY_ROUNDS = 4
_FORKS_ALWAYS = sys.version_info >= (3, 12)
# What a child says of itself. Not by its exit status: tests can end with any.
_CUT_SHORT, _DONE, _NO_MORE = 0, 1, 2
_NUMBER_BYTES, _LAST_BYTE = 4, 255


class NoMoreError(Exception):
    """There is no order with this number."""


def at_work(exchange: Exchange, number: int = NO_FILE, index: int = NO_BENCHMARK) -> None:
    """Let it be known which process begins with which file, or benchmark: somebody may watch how long that takes."""
    with suppress(OSError):  # a test before it may have put anything there
        write_current(exchange.current, Real.getpid(), number, index)


def wait_for_orders(exchange: Exchange) -> None:
    """Wait until all orders are there, however long that takes."""
    write_current(exchange.current, Real.getpid(), WAITING, NO_BENCHMARK)
    gate = Real.open_number(exchange.gate, os.O_RDONLY)
    Real.read(gate, 1)
    Real.close(gate)


def how_it_ended(pid: int, status: int, out: str) -> Ending:
    """Return the wait status of a process, and Valgrind's log if a signal ended the process."""
    return {"status": status, "log": last_log(out, pid) if os.WIFSIGNALED(status) else ""}


def read_next_order(path: str) -> Any:
    """Read an order. NoMoreError if there is none."""
    try:
        return read_order(path)
    except FileNotFoundError:
        raise NoMoreError from None


def fork_for_each(work: Callable[[int], None], bury: Callable[[int, int, int], None]) -> None:
    """Do the work with FIRST and the numbers that follow it, each in a process of its own, until NoMoreError.

    A piece that did not come to its end is reported by `bury`, given its number and what waitpid says of its process, in
    yet another one: this process must stay as it is. A handler of SIGCHLD that was set here, as when a file of tests was
    imported, is that of the work alone: it would hide how the processes end.
    """
    handler = signal.getsignal(signal.SIGCHLD)
    if handler not in {signal.SIG_DFL, None}:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        work = functools.partial(_under, handler, work)
    # Since CPython 3.13.1, a fork gives this thread its new number, which takes memory from 257 on: not in a new container.
    vars(threading.main_thread())["_set_native_id"] = _keep_number
    word = mmap.mmap(-1, 1)  # shared with the children: what each says of itself
    start = FIRST.to_bytes(_NUMBER_BYTES, "big")
    number = bytearray(start)
    # A file's process inherits this code from the rounds of the process above, and how far CPython is with specialising it.
    codes = {function.__code__ for function in (fork_for_each, _round, _count, _in_child) if IS_VERIFIED}
    forget_specialised(codes)
    for left in range(_DRY_ROUNDS - 1, -1, -1):
        for dry in (_nothing, _vanish):
            _round(word, number, dry, _nothing, Real if _FORKS_ALWAYS or not left else _Unforked(word, dry))
            _count(number)
    keep_specialised(codes)
    number[:] = start
    while _round(word, number, work, bury):
        _count(number)


def _under(handler: Any, work: Callable[[int], None], number: int) -> None:
    signal.signal(signal.SIGCHLD, handler)
    work(number)


def _count(number: bytearray) -> None:
    """Add one to the number, by its bytes: these are objects that are always there, and take no memory."""
    place = _NUMBER_BYTES - 1
    while number[place] == _LAST_BYTE:
        number[place] = 0
        place -= 1
    number[place] += 1


class _Unforked:
    """Imitate fork and waitpid in a dry round."""

    def __init__(self, word: mmap.mmap, work: Callable[[int], None]) -> None:
        self._word, self._words = word, [_DONE, _CUT_SHORT] if work is _vanish else [_DONE]

    def fork(self) -> int:
        return Real.getpid()

    def waitpid(self, pid: int, _options: int) -> tuple[int, int]:
        self._word[0] = self._words.pop()
        return pid, 0


def _round(
    word: mmap.mmap,
    number: bytearray,
    work: Callable[[int], None],
    bury: Callable[[int, int, int], None],
    processes: type[Real] | _Unforked = Real,
) -> bool:
    """Do one piece, and return whether there may be more. A function, as nothing of it may be left at the next fork.

    What is freed first is taken last: memory goes back in the opposite order, for the next fork to find it in the same.
    """
    word[0] = _CUT_SHORT
    pid = processes.fork()
    if not pid:
        _in_child(word, number, work)
    ended = processes.waitpid(pid, 0)
    said = word[0]
    if said == _CUT_SHORT:
        burier = processes.fork()
        if not burier:
            _in_child(word, number, bury, *ended)
        buried = processes.waitpid(burier, 0)
        del buried
        del burier
        if word[0] != _DONE:
            raise RuntimeError("processes that are forked here end before they begin: is the disk full?")
    del ended
    del pid
    return said != _NO_MORE


def _nothing(_index: int, _pid: int = 0, _status: int = 0) -> None:
    return None


def _keep_number() -> None:
    return None


def _vanish(_index: int) -> None:
    Real.leave(0)


def _in_child(word: mmap.mmap, number: bytearray, work: Callable[..., None], *arguments: int) -> None:
    """Do this with the number, say in the word what became of it, and end this process."""
    own, said = Real.own_process(), _CUT_SHORT
    Real.setpgid(0, 0)  # a test that kills its process group ends nothing else
    try:
        work(int.from_bytes(number, "big"), *arguments)
        said = _DONE
    except NoMoreError:
        said = _NO_MORE
    except BaseException:  # noqa: BLE001 - the process ends here, whatever it is
        with suppress(BaseException):
            traceback.print_exc()
    finally:
        with suppress(BaseException):
            flush()
        if Real.own_process() == own:  # and not a process that a test has forked and let return to here
            word[0] = said
        Real.leave(int(said == _CUT_SHORT))


def flush() -> None:
    """Write out what standard output and error hold back."""
    sys.stdout.flush()
    sys.stderr.flush()


class Copy:
    """A copy of this process, which says that it is ready, and waits for the order to go on; leaving this context kills it."""

    CALL, LAYOUT = b"?", b">"  # what it is to go on with: one more call, or the first ones of the next layout

    def __init__(self) -> None:
        told, self._tell = Real.pipe()
        asked, self._ask = Real.pipe()
        self.pid = Real.fork()
        self._hear = asked if self.pid else told
        for end in (told, self._ask) if self.pid else (asked, self._tell):
            Real.close(end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # By itself, it would write out once more what it counted. If it has ended and a test has SIGCHLD ignored, it is gone.
        with suppress(ProcessLookupError, ChildProcessError):
            Real.kill(self.pid, signal.SIGKILL)
            Real.waitpid(self.pid, 0)
        Real.close(self._hear)
        Real.close(self._tell)

    def ready(self) -> bool:
        """Wait until the copy is ready; False if it has ended."""
        return bool(Real.read(self._hear, 1))

    def go_on(self, what: bytes) -> None:
        """Let the copy go on with this."""
        Real.write(self._tell, what)

    def wait(self) -> bytes:
        """In the copy: say that it is ready, wait, and return what to go on with."""
        Real.write(self._ask, b"!")
        what = Real.read(self._hear, 1)
        if not what:
            Real.kill(Real.getpid(), signal.SIGKILL)
        return what
