"""Calls what is measured: warm-ups, then single calls between client requests until their counts agree.

Runs inside of Valgrind. What is on the stack while a call is counted, and every line around it, is in this file, and
there is nothing here that depends on what was measured before.
"""

# ruff: noqa: PLR0917 - calls by position cost least, and none of it is to be seen in the counts

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import signal
from typing import TYPE_CHECKING, Any, Self

from cachegrind_bench.pytest_plugin import written
from cachegrind_bench.pytest_plugin.between import Between
from cachegrind_bench.pytest_plugin.fixture import plainly
from cachegrind_bench.pytest_plugin.fresh_heap import move_heaps, take_chunks, take_free_memory
from cachegrind_bench.pytest_plugin.type_versions import spread_look_ups
from cachegrind_bench.region.requests import (
    DUMP_STATS_AT,
    RUNNING_ON_VALGRIND,
    START_INSTRUMENTATION,
    STOP_INSTRUMENTATION,
    Request,
    Requests,
)
from cachegrind_bench.startup.real import Real

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from cachegrind_bench.pytest_plugin.fixture import Work

# CPython 3.11 and later specialise code while it warms up, and are done with it after ten calls.
WARM_UP = 10
# How a process ends that could not tell, and what is added to what another one tells: Valgrind itself may end in 1.
_FAILED, _TOLD = 255, 2
# Simulated calls of each try; after the last one, counts that do not agree are taken all the same. The first call fills the
# caches: only the path that it took through the code counts.
BATCHES = (2, 3, 7)
_AGREEING = 2
# By no more than one part of so many: as comparisons take instructions that moved by less for standing still.
_ALIKE = 2000
# One call says which functions took part in it; it is the kind of call that was counted before.
PROFILED = (2,)
# So many calls on a fresh heap take and free other pieces of it than later ones.
_FIRST_ON_HEAP = 2
# A call leaves free chunks of glibc's heap, and the next one would search them: textwrap.wrap took up to 3 % more or less from
# call to call. So many are taken at most: each costs some 2,500 simulated instructions.
_LEFT_BEHIND = 2000


_Request = tuple[bytes]  # its words; requests are made with *, which CPython does not try to specialise again and again


