"""Interrupts threads that wait for programs: only the main thread sees Ctrl-C, and this hands it on."""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from cachegrind_bench.log import Threads

if TYPE_CHECKING:
    from concurrent.futures import Future

# Whose frames are on the stack as long as anything is imported, and when to look again: no more often than what takes a second.
_IMPORTING = "<frozen importlib._bootstrap>"
_MOST_POSTPONED = 1000
_SOON_S = 0.001
# A signal that comes just before a thread falls asleep does not wake it.
_LOOK_UP_S = 0.5

T = TypeVar("T")


class Cancel:
    """Threads that work `under` it see KeyboardInterrupt once it is set. As a selectable file, it is readable then."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._set = False

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._reader

    def set(self) -> None:
        """Interrupt all, now and in the future."""
        if not self._set:
            self._set = True
            os.write(self._writer, b"!")

    def check(self) -> None:
        """Raise KeyboardInterrupt if it is set."""
        if self._set:
            raise KeyboardInterrupt

    def close(self) -> None:
        """Let go of the descriptors, when no thread works under it any more."""
        os.close(self._reader)
        os.close(self._writer)

    def under(self) -> AbstractContextManager[None]:
        """Let this thread be interrupted."""
        return _interrupted_by(self)


@contextmanager
def beside(call: Callable[[], T]) -> Generator[Future[T]]:
    """Call this in a thread during the block; where the block ends first, what the thread waits for is interrupted."""
    cancel = Cancel()

    def work() -> T:
        with cancel.under():
            return call()

    with closing(cancel), Threads(1) as executor:
        try:
            yield executor.submit(work)
        finally:
            cancel.set()


class _Insisted:
    """Interrupts only on a second interruption, or on one more than there were before."""

    def __init__(self) -> None:
        self._most = max(1, _Held.interrupts)

    def is_over(self) -> bool:
        """Return whether there were more."""
        return _Held.interrupts > self._most

    def check(self) -> None:
        """Raise KeyboardInterrupt if there were more."""
        if self.is_over():
            raise KeyboardInterrupt


_CANCEL: ContextVar[Cancel | _Insisted | None] = ContextVar("cancel", default=None)


def cancellation() -> Cancel | _Insisted | None:
    """Return what may interrupt this thread."""
    return _CANCEL.get()


@contextmanager
def _interrupted_by(cancel: Cancel | _Insisted) -> Generator[None]:
    token = _CANCEL.set(cancel)
    try:
        yield
    finally:
        _CANCEL.reset(token)


@contextmanager
def uninterrupted() -> Generator[None]:
    """Let this thread finish its tidying up, even if it was or is interrupted; one more interrupt, and at least the second, ends that as well."""
    try:
        with _interrupted_by(_Insisted()):
            yield
    finally:
        if threading.current_thread() is threading.main_thread():
            _let_go()


class _Held:
    """How deep the main thread is in what must not be cut short, whether an interrupt waits for its end, and their number.

    `postponed` says how often in succession one came amid an import.
    """

    depth = 0
    waiting = False
    interrupts = 0
    postponed = 0


def interrupt() -> None:
    """Raise KeyboardInterrupt, as a signal handler does; where the main thread holds it back, at the end of that."""
    _Held.interrupts += 1
    _Held.waiting = True
    _let_go()


def _let_go() -> None:
    """Raise the interrupt that waits, unless the main thread, which this is, still holds it back."""
    tidying = _CANCEL.get()
    if _Held.waiting and not _Held.depth and not (isinstance(tidying, _Insisted) and not tidying.is_over()):
        _Held.waiting = False
        raise KeyboardInterrupt


def is_postponed(number: int, frame: FrameType | None) -> bool:
    """Tell a signal handler whether it came amid an import; if so, it is called again a moment later.

    An exception there can leave a lock taken for ever, and other threads that import anything wait for it.
    """
    while frame is not None and frame.f_code.co_filename != _IMPORTING:
        frame = frame.f_back
    if frame is None or _Held.postponed == _MOST_POSTPONED:
        _Held.postponed = 0
        return False
    _Held.postponed += 1
    # Not by `threading`, whose own locks may be those that another signal found it amid.
    _thread.start_new_thread(_signal_again, (number, _thread.get_ident()))
    return True


def _signal_again(number: int, thread: int) -> None:
    time.sleep(_SOON_S)
    signal.pthread_kill(thread, number)


@contextmanager
def held() -> Generator[None]:
    """Hold back what `interrupt` raises: a program that has just been started must first be known to whoever ends it.

    Other threads are not interrupted anyway.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _Held.depth += 1
    try:
        yield
    finally:
        _Held.depth -= 1
        _let_go()


class Completed(Generic[T]):
    """Hands out futures when they have ended; `pending` is the number of those that are still to come.

    `concurrent.futures.wait` takes the locks of all of them at once, and Ctrl-C amid that would never give these back.
    """

    def __init__(self, futures: Iterable[Future[T]] = ()) -> None:
        self._queue: SimpleQueue[Future[T]] = SimpleQueue()
        self.pending = 0
        for future in futures:
            self.add(future)

    def add(self, future: Future[T]) -> None:
        """Hand out this one too."""
        with held():
            future.add_done_callback(self._queue.put)
        self.pending += 1

    def next(self, timeout_s: float = _LOOK_UP_S) -> Future[T] | None:
        """Wait for the next one, but no longer than this: then None. KeyboardInterrupt once this thread is interrupted."""
        outer = cancellation()
        if outer is not None:
            outer.check()
        try:
            found = self._queue.get(timeout=timeout_s)
        except Empty:
            return None
        self.pending -= 1
        return found

    def __iter__(self) -> Iterator[Future[T]]:
        """Yield each, those too that are added meanwhile."""
        while self.pending:
            found = self.next()
            if found is not None:
                yield found


def wait_for_all(futures: Iterable[Future[Any]]) -> None:
    """Wait until all of these have ended. KeyboardInterrupt once this thread is interrupted."""
    for _ in Completed(futures):
        pass
