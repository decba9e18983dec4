"""Calls what is measured: warm-ups, then single calls between client requests until their counts agree.

Runs inside Valgrind. What is on the stack while a call is counted, and every line around it, is in this file, and
there is nothing here that depends on what was measured before.
"""

# ruff: noqa: PLR0917 - calls by position cost least, and none of it is to be seen in the counts

from __future__ import annotations

import functools
import gc
import itertools
import pickle
import sys
from array import array
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

from cachegrind_bench.pytest_plugin.cpython.bytecode import executed, forget_specialised, keep_specialised, restoring
from cachegrind_bench.pytest_plugin.cpython.direct_calls import direct
from cachegrind_bench.pytest_plugin.cpython.fresh_heap import chunk_taker, move_blocks, take_free_memory
from cachegrind_bench.pytest_plugin.cpython.type_versions import (
    observe_look_ups,
    prepare_to_observe,
    spread_look_ups,
)
from cachegrind_bench.pytest_plugin.cpython.verified import IS_VERIFIED
from cachegrind_bench.pytest_plugin.fixture import Work, plainly
from cachegrind_bench.pytest_plugin.inner.forking import Copy
from cachegrind_bench.region.requests import (
    DUMP_STATS_AT,
    RUNNING_ON_VALGRIND,
    START_INSTRUMENTATION,
    STOP_INSTRUMENTATION,
    ZERO_STATS,
    Request,
    Requests,
)
from cachegrind_bench.startup import dumps
from cachegrind_bench.startup.exchange import Layout, LookUps, Measured
from cachegrind_bench.startup.import_finder import undo_replacements
from cachegrind_bench.startup.os_functions import Real

_AGREEING = 2  # the first call of a try fills the caches: only the path that it took through the code counts
# This many more, in a copy of the process: that is quicker than to warm up once more.
_MORE = 2
# By no more than one part in this many: as comparisons take instructions that moved by less for the same.
_ALIKE = 2000
# What is known of some calls: nothing yet, that the last ones agree, or that they go up and down, and will do so forever: where
# this many after the first differ by no more than that part, and neither each nor none took more than the one before.
_OPEN, _AGREE, _SWING = range(3)
_SWINGING, _NEAR = 3, 300
# This many calls on a fresh heap take and free other pieces of it than later ones.
_FIRST_ON_HEAP = 2
# A call leaves free chunks of glibc's heap, and the next one would search them: textwrap.wrap took up to 3 % more or less from
# call to call. At most this many are taken.
_LEFT_BEHIND = 2000


_Request = tuple[bytes]  # its words; requests are made with *, which CPython does not try to specialise again and again
# What prepares a call, and the requests before and after the empty region and the call.
_Step: TypeAlias = "tuple[Callable[[], None], _Request, _Request, _Request, _Request]"
_LINKS_OF_ONE_TASK = 3  # of the folder that has one for each thread


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


def _has_threads() -> bool:
    """Return whether this process has other threads, Python's or not: a copy of it would wait for them forever."""
    return Real.stat("/proc/self/task").st_nlink > _LINKS_OF_ONE_TASK


class _Tried(NamedTuple):
    """Of one memory layout what `exchange.Layout` has, and _OPEN, _AGREE or _SWING."""

    pid: int
    after: int
    calls: int
    known: int


# Global generators of random numbers, and what returns their state.
_GENERATORS = {"random": "getstate", "numpy.random": "get_state"}


def seed_all() -> None:
    """Seed the global generators of random numbers."""
    for name in _GENERATORS:
        module = sys.modules.get(name)
        if module is not None:
            module.seed(0)


def _nothing() -> None:
    return None