def counted(
    make: Any, before: _Request, after: _Request, call: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Call between two requests."""
    __tracebackhide__ = True
    make(*before)
    result = call(*args, **kwargs)
    make(*after)
    return result


def nothing(
    make: Any, before: _Request, after: _Request, _call: Any, _args: Sequence[Any], _kwargs: Mapping[str, Any]
) -> Any:
    """Do all that `counted` does but the call."""
    __tracebackhide__ = True
    make(*before)
    result = None
    make(*after)
    return result


async def counted_await(
    make: Any, before: _Request, after: _Request, call: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Await between two requests."""
    __tracebackhide__ = True
    make(*before)
    result = await call(*args, **kwargs)
    make(*after)
    return result


def deep(function: Callable[[], Any]) -> Any:
    """Call a function from a frame so large that CPython begins a new piece of its stack for it.

    Else its end could lie between a caller and a function that is called again and again: a piece of memory would be
    taken and given back each time, in one test and not in another.
    """
    return function()


deep.__code__ = deep.__code__.replace(co_stacksize=4200)  # more than a piece of 16 KiB, and room for 30 KiB after it


class _Elsewhere:
    """Another process that tells a number below 250 when it is asked. Leaving this context ends it.

    To read what Callgrind wrote takes and frees memory by the length of its text, which has numbers of blocks and the
    like: read here, it would move what the next calls allocate. The process is forked beforehand: when instrumentation is
    switched, Valgrind forgets what it has translated, but not there.
    """

    def __init__(self, tell: Callable[[], int]) -> None:
        self._tell = tell
        asked, self._ask = Real.pipe()
        self._pid = Real.fork()
        if not self._pid:
            code = _FAILED
            try:
                Real.close(self._ask)
                if Real.read(asked, 1):
                    code = tell() + _TOLD
            finally:
                Real.leave(code)
        Real.close(asked)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pid:
            Real.kill(self._pid, signal.SIGKILL)
            Real.waitpid(self._pid, 0)
        Real.close(self._ask)

    def answer(self) -> int:
        """Return what it tells."""
        with contextlib.suppress(BrokenPipeError):  # it has ended: Valgrind ends a forked process that it cannot log
            Real.write(self._ask, b"?")
        _, status = Real.waitpid(self._pid, 0)
        self._pid = 0
        code = os.waitstatus_to_exitcode(status)
        if not _TOLD <= code < _FAILED:
            self._tell()  # again, but here: whatever it raises is why this benchmark fails
            raise RuntimeError("what Callgrind wrote could not be read, but then it could")
        return code - _TOLD


class Meter:
    """Measures the one benchmark of this process, in one memory layout. `record` tells how, when it is done."""

    def __init__(self, requests: Requests, out: str, warm_up: int, batches: Sequence[int]) -> None:
        self._requests = requests
        self._make = requests.make
        self._out = out
        self._warm_up = warm_up
        self.layout = 0
        self._batches = batches
        self._start, self._stop = (Request(START_INSTRUMENTATION).block,), (Request(STOP_INSTRUMENTATION).block,)
        self._begin, self._end = Request(DUMP_STATS_AT, written.BEGIN), Request(DUMP_STATS_AT, written.END)
        self._idle = Request(RUNNING_ON_VALGRIND)
        self._native = not requests.running_on_valgrind()
        self.begun = False
        self._result: Any = None
        self._own = b""
        self.record: dict[str, Any] | None = None

    @property
    def out(self) -> str:
        """The folder that Valgrind writes to."""
        return self._out

    def measure(self, work: Work, empty: Callable[..., Any] | None = None) -> Any:
        """Measure, and return what the last call returned.

        What is subtracted is a region without the call or, where it is given, one that calls `empty` with the same
        arguments. It comes right before each call: first uncounted, so that both find its code in the caches.
        """
        __tracebackhide__ = True
        make, idle, call = self._make, (self._idle.block,), work.call
        hollow = nothing if empty is None else counted
        if not self._native:
            spread_look_ups(functools.partial(plainly, work), self.layout)
        for prepare, before, after in self._steps():
            self._result = None
            args, kwargs = work.arguments()
            prepare()
            hollow(make, idle, idle, empty, args, kwargs)
            hollow(make, before, after, empty, args, kwargs)
            self._result = counted(make, before, after, call, args, kwargs)
            self._end_copy()
            work.finish(*args, **kwargs)
            del args, kwargs
        return self._result

    async def measure_await(self, work: Work, empty: Callable[..., Any]) -> Any:
        """Measure what is awaited, inside of a running event loop; otherwise as `measure`."""
        __tracebackhide__ = True
        make, idle, call = self._make, (self._idle.block,), work.call
        for prepare, before, after in self._steps():
            self._result = None
            args, kwargs = work.arguments()
            prepare()
            await counted_await(make, idle, idle, empty, args, kwargs)
            await counted_await(make, before, after, empty, args, kwargs)
            self._result = await counted_await(make, before, after, call, args, kwargs)
            self._end_copy()
            del args, kwargs
        return self._result

    def _steps(self) -> Generator[tuple[Callable[[], None], _Request, _Request]]:
        """Yield what prepares each call, and the requests before and after it, which ask for nothing in a warm-up."""
        idle, begin, end = (self._idle.block,), (self._begin.block,), (self._end.block,)
        self.begun = True
        self._own = Real.own_process()
        between = Between()
        enabled = gc.isenabled()
        gc.disable()
        try:
            yield between.watch, idle, idle
            if self._native:
                self.record = {"native": True}
                return
            with _Elsewhere(self._forget) as forgetting:
                forgetting.answer()
            for _ in range(self._warm_up):
                yield between.watch, idle, idle
            between.watch()
            gc.freeze()
            count = settled = 0
            for count in self._batches:
                self._result = None  # what it takes is not to be free later
                with _Elsewhere(self._settled) as settling:
                    take_free_memory()
                    move_heaps(self.layout)
                    for _ in range(_FIRST_ON_HEAP):
                        yield between.prepare, idle, idle
                    self._make(*self._start)
                    for _ in range(count):
                        take_chunks(_LEFT_BEHIND, self.layout)
                        yield between.prepare, begin, end
                    self._make(*self._stop)
                    settled = settling.answer()
                if settled:
                    break
                for _ in range(self._warm_up):
                    yield between.watch, idle, idle
                between.watch()
            self.record = {"pid": Real.getpid(), "calls": 1 if settled else count - 1, "settled": bool(settled)}
        finally:
            gc.unfreeze()
            if enabled:
                gc.enable()

    def _end_copy(self) -> None:
        """End a process that the benchmark has forked and that came back from it too: it would call on, and fork again."""
        if Real.own_process() != self._own:
            Real.leave(0)

    def _forget(self) -> int:
        return written.forget(self._out, int.from_bytes(self._own, "little"))

    def _settled(self) -> bool:
        """Tell whether the last two calls took about the same path through the code.

        Misses may differ more: where memory is freed in another order than it was taken, objects change places.
        """
        prefix = written.of_process(int.from_bytes(self._own, "little"))
        calls = [map(written.path, pair) for pair in written.calls(self._out, prefix, _AGREEING)]
        counts = zip(*map(itertools.chain.from_iterable, calls), strict=True)
        return all((max(count) - min(count)) * _ALIKE <= min(count) for count in counts)
