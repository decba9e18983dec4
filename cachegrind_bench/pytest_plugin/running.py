"""Has benchmarks run in measured processes, and hands what becomes of them to pytest as it comes.

One thread per lane waits for its process; the main thread looks at the lanes' folders, and it alone calls hooks.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.environment import held_back
from cachegrind_bench.hermetic.place import NOWHERE, Translation
from cachegrind_bench.hermetic.scratch import scratch
from cachegrind_bench.measure.session import SCRATCH_BASE
from cachegrind_bench.pytest_plugin.exchange import Exchange, put_order, take_report, translated
from cachegrind_bench.pytest_plugin.forking import FIRST
from cachegrind_bench.pytest_plugin.handover import file_orders, root_orders
from cachegrind_bench.pytest_plugin.harness import BATCHES
from cachegrind_bench.pytest_plugin.lanes import Lanes, Place, warm_up
from cachegrind_bench.pytest_plugin.limits import TimeLimit
from cachegrind_bench.pytest_plugin.report_relay import ending, failure_text, show_bytes, tell
from cachegrind_bench.pytest_plugin.results import EarlyCosts, Ended, read_costs, result_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.measure.session import Laboratory
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.pytest_plugin.options import Settings
    from cachegrind_bench.pytest_plugin.type_versions import LookUps

PLACE = pytest.StashKey[Place]()  # of the measured processes, once it is known
LOOK_UPS = pytest.StashKey["dict[str, LookUps]"]()  # of benchmarks by their ids, as seen without Valgrind
_LOOK_S = 0.05
FIRST_SLOT = 500  # of the folder in which orders and reports are
_KEPT_BYTES = 1 << 16


def run(session: pytest.Session, settings: Settings, laboratory: Laboratory) -> Result:
    """Measure the session's items, in as many lanes as wanted. MeasurementError where nothing can be measured."""
    items = list(session.items)
    twice = [name for name, count in Counter(item.nodeid for item in items).items() if count > 1]
    if twice:
        raise MeasurementError(
            f"two benchmarks have one id: {twice[0]}", hint="give them names of their own, or name each file once"
        )
    created_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    said = bytearray()

    def echo(chunk: bytes) -> None:
        said.extend(chunk)
        del said[: max(0, len(said) - _KEPT_BYTES)]
        if session.config.option.capture == "no":
            show_bytes(sys.stderr, chunk)
            sys.stderr.flush()

    with ExitStack() as stack:
        folder = stack.enter_context(scratch(SCRATCH_BASE, first=FIRST_SLOT)).path
        limit = TimeLimit(settings.timeout_ms)
        lanes = lanes_of(session, items, settings, folder, limit)
        stack.enter_context(limit)
        place = Place(cwd=session.config.invocation_params.dir, environ=settings.environ, request=settings.request)

        def rehearse(place: Place, name: str) -> tuple[Lane, str]:
            rehearsal = Lane(session, Exchange(str(folder / name)), items, limit)
            rehearsal.order(settings.warm_up, BATCHES, place.places)
            return rehearsal, warm_up(laboratory, place, rehearsal.exchange, limit.watching)

        first, refused = rehearse(place, "all")
        if len(first.passed() | first.late()) < len(items):
            kept = replace(place, keep=refused or "benchmarks fail at another path")
            second = rehearse(kept, "anew")[0]
            if second.passed() > first.passed() or refused:
                first, place = second, kept
        session.config.stash[PLACE], session.config.stash[LOOK_UPS] = place, first.look_ups()
        for lane in lanes:
            lane.order(settings.warm_up, BATCHES, place.places)
            lane.held_back = held_back(settings.environ, settings.request)
        early = [EarlyCosts(settings.model, place.places) for _ in lanes]
        at_work = Lanes(
            laboratory,
            place,
            [lane.exchange for lane in lanes],
            echo=echo,
            read=lambda number, out, _trampolines: [
                read_costs(
                    lanes[number].all_reports(layout), out, settings.model, {} if layout else early[number].found
                )
                for layout in range(settings.layouts)
            ],
            watch=limit.watching,
        )
        with at_work:
            at_work.start()
            _watch(session, lanes, at_work, early, said)
        at_work.raise_unforeseen()
        ended = [ended for lane, future in zip(lanes, at_work.futures, strict=True) for ended in lane.ended(future)]
        by_id = {one.item.nodeid: one for one in ended}
        ordered = [by_id[item.nodeid] for item in items if item.nodeid in by_id]
        return result_of(ordered, settings, laboratory, place, created_at)