class Between:
    """What has to be done before a call so that it finds all as the one before did: no more than warm-ups have shown.

    What runs between calls takes lines of the caches from them; so for the usual function that is nothing.
    """

    def __init__(self) -> None:
        """Begin, right before the first call."""
        self._drawn: dict[str, bool] = {}
        self._states: dict[str, bytes] = {}
        self._garbage = self._watched = False

    def watch(self) -> None:
        """Prepare a warm-up, and look what the one before has left behind: garbage, numbers drawn."""
        self._garbage = gc.collect() > 0 and self._watched
        self._watched = True
        for name, state in _GENERATORS.items():
            module = sys.modules.get(name)
            if module is not None:
                self._drawn[name] = pickle.dumps(getattr(module, state)()) != self._states.get(name)
                module.seed(0)
                self._states[name] = pickle.dumps(getattr(module, state)())

    def preparing(self) -> Callable[[], None]:
        """Return what prepares a call that counts."""
        return self._prepare if self._garbage or any(self._drawn.values()) else _nothing

    def _prepare(self) -> None:
        if self._garbage:
            gc.collect()
        for name, drawn in self._drawn.items():
            if drawn:
                sys.modules[name].seed(0)


class Meter:
    """Measures the one benchmark of this process, in some memory layouts. `record` reports how, when it is done.

    The first layout is measured as if there were no other. Those that follow are laid out in the process that counted it: there,
    what is simulated has been translated, and the code is warm.

    Calls are counted in a copy of the process: when instrumentation is switched on, Valgrind forgets what it has translated,
    and this process still has a test to finish. If anything ends the copy early, the calls are counted in this process: what
    goes wrong then goes wrong here, and is reported.
    """

    def __init__(self, requests: Requests, out: str, warm_up: int, batches: Sequence[int], layouts: int) -> None:
        self._make = direct(requests.address)
        self.out = out  # the folder that Valgrind writes to
        self._warm_up, self._batches, self._layouts = warm_up, batches, layouts
        self.take_look_ups: Callable[[], LookUps] = dict
        self._start, self._stop = (Request(START_INSTRUMENTATION).block,), (Request(STOP_INSTRUMENTATION).block,)
        self._begin, self._end = Request(DUMP_STATS_AT, dumps.BEGIN), Request(DUMP_STATS_AT, dumps.END)
        self._zero = Request(ZERO_STATS)
        self._idle = (Request(RUNNING_ON_VALGRIND).block,)
        self._uncounted = self._idle, self._idle, self._idle, self._idle
        self._native = not requests.running_on_valgrind()
        self.begun = False
        self._codes: set[CodeType] = set()  # that the first call executed
        self._result: Any = None
        self._own = array("i", [0])  # a new int takes memory, unless it is small, as in a new container
        self._is_copy = False
        self.name = ""  # of the benchmark, by which its parts are kept
        self.record: Measured | None = None

    def warm_translation(self, folder: str) -> None:
        """Execute once what surrounds the calls of each benchmark, for its process to inherit how Valgrind translated it.

        In an empty folder: to list the one that Valgrind writes to takes more memory the more was measured before.
        """
        self.out, out = folder, self.out
        seed_all()
        with executed():
            Between().watch()
        if IS_VERIFIED:
            if self._native:
                prepare_to_observe()
            codes = {plainly.__code__}
            forget_specialised(codes)
            keep_specialised(codes)
        for number in range(1, 2 * _AGREEING + 1):
            dumps.write_sample(f"{self.out}/{dumps.of_process(0)}{number}")
        self._compared(0, 0, _AGREEING)
        self.keep_parts()
        self.out = out

    def keep_parts(self) -> None:
        """Keep the parts of the calls that count; remove all others, as any process may have written some."""
        layouts = self.record["layouts"] if self.record else ()
        dumps.keep(self.out, self.name, (layout["pid"] for layout in layouts))

    def measure(self, work: Work, empty: Callable[..., Any] | None = None) -> Any:
        """Measure, and return what the last call returned.

        What is subtracted is a region without the call or, where it is given, one that calls `empty` with the same
        arguments. It comes right before each call: first uncounted, so that both find its code in the caches.
        """
        __tracebackhide__ = True
        make, idle, call = self._make, self._idle, work.call
        hollow = nothing if empty is None else counted
        try:
            for prepare, opening, closing, before, after in self._steps(work, copies=True):
                self._result = None
                args, kwargs = work.arguments()
                prepare()
                hollow(make, idle, idle, empty, args, kwargs)
                hollow(make, opening, closing, empty, args, kwargs)
                self._result = counted(make, before, after, call, args, kwargs)
                self._end_foreign()
                work.finish(*args, **kwargs)
                del args, kwargs
        finally:
            if self._is_copy:
                Real.leave(1)
        return self._result

    async def measure_await(self, work: Work, empty: Callable[..., Any]) -> Any:
        """Measure what is awaited, inside of a running event loop, which cannot be copied; otherwise as `measure`."""
        __tracebackhide__ = True
        make, idle, call = self._make, self._idle, work.call
        for prepare, opening, closing, before, after in self._steps(work, copies=False):
            self._result = None
            args, kwargs = work.arguments()
            prepare()
            await counted_await(make, idle, idle, empty, args, kwargs)
            await counted_await(make, opening, closing, empty, args, kwargs)
            self._result = await counted_await(make, before, after, call, args, kwargs)
            self._end_foreign()
            del args, kwargs
        return self._result

    def _steps(self, work: Work, *, copies: bool) -> Generator[_Step]:
        """Yield what prepares each call, and the requests around the empty region and the call: none in a warm-up."""
        self.begun = True
        self._own[0] = Real.getpid()
        undo_replacements()
        between = Between()
        enabled = gc.isenabled()
        gc.disable()
        try:
            with executed() as codes:
                yield between.watch, *self._uncounted
            if self._native:
                look_ups: LookUps = {}
                if copies and not _has_threads():
                    with suppress(Exception):  # of a metaclass: without look-ups it is measured all the same
                        look_ups = observe_look_ups(functools.partial(plainly, work), codes)
                self.record = {"name": self.name, "look_ups": look_ups, "layouts": []}
                return
            if IS_VERIFIED:
                spread_look_ups(self.take_look_ups())
                forget_specialised(codes)
                self._codes = codes
            done: list[_Tried] = []
            for least in self._batches:
                for _ in range(self._warm_up):
                    yield between.watch, *self._uncounted
                between.watch()
                gc.freeze()
                copies = copies and not _has_threads()
                if copies:
                    done = yield from self._count_in_copy(least, between, work)
                    copies = bool(done)
                if not copies:
                    done = yield from self._count_here(least, between, work)
                if done[0].known != _OPEN:
                    break
            layouts = [
                Layout(pid=pid, after=after, calls=calls, settled=known == _AGREE) for pid, after, calls, known in done
            ]
            self.record = {"name": self.name, "look_ups": {}, "layouts": layouts}
        finally:
            gc.unfreeze()
            if enabled:
                gc.enable()

    def _count_in_copy(self, least: int, between: Between, work: Work) -> Generator[_Step, None, list[_Tried]]:
        """Yield what `_steps` does for simulated calls in a copy of this process, which is killed in the end.

        Returns what became of the layouts up to where the copy ended early, or until another try is needed.
        """
        copy = Copy()
        if not copy.pid:
            self._own[0], self._is_copy = Real.getpid(), True
            seed_all()
            yield from self._simulated(least, between, work, copy=copy)
        last, done = self._batches[-1], list[_Tried]()
        count, most, after = least, least + (0 if least == last else _MORE), 0
        with copy:
            while copy.ready():
                try:
                    known = self._compared(copy.pid, after, count)
                except (RuntimeError, OSError, ValueError):
                    break
                if known == _OPEN and count < most:
                    count += 1
                    copy.go_on(copy.CALL)
                    continue
                done.append(_Tried(copy.pid, after, count, known))
                if len(done) == self._layouts or (known == _OPEN and least != last):
                    break
                count, most, after = _AGREEING, last, self._last_part(copy.pid)
                copy.go_on(copy.LAYOUT)
        return done

    def _count_here(self, count: int, between: Between, work: Work) -> Generator[_Step, None, list[_Tried]]:
        """Yield what `_steps` does for this many simulated calls in each layout, all of it anew."""
        pid, done = self._own[0], list[_Tried]()
        for layout in range(self._layouts):
            after = self._last_part(pid)
            yield from self._simulated(count, between, work, layout)
            self._make(*self._stop)
            known = Real.elsewhere(functools.partial(self._compared, pid, after, count))
            if known is None:
                known = self._compared(pid, after, count)  # whatever it raises is why this benchmark fails
            done.append(_Tried(pid, after, count, known))
            if done[0].known == _OPEN and count != self._batches[-1]:
                break
        return done

    def _simulated(
        self, count: int, between: Between, work: Work, layout: int = 0, copy: Copy | None = None
    ) -> Generator[_Step]:
        """Yield what `_steps` does for some calls on a fresh heap, and for this many simulated ones; in a copy for all it is asked for."""
        self._result = None  # what it takes is not to be free later
        prepare = between.preparing()
        kept = keep_specialised(self._codes)
        take_free_memory()
        move_blocks(layout)
        # What stays is made before the calls that leave free what the next ones take.
        zero, end = (self._zero.block,), (self._end.block,)
        # Zeroing costs less than a part. But where set-up or tear-down starts a process, Callgrind writes a part before, which
        # cannot be zeroed: after this request, who reads drops all parts up to here.
        drop_earlier = (self._begin.block,) if work.has_set_up else zero
        take_chunks = chunk_taker(_LEFT_BEHIND, layout)
        for _ in range(_FIRST_ON_HEAP):
            take_chunks()
            yield prepare, *self._uncounted
        prepare = restoring(kept, prepare)
        take_chunks()
        self._make(*self._start)
        made = 0
        while True:
            yield prepare, drop_earlier, end, zero, end
            made += 1
            if made >= count:
                if copy is None:
                    return
                if copy.wait() == copy.LAYOUT:
                    made, count, layout = 0, _AGREEING, layout + 1
                    move_blocks(1)
                    take_chunks = chunk_taker(_LEFT_BEHIND, layout)
            take_chunks()

    def _end_foreign(self) -> None:
        """End a process that the benchmark has forked and that came back from it too: it would call on, and fork again."""
        if Real.getpid() != self._own[0]:
            Real.leave(0)

    def _last_part(self, pid: int) -> int:
        return dumps.last(self.out, dumps.of_process(pid))

    def _compared(self, pid: int, after: int, count: int) -> int:
        """Return _AGREE if the last of this many calls after a part took about the same path through the code. Errors as of `_calls`.

        Misses may differ more: where memory is freed in another order than it was taken, objects change places.
        """
        calls = self._calls(pid, after, count)
        pair = zip(*(itertools.chain(*map(dumps.path, call)) for call in calls[-_AGREEING:]), strict=True)
        if all((max(counts) - min(counts)) * _ALIKE <= min(counts) for counts in pair):
            return _AGREE
        later = [dumps.path(region)[0] for _, region in calls[1:]]
        last = later[-_SWINGING:]
        rises = {one < other for one, other in itertools.pairwise(last)}
        near = (max(last) - min(last)) * _NEAR <= min(last)
        return _SWING if near and len(later) >= _SWINGING and len(rises) > 1 else _OPEN

    def _calls(self, pid: int, after: int, count: int) -> list[tuple[dumps.Region, dumps.Region]]:
        """Return this many calls after a part, each after the empty one before it. RuntimeError if some are missing."""
        calls = dumps.calls(self.out, dumps.of_process(pid), after, count)
        if len(calls) < count:
            raise RuntimeError("some of what Callgrind wrote is missing: is the disk full?")
        return calls
