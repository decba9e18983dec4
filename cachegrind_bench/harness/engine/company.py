"""Benchmarks whose program is started once for all of them: the first to be measured has all executed, the others find what came of it.

Where that failed for one, it is measured alone, and says how.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from threading import Lock
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.errors import CgBenchError
from cachegrind_bench.harness.engine import forks
from cachegrind_bench.log import LOG
from cachegrind_bench.model.text import counted
from cachegrind_bench.waiting import repeated

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.config.benchmarks import BenchmarkSpec
    from cachegrind_bench.harness.engine.loop_runner import LoopMeasurement, LoopRunner
    from cachegrind_bench.hermetic.execution import Execution
    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.valgrind.options import Collect, Tool
    from cachegrind_bench.valgrind.runner import Measurement

_LOOK_S, _LONG_S = 0.5, 60.0


def companies(specs: Iterable[BenchmarkSpec], count: int, needs_calls: Callable[[str], bool]) -> dict[str, Company]:
    """Return the company of each benchmark that has one, by ids.

    Those that differ in their arguments only, with nothing to be done before or after each, are in as many as `count`, since that many can be measured at the same time.
    """
    alike: list[tuple[tuple[BenchmarkSpec, bool], list[BenchmarkSpec]]] = []
    for spec in specs:
        if spec.loop is None or not spec.loop.rehearsal or spec.prepare or spec.cleanup:
            continue
        common = replace(spec, id="", name="", command=spec.command[:1]), needs_calls(spec.id)
        own = next((members for known, members in alike if known == common), None)
        if own is None:
            alike.append((common, own := []))
        own.append(spec)
    found: dict[str, Company] = {}
    for _, members in alike:
        for place in range(count):
            part = members[place::count]
            company = Company([spec.command[1:] for spec in part], [spec.id for spec in part])
            found |= {spec.id: company for spec in part}
    return found


class Company:
    """What came of the benchmarks with these words after the program's name, in each round. Threads may share it."""

    def __init__(self, members: Sequence[tuple[str, ...]], ids: Sequence[str]) -> None:
        self.members, self.ids = members, ids
        self.lock = Lock()
        self.warm: dict[str, Outcome] = {}  # by why they see the project where it is
        self.rounds: list[dict[tuple[str, ...], LoopMeasurement]] = []


class CompanyRunner:
    """A `Runner` for the member of a company that has these words. One that takes long is said, as the others wait for it."""

    def __init__(self, runner: LoopRunner, company: Company, words: tuple[str, ...]) -> None:
        self._runner, self._company, self._words, self._round = runner, company, words, 0

    def warm_up(self, execution: Execution) -> Outcome:
        """Execute natively, unless another member has."""
        with self._company.lock:
            if execution.keep_place not in self._company.warm:
                self._company.warm[execution.keep_place] = self._runner.warm_up(execution)
            return self._company.warm[execution.keep_place]

    def measure(self, execution: Execution, collect: Collect, tool: Tool) -> LoopMeasurement:
        """Measure all members at once, unless another one has; this one alone where that did not work, or others are at another path."""
        if execution.keep_place:
            return self._runner.measure(execution, collect, tool)
        with self._company.lock:
            if self._round == len(self._company.rounds):
                self._company.rounds.append(self._measure_all(execution, collect))
            found = self._company.rounds[self._round].pop(self._words, None)
        self._round += 1
        return found or self._runner.measure(execution, collect, tool)

    def measure_regions(self, execution: Execution, collect: Collect) -> dict[str, Measurement]:
        """Execute once under Callgrind, for itself."""
        return self._runner.measure_regions(execution, collect)

    def _measure_all(self, execution: Execution, collect: Collect) -> dict[tuple[str, ...], LoopMeasurement]:
        members, more = self._company.members, execution.argv[1 + len(self._words) :]
        if execution.timeout_ms is not None or len(members) == 1:
            return {}
        # An execution of its own shows whose fault it is.
        with suppress(CgBenchError), _watched(self._runner.scratch.path, self._company.ids):
            found = self._runner.measure_together(execution, collect, [(*words, *more) for words in members])
            return {words: one for words, one in zip(members, found, strict=bool(found)) if one is not None}
        return {}


def _watched(folder: Path, ids: Sequence[str]) -> AbstractContextManager[None]:
    """Note which member is executed when it has taken a minute, and again each time that this has doubled."""
    at: int | None = None
    since, next_s = 0.0, _LONG_S

    def look() -> None:
        nonlocal at, since, next_s
        now = forks.running(folder, len(ids))
        if now != at:
            at, since, next_s = now, time.monotonic(), _LONG_S
        elif at is not None and (past := time.monotonic() - since) >= next_s:
            next_s *= 2
            LOG.info(f"{ids[at]} has run for {past:.0f} s, while {counted(len(ids) - 1, 'other')} must wait")

    return repeated(look, _LOOK_S)