def lanes_of(
    session: pytest.Session, items: Sequence[pytest.Item], settings: Settings, folder: Path, limit: TimeLimit
) -> list[Lane]:
    """Split the items into lanes of about the same length: those of a file stay together as far as that goes."""
    count = max(1, min(settings.jobs, len(items)))
    edges = [len(items) * number // count for number in range(count + 1)]
    return [
        Lane(session, Exchange(str(folder / f"{number:03}")), items[start:end], limit, settings.layouts)
        for number, (start, end) in enumerate(pairwise(edges))
    ]


def _watch(
    session: pytest.Session,
    lanes: Sequence[Lane],
    at_work: Lanes[Any],
    early: Sequence[EarlyCosts],
    said: bytearray,
) -> None:
    while True:
        done = [future.done() for future in at_work.futures]  # before the look: what comes after it is seen then
        for number, (lane, over) in enumerate(zip(lanes, done, strict=True)):
            lane.look(at_work.futures[number] if over else None, said)
            if not over and number in at_work.outs:
                early[number].look(lane.reports, at_work.outs[number])
        if session.shouldfail or session.shouldstop:
            for lane in lanes:
                Path(lane.exchange.stop).touch()
        if all(done):
            return
        time.sleep(_LOOK_S)


class Lane:
    """The items of one measured process, by files, and what became of them so far."""

    def __init__(
        self,
        session: pytest.Session,
        exchange: Exchange,
        items: Sequence[pytest.Item],
        limit: TimeLimit,
        layouts: int = 1,
    ) -> None:
        self._session, self.exchange, self.items, self._limit = session, exchange, items, limit
        self.held_back: Sequence[str] = ()
        files: dict[Path, list[pytest.Item]] = {}
        for item in items:
            files.setdefault(item.path, []).append(item)
        self._files = files
        # The first layout's numbers do not depend on whether there are more.
        self._by_layout = [
            {
                (number, index): item
                for number, own in enumerate(files.values(), FIRST)
                for index, item in enumerate(own, FIRST + layout * len(own))
            }
            for layout in range(layouts)
        ]
        self._items = self._by_layout[0]
        self._waiting = dict(self._items)
        self._places = NOWHERE
        self.reports: dict[str, Any] = {}

    def order(self, warm_up: int, batches: tuple[int, ...], places: Translation = NOWHERE) -> None:
        """Write the orders, with the paths that the measured process sees."""
        config, exchange = self._session.config, self.exchange
        none: dict[str, LookUps] = {}
        look_ups = config.stash.get(LOOK_UPS, none)
        self._places = places
        shutil.rmtree(exchange.path, ignore_errors=True)
        Path(exchange.path).mkdir()
        put_order(exchange.root, translated(root_orders(config, warm_up, batches), places.seen))
        for number, path in enumerate(self._files, FIRST):
            put_order(exchange.file(number), translated(file_orders(config, str(path)), places.seen))
        for layout, items in enumerate(self._by_layout):
            for (number, index), item in items.items():
                put_order(exchange.benchmark(number, index), (item.nodeid, layout))
                put_order(exchange.look_ups(number, index), look_ups.get(item.nodeid, {}))

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
        return {nodeid: report["meter"]["look_ups"] for nodeid, report in reports if report.get("meter")}

    def late(self) -> set[str]:
        """Return the benchmarks that took too long: they would do so wherever the project is."""
        return {item.nodeid for place, item in self._items.items() if self._limit.why(self.exchange, *place)}

    def _take(self, path: str) -> Any | None:
        return translated(take_report(path), self._places.real)

    def look(self, future: Any, said: bytearray) -> None:
        """Tell pytest what has come since the last time; with a `future`, that is all that comes."""
        for (number, index), item in list(self._waiting.items()):
            if self._session.shouldfail or self._session.shouldstop:
                return  # what ended since the failure that stopped the run is as if it had not begun
            found = self._take(self.exchange.report(number, index))
            if found is None and not Path(self.exchange.trouble(number)).exists() and future is None:
                return  # they come in their order
            if found is None:  # or did it come just before what says that nothing more comes?
                found = self._take(self.exchange.report(number, index)) or self._lost(number, future, said)
            del self._waiting[number, index]
            if found is None:
                continue
            self._add_why(found, number, index)
            self.reports[item.nodeid] = found
            tell(item, found, self.held_back)

    def _add_why(self, found: dict[str, Any], number: int, index: int) -> None:
        if "status" in found and (why := self._limit.why(self.exchange, number, index)):
            found["died"] = why

    def why_nothing(self, item: pytest.Item, future: Any) -> str:
        """Return in words why there is nothing of a benchmark that nobody was told of."""
        place = next(place for place, own in self._items.items() if own is item)
        found = self._take(self.exchange.report(*place)) or self._lost(place[0], future, bytearray())
        if found is not None:
            self._add_why(found, *place)
        text = failure_text(found) if found is not None else None
        return text.removeprefix("cg-bench: ") if text else "its test failed in the run that is for it"

    def _lost(self, number: int, future: Any, said: bytearray) -> dict[str, Any] | None:
        """Return what is told of a benchmark that nothing came of; None if it was not to begin any more."""
        if Path(self.exchange.stop).exists():
            return None
        trouble = self._take(self.exchange.trouble(number))
        late = self._limit.why(self.exchange, number) or self._limit.why(self.exchange, -1)
        if late is not None:
            text = f"what comes before the benchmarks {late}"
        elif trouble is not None:
            text = trouble.get("text") or f"the process of its file {ending(trouble)}"
        else:
            error = future.exception() if future is not None else None
            text = "\n".join(str(part) for part in (error, getattr(error, "hint", None)) if part)
            text = text or f"the measured process ended early; it said:\n{said.decode('utf-8', 'backslashreplace')}"
        return {"reports": [], "died": None, "trouble": text}

    def all_reports(self, layout: int = 0) -> dict[str, Any]:
        """Return all reports of a layout that there are, whether or not they were told of yet; any thread may ask."""
        found = {
            item.nodeid: self._take(self.exchange.report(number, index))
            for (number, index), item in self._by_layout[layout].items()
        }
        return {nodeid: report for nodeid, report in found.items() if report is not None}

    def ended(self, future: Any) -> list[Ended]:
        """Return what became of the benchmarks that were begun."""
        error = future.exception()
        served = None if error is not None else future.result()
        failure = None if error is None else f"the measured process failed: {error}"
        return [
            Ended(item=item, report=self.reports[item.nodeid], served=served, failure=failure)
            for item in self._items.values()
            if item.nodeid in self.reports
        ]
