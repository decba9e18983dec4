"""Executes a framework's loop under Callgrind, in a child of a process that is started for many where the program can do that."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from cachegrind_bench.errors import CommandFailedError, FileFormatError, MeasurementError
from cachegrind_bench.harness.engine import forks
from cachegrind_bench.harness.engine.loop import REPORT, Loop
from cachegrind_bench.harness.engine.section_parts import section_accounts
from cachegrind_bench.hermetic.files import Stamp, stamp_of
from cachegrind_bench.valgrind.code_log import remove_unfinished
from cachegrind_bench.valgrind.options import Collect, Tool
from cachegrind_bench.valgrind.out_format import reading
from cachegrind_bench.valgrind.runner import Measurement, ValgrindRunner, measurement_of, reading_out_files, share_time

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.execution import Execution
    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.valgrind.processes import Accounts

_UNFIT: set[tuple[str, Stamp]] = set()  # programs that do not fork for others


class LoopMeasurement(Measurement, frozen=True, kw_only=True):
    """One measured execution of a loop, or of a child that was `forked` for it.

    `sections` is how often the framework started its clock, where only that counts, and `before` is what is to be subtracted.
    `jump` is the clock's (see Image), and `report` is what the framework wrote, if it was asked to (see `Report`).
    """

    sections: int = 0
    before: Accounts | None = None
    forked: bool = False
    jump: int | None = None
    report: bytes = b""


class LoopRunner:
    """A `Runner` for programs with this loop."""

    def __init__(self, runner: ValgrindRunner, loop: Loop) -> None:
        self._runner, self._loop, self.scratch = runner, loop, runner.scratch
        self.warm_up, self.measure_regions = runner.warm_up, runner.measure_regions

    def measure(self, execution: Execution, collect: Collect, tool: Tool) -> LoopMeasurement:
        """Execute once under Callgrind."""
        with suppress(CommandFailedError):  # some programs cannot be executed twice in one process
            for forked in self.measure_together(execution, collect, [execution.argv[1:]]):
                if forked is not None:
                    return forked
        try:
            if self._loop.sections is None:
                return LoopMeasurement(**asdict(self._runner.measure(execution, collect, tool)))
            outcome, log = self._runner.execute(execution, collect, tool)
        finally:
            if self._loop.log:
                remove_unfinished(self.scratch.out)
        return self._read_sections(execution, collect, outcome, log)

    def measure_together(
        self, execution: Execution, collect: Collect, lines: Sequence[tuple[str, ...]]
    ) -> list[LoopMeasurement | None]:
        """Execute once for all these words after the program's name, each in a child of one process.

        None where only an execution of its own can say how it failed, and empty where the program cannot do that. What it writes is
        not shown if there are several. MeasurementError as `measure`.
        """
        rehearsal, path = self._loop.rehearsal, execution.executable
        program = path, stamp_of(path)
        if not rehearsal or program in _UNFIT or forks.PRELOAD in execution.variables:
            return []
        if not all(forks.fits(words, rehearsal) for words in lines) or forks.library() is None:
            return []
        if forks.has_own_allocator(path):
            return []
        several = len(lines) > 1
        rehearsing = execution._replace(
            argv=(execution.argv[0], *rehearsal),
            variables={**execution.variables, **forks.variables(str(self.scratch.path))},
            forks_alike=True,
            quiet=several,
        )
        outcome, log = self._runner.execute(rehearsing, collect, Tool.CALLGRIND, partial(forks.put, lines=lines))
        ended = forks.ended(self.scratch.path, len(lines))
        if several and any(self.scratch.tmp.iterdir()):  # the next one could have seen it
            return []
        if not ended:  # it is linked statically, for instance, or has started threads
            _UNFIT.add(program)
            return []
        found: list[LoopMeasurement | None] = []
        for pid, status in ended:
            try:
                found.append(None if several and status else self._read_sections(execution, collect, outcome, log, pid))
            except MeasurementError:
                if not several:
                    raise
                found.append(None)
        measured = {place: item for place, item in enumerate(found) if item is not None}
        shared = share_time(measured, outcome.wall_ms)
        return [shared.get(place) for place in range(len(lines))]

    def _read_sections(
        self, execution: Execution, collect: Collect, outcome: Outcome, log: str, child: int | None = None
    ) -> LoopMeasurement:
        out, sections, report = self.scratch.out, self._loop.sections, b""
        assert sections is not None  # noqa: S101 - the caller has looked
        with suppress(FileFormatError), reading(out / REPORT) as file:
            report = file.read()
        try:
            with reading_out_files():
                wanted = {"lines": collect.lines, "calls": collect.calls}
                found = section_accounts(out, outcome, execution.argv, sections, child=child, **wanted)
        except MeasurementError:
            if self._loop.report is not None:
                self._loop.report.read(report, 0, 0)  # the framework may say why
            raise
        images = [image for image in outcome.images or () if child in (None, image.pid)]
        return LoopMeasurement(
            **asdict(measurement_of(Tool.CALLGRIND, outcome, log, found.accounts)),
            sections=found.number,
            before=found.before,
            forked=child is not None,
            jump=next((image.jump for image in images if image.jump is not None), None),
            report=report,
        )
