"""Has benchmarks run in measured processes, and hands on what becomes of them as it comes.

One thread per lane waits for its process; the main thread looks at the lanes' folders, and it alone reports.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cachegrind_bench.errors import CommandTimeoutError, MeasurementError
from cachegrind_bench.harness.pytest_session.limits import TimeLimit
from cachegrind_bench.harness.pytest_session.reports import read_report
from cachegrind_bench.harness.pytest_session.results import (
    Costs,
    Ended,
    benchmarks_of,
    ending,
    failure_text,
    read_costs,
)
from cachegrind_bench.harness.pytest_session.workers import CALLS, Place, Worker, Workers
from cachegrind_bench.hermetic.place import NOWHERE, Translation
from cachegrind_bench.hermetic.scratch import FIRST_SLOT, scratch
from cachegrind_bench.interruption import Completed, wait_for_all
from cachegrind_bench.log import LOG
from cachegrind_bench.measure.session import SCRATCH_BASE, ValgrindSetup
from cachegrind_bench.startup import dumps
from cachegrind_bench.startup.exchange import (
    FIRST,
    NO_BENCHMARK,
    NO_FILE,
    Exchange,
    read_current,
    translated,
    write_order,
)

if TYPE_CHECKING:
    from cachegrind_bench.harness.pytest_session.request import Collected, Item, SessionSettings
    from cachegrind_bench.model.result import Benchmark
    from cachegrind_bench.startup.exchange import LookUps, Report, RootOrders, Trouble
    from cachegrind_bench.valgrind.options import Collect

# Simulated calls of each try; after the last one, counts that do not agree are taken all the same. The first call fills the
# caches: only the path that it took through the code counts.
BATCHES = (2, 3, 7)
_LOOK_S = 0.05
_FIRST_WORD_S, _LONG_S = 15.0, 60.0
_KEPT_BYTES = 1 << 16
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class Relay:
    """Who follows the benchmarks: pytest, or a suite."""

    def report(self, item: Item, found: Report, costs: Costs) -> None:
        """One has ended, and reports this; what it cost, if that is known already."""

    def stopped(self) -> bool:
        """Return whether no further one is to begin."""
        return False

    def echo(self, chunk: bytes) -> None:
        """The measured processes write this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Items that are measured, once or more often, and how and where that is done."""

    collected: Collected
    settings: SessionSettings
    valgrind_setup: ValgrindSetup
    place: Place


def run(
    collected: Collected, settings: SessionSettings, valgrind_setup: ValgrindSetup, relay: Relay
) -> tuple[list[Benchmark], Bench]:
    """Measure the items, in as many lanes as wanted. MeasurementError where nothing can be measured."""
    items = collected.items
    twice = [name for name, count in Counter(item.nodeid for item in items).items() if count > 1]
    if twice:
        raise MeasurementError(
            f"two benchmarks have the same id: {twice[0]}", hint="give them names of their own, or name each file once"
        )
    said = bytearray()

    def echo(chunk: bytes) -> None:
        said.extend(chunk)
        del said[: max(0, len(said) - _KEPT_BYTES)]
        relay.echo(chunk)

    python = collected.python.executable
    place = Place(
        cwd=Path(collected.cwd),
        environ=settings.environ,
        request=settings.request,
        python=python,
        verified=not collected.python.unverified,
    )
    bench = Bench(collected=collected, settings=settings, valgrind_setup=valgrind_setup, place=place)

    def measured(bench: Bench, *, try_first: bool) -> tuple[Sequence[Lane], Bench]:
        """Measure; _AgainError where the measured processes, which start meanwhile, have to start again."""
        with serving(
            bench, items, BATCHES, read=lambda lane, out, _: lane.read_costs(out, settings), echo=echo, relay=relay
        ) as lanes:
            if try_first:
                place, tried = _try_natively(bench, relay)
                bench = dataclasses.replace(bench, place=place)
                # At another place, or without what is there now: compiled modules, what lies next to the project.
                if place.keep or tried.wrote_beside or any(lane.is_older_than(tried.caches) for lane in lanes):
                    raise _AgainError(bench)
            for lane in lanes:
                lane.release(bench.place.look_ups)
            _watch(lanes, settings, said, relay)
        return lanes, bench

    try:
        found = measured(bench, try_first=True)
    except _AgainError as error:
        found, bench = None, error.bench
        said.clear()
    lanes, bench = found or measured(bench, try_first=False)
    ended = {one.item.nodeid: one for lane in lanes for one in lane.ended()}
    ordered = [ended[item.nodeid] for item in items if item.nodeid in ended]
    return benchmarks_of(ordered, settings, valgrind_setup.environment, bench.place, collected), bench


class _AgainError(Exception):
    """The measured processes have to start again, and this is how."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.place.keep)
        self.bench = bench


@dataclass(frozen=True, slots=True, kw_only=True)
class _NativeRun:
    """What became of all benchmarks without Valgrind, by the ids of their nodes, and why they could not be at a constant path.

    `caches` are the folders of the compiled modules that were looked for before the first file of tests; `unfit` is what benchmarks
    do that only works where the project is.
    """

    passed: set[str]
    late: set[str]
    look_ups: dict[str, LookUps]
    caches: Sequence[str]
    refused: str
    unfit: str
    wrote_beside: bool


def _try_natively(bench: Bench, relay: Relay) -> tuple[Place, _NativeRun]:
    """Run all benchmarks without Valgrind, and return where they pass: at a constant path, or else where they are."""
    place, items = bench.place, bench.collected.items
    first = _run_natively(bench, relay)
    failed = len(first.passed | first.late) < len(items)
    if failed and bench.settings.jobs > 1 and not first.refused and not first.unfit:
        # What they build or fetch once may have been in the way of several at a time.
        first = _run_natively(
            dataclasses.replace(bench, settings=msgspec.structs.replace(bench.settings, jobs=1)), relay
        )
    if first.unfit or len(first.passed | first.late) < len(items):
        kept = dataclasses.replace(place, keep=first.unfit or first.refused or "benchmarks fail at another path")
        second = _run_natively(dataclasses.replace(bench, place=kept), relay)
        if second.passed > first.passed or first.refused or first.unfit:
            first, place = second, kept
    return dataclasses.replace(place, look_ups=first.look_ups), first


def _run_natively(bench: Bench, relay: Relay) -> _NativeRun:
    """Run all benchmarks without Valgrind. What fails will fail again, and is reported then."""
    with serving(bench, bench.collected.items, BATCHES, relay=relay, native=True) as lanes:
        for lane in lanes:
            lane.release({})
        wait_for_all([lane.future for lane in lanes])
        return _NativeRun(
            passed=set[str]().union(*(lane.passed() for lane in lanes)),
            late=set[str]().union(*(lane.late() for lane in lanes)),
            look_ups={nodeid: found for lane in lanes for nodeid, found in lane.look_ups().items()},
            caches=sorted({folder for lane in lanes for folder in lane.caches()}),
            refused=next(filter(None, (lane.why_not_moved() for lane in lanes)), ""),
            unfit=next(filter(None, (lane.why_unfit() for lane in lanes)), ""),
            wrote_beside=any(lane.wrote_beside() for lane in lanes),
        )


@contextmanager
def serving(
    bench: Bench,
    items: Sequence[Item],
    batches: tuple[int, ...],
    *,
    read: Callable[[Lane, Path, Any], object] = lambda _lane, _out, _maps: None,
    native: bool = False,
    echo: Callable[[bytes], None] = lambda _chunk: None,
    collect: Collect = CALLS,
    relay: Relay | None = None,
) -> Generator[list[Lane]]:
    """Measure these items meanwhile, in lanes of about the same length: those of a file stay together as far as that goes.

    The processes start, and wait until their lane is released. `read` and `native` are as in `Workers`.
    """
    settings, place = bench.settings, bench.place
    count = max(1, min(settings.jobs, len(items)))
    edges = [len(items) * number // count for number in range(count + 1)]
    with scratch(SCRATCH_BASE, first=FIRST_SLOT) as folder, TimeLimit(settings.timeout_ms) as limit:
        lanes = [
            Lane(
                bench.collected, items[start:end], Exchange(str(folder.path / f"{number:03}")), limit, relay or Relay()
            )
            for number, (start, end) in enumerate(pairwise(edges))
        ]
        workers = Workers(
            valgrind_setup=bench.valgrind_setup,
            place=place,
            read=read,
            echo=echo,
            collect=collect,
            watch=limit.watching,
            native=native,
        )
        with ExitStack() as stack:
            for lane in lanes:
                stack.enter_context(closing(lane))
                lane.write_orders(settings.warm_up, batches, place.paths, settings.layouts)
            with workers.serving(lanes):
                yield lanes


def _watch(lanes: Sequence[Lane], settings: SessionSettings, said: bytearray, relay: Relay) -> None:
    ended = Completed(lane.future for lane in lanes)
    while True:
        done = [lane.future.done() for lane in lanes]  # before the look: what comes after it is seen then
        for lane, over in zip(lanes, done, strict=True):
            lane.look(said, settings, over=over)
            if not over:
                lane.say_what_takes_long()
        if relay.stopped():
            for lane in lanes:
                with _writing(lane.exchange):
                    Path(lane.exchange.stop).touch()
        if all(done):
            return
        ended.next(_LOOK_S)


@contextmanager
def _writing(exchange: Exchange) -> Generator[None]:
    """MeasurementError where nothing can be written into a lane's folder."""
    try:
        yield
    except OSError as error:
        what = f"cannot write into {exchange.path}: {error.strerror}"
        raise MeasurementError(what, hint="free some space there" if error.errno in _FULL else None) from error


class Lane(Worker):
    """The items of one measured process, by files, and what became of them so far."""

    def __init__(
        self, collected: Collected, items: Sequence[Item], exchange: Exchange, limit: TimeLimit, relay: Relay
    ) -> None:
        super().__init__(exchange)
        self._collected, self.items, self._limit, self._relay = collected, items, limit, relay
        self._files: dict[str, list[Item]] = {}
        for item in items:
            self._files.setdefault(item.file, []).append(item)
        self._items = {
            (number, index): item
            for number, own in enumerate(self._files.values(), FIRST)
            for index, item in enumerate(own, FIRST)
        }
        self.limit_ms = limit.of_all(len(collected.items), len(collected.files))
        self._waiting = dict(self._items)
        self._paths = NOWHERE
        self._gate: int | None = None
        self._reports: dict[str, Report] = {}
        self._costs: dict[str, Costs | MeasurementError] = {}
        self._current: tuple[int, ...] | None = None
        self._since = self._said_after = 0.0

    def write_orders(
        self,
        warm_up: int,
        batches: tuple[int, ...],
        paths: Translation = NOWHERE,
        layouts: int = 1,
    ) -> None:
        """Write the orders, with the paths that the measured process sees; it waits before the first file, to be released."""
        collected, exchange = self._collected, self.exchange
        self._paths = paths
        root: RootOrders = {**collected.imports, "warm_up": warm_up, "batches": batches, "layouts": layouts}
        with _writing(exchange):
            shutil.rmtree(exchange.path, ignore_errors=True)
            Path(exchange.path).mkdir()
            write_order(exchange.root, translated(root, paths.seen))
            for number, path in enumerate(self._files, FIRST):
                write_order(exchange.file(number), translated(collected.files[path], paths.seen))
            for (number, index), item in self._items.items():
                write_order(exchange.benchmark(number, index), item.nodeid)
            os.mkfifo(exchange.gate)
            self._gate = os.open(exchange.gate, os.O_RDWR | os.O_NONBLOCK)

    def release(self, look_ups: Mapping[str, LookUps]) -> None:
        """Let the measured process go on, with what benchmarks look up in types, by the ids of their nodes."""
        exchange = self.exchange
        with _writing(exchange):
            for (number, index), item in self._items.items():
                write_order(exchange.look_ups(number, index), look_ups.get(item.nodeid, {}))
        if self._gate is not None:
            os.write(self._gate, b"!")

    def caches(self) -> list[str]:
        """Return where the measured process looked for compiled modules before its first file of tests."""
        folders: list[str] | None = self._read(self.exchange.caches)
        return folders or []

    def is_older_than(self, folders: Sequence[str]) -> bool:
        """Return whether anything has come to any of these folders, or gone, since the orders were written."""
        with _writing(self.exchange):
            begun = Path(self.exchange.root).stat().st_mtime_ns
        return any(os.stat(path).st_mtime_ns >= begun for path in folders if os.path.exists(path))

    def close(self) -> None:
        """Close the gate, at which no process waits any more."""
        if self._gate is not None:
            os.close(self._gate)
            self._gate = None

    def passed(self) -> set[str]:
        """Return the benchmarks that did not fail so far."""
        return {
            nodeid
            for nodeid, report in self.all_reports().items()
            if failure_text(report) is None and all(part["outcome"] != "failed" for part in report["reports"])
        }

    def look_ups(self) -> dict[str, LookUps]:
        """Return what benchmarks look up in types, where they were run without Valgrind."""
        reports = self.all_reports().items()
        return {name: measured["look_ups"] for name, report in reports if (measured := report.get("meter"))}

    def late(self) -> set[str]:
        """Return the benchmarks that took too long: they would do so wherever the project is."""
        whole = isinstance(self.future.exception(), CommandTimeoutError)
        return {item.nodeid for place, item in self._items.items() if whole or self._limit.why(self.exchange, *place)}

    def look(self, said: bytearray, settings: SessionSettings, *, over: bool) -> None:
        """Report what has come since the last time; if it is `over`, that is all that comes."""
        for (number, index), item in list(self._waiting.items()):
            if self._relay.stopped():
                return  # what ended since the failure that stopped the run is as if it had not begun
            found = self._report(number, index)
            if found is None and not os.path.exists(self.exchange.trouble(number)) and not over:
                return  # they come in their order
            if found is None:  # or did it come just before what says that nothing more comes?
                found = self._report(number, index) or self._lost(number, said, over=over)
            del self._waiting[number, index]
            if found is None:
                continue
            self._reports[item.nodeid] = found
            if not over and self.out is not None:  # else all costs were read
                read_costs(self._costs, {item.nodeid: found}, self.out, settings, self._paths)
                if isinstance(self._costs.get(item.nodeid), tuple):
                    self._remove_parts(self.out, number, index)
            costs = self._costs.get(item.nodeid, ())
            self._relay.report(item, found, () if isinstance(costs, MeasurementError) else costs)

    def say_what_takes_long(self) -> None:
        """Say after 15 s, 30 s, 60 s and so on what is being measured, and after a minute what helps."""
        current = read_current(self.exchange.current)
        if current != self._current:
            self._current, self._since, self._said_after = current, time.monotonic(), _FIRST_WORD_S
        seconds = time.monotonic() - self._since
        item = self._waiting.get((current[1], current[2])) if current else None
        if item is None or seconds < self._said_after:
            return
        advice = "; give it less work, as Valgrind makes it about a hundred times slower"
        LOG.info(f"measuring {item.nodeid} for {seconds:.0f} s{advice if self._said_after == _LONG_S else ''}")
        self._said_after *= 2

    @staticmethod
    def _remove_parts(out: Path, number: int, index: int) -> None:
        """Remove what Callgrind wrote of a benchmark that was read; else all would be given real paths in the end."""
        prefix = dumps.kept(f"{number}.{index}")
        with suppress(OSError):
            for name in os.listdir(out):
                if name.startswith(prefix):
                    os.unlink(out / name)

    def why_nothing(self, item: Item) -> str:
        """Explain why a benchmark that reported nothing to pytest produced no result."""
        place = next(place for place, own in self._items.items() if own is item)
        found = self._report(*place) or self._lost(place[0], bytearray(), over=True)
        text = failure_text(found) if found is not None else None
        return text.removeprefix("cg-bench: ") if text else "its test failed in the run that measures it"

    def _read(self, path: str) -> Any:
        """Return what the measured process wrote, with real paths; None before it has come."""
        return translated(read_report(path), self._paths.real)

    def _report(self, number: int, index: int) -> Report | None:
        """Return what a benchmark reported; of one that was stopped, why."""
        found: Report | None = self._read(self.exchange.report(number, index))
        # With an ending, its process ended before it could report: perhaps because it was stopped.
        if found and "status" in found and (why := self._limit.why(self.exchange, number, index)):
            found["died"] = why
        return found

    def _lost(self, number: int, said: bytearray, *, over: bool) -> Report | None:
        """Return what to report of a benchmark that nothing came of; None if it was not to begin any more."""
        if self._relay.stopped():
            return None
        trouble: Trouble | None = self._read(self.exchange.trouble(number))
        late = self._limit.why(self.exchange, number) or self._limit.why(self.exchange, NO_FILE)
        current = read_current(self.exchange.current)
        index = (
            trouble.get("at", NO_BENCHMARK)
            if trouble
            else current[2]
            if current and current[1] == number
            else NO_BENCHMARK
        )
        at = self._items.get((number, index))
        when = f" while {at.nodeid} ran" if at else ""
        if late is not None:
            text = f"{late}{when}"
        elif trouble is not None:
            text = trouble.get("text") or f"the process of its file {ending(trouble)}{when}"
        else:
            error = self.future.exception() if over else None
            text = "\n".join(str(part) for part in (error, getattr(error, "hint", None)) if part)
            if isinstance(error, CommandTimeoutError):
                text = "the measured process took longer than all of its benchmarks may, and was stopped"
            text = text or f"the measured process ended early; it said:\n{said.decode('utf-8', 'backslashreplace')}"
        return {"reports": [], "trouble": text}

    def all_reports(self) -> dict[str, Report]:
        """Return all reports that there are, whether or not pytest has them yet; any thread may ask."""
        found = ((item.nodeid, self._report(*place)) for place, item in self._items.items())
        return {nodeid: report for nodeid, report in found if report is not None}

    def read_costs(self, out: Path, settings: SessionSettings) -> None:
        """Read what all benchmarks cost, when their process has ended; what could not be read early is tried again."""
        for name, one in list(self._costs.items()):
            if isinstance(one, MeasurementError):  # in place: the main thread may be adding one meanwhile
                self._costs.pop(name)
        read_costs(self._costs, self.all_reports(), out, settings)

    def ended(self) -> list[Ended]:
        """Return what became of the benchmarks that were begun."""
        error = self.future.exception()
        return [
            Ended(
                item=item,
                report=self._reports[item.nodeid],
                costs=self._costs.get(item.nodeid, ()),
                outcome=None if error is not None else self.future.result(),
                failure=None if error is None else f"the measured process failed: {error}",
            )
            for item in self._items.values()
            if item.nodeid in self._reports
        ]
