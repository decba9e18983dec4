"""Runs a command under Valgrind, sealed, and returns what it cost. `Runner` is the seam where tests replay a recording."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from cachegrind_bench.errors import CommandFailedError, FileFormatError, MeasurementError, PlaceError, UsageError
from cachegrind_bench.hermetic import environment
from cachegrind_bench.hermetic.environment import layout
from cachegrind_bench.hermetic.execution import Execution, Placed
from cachegrind_bench.hermetic.launch import Outcome, launch
from cachegrind_bench.hermetic.place import NOWHERE, Pair, Translation, pairs_of
from cachegrind_bench.log import LOG
from cachegrind_bench.process import shown_command
from cachegrind_bench.valgrind import forks
from cachegrind_bench.valgrind.failures import check_outcome, refused_programs
from cachegrind_bench.valgrind.options import Collect, Geometry, Tool, arguments
from cachegrind_bench.valgrind.out_format import reading
from cachegrind_bench.valgrind.processes import Accounts, account

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.hermetic.scratch import Scratch
    from cachegrind_bench.valgrind.tool import Valgrind

_LOG_BYTES = 1 << 16
_REPORT = "report"
_UNFIT: set[str] = set()  # programs that do not fork for others


_Name = TypeVar("_Name", str, int)


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One measured execution. `forked` says whether it was that of a child of the program; `jump` is the clock's (see Image).

    `report` is what the framework wrote about it, if it was asked to (see `Report`).
    """

    tool: Tool
    outcome: Outcome
    accounts: Accounts
    forked: bool = False
    jump: int | None = None
    report: bytes = b""


def _shared_time(found: Mapping[_Name, Measurement], wall_ms: int) -> dict[_Name, Measurement]:
    """Share the time of one execution out among what was measured in it, by the instructions counted."""
    counts = {name: item.accounts.profile.counts().Ir for name, item in found.items()}
    whole = max(sum(counts.values()), 1)
    return {
        name: replace(item, outcome=replace(item.outcome, wall_ms=wall_ms * counts[name] // whole))
        for name, item in found.items()
    }


class Runner(Protocol):
    """Executes natively, or measures."""

    def warm_up(self, execution: Execution) -> Outcome:
        """Execute once, sealed, without Valgrind. MeasurementError if the command fails."""
        ...

    def measure(self, execution: Execution, collect: Collect, tool: Tool) -> Measurement:
        """Execute once under Valgrind. MeasurementError if the command fails or its counts cannot be read."""
        ...

    def measure_regions(self, execution: Execution, collect: Collect) -> dict[str, Measurement]:
        """Execute once under Callgrind, and return the regions it entered. MeasurementError as `measure`."""
        ...


@dataclass(slots=True, kw_only=True)
class ValgrindRunner:
    """The real runner. `keep` is a directory to copy out files to."""

    valgrind: Valgrind
    geometry: Geometry
    scratch: Scratch
    echo: Callable[[bytes], None]
    keep: Path | None = None

    def warm_up(self, execution: Execution) -> Outcome:
        """Execute once, sealed, without Valgrind."""
        self.scratch.renew()
        outcome = self._launch(execution, execution.argv)
        self._check(execution, outcome, "", native=True)
        return outcome

    def measure(self, execution: Execution, collect: Collect, tool: Tool) -> Measurement:
        """Execute once under Valgrind."""
        with suppress(CommandFailedError):  # some programs cannot be executed twice in one process
            for forked in self.measure_together(execution, collect, [execution.argv[1:]]):
                if forked is not None:
                    return forked
        outcome, log = self.execute(execution, collect, tool)
        if collect.sections is not None:
            return self._measured_sections(execution, collect, outcome, log)
        with reading_out_files():
            accounts = account(
                tool, self.scratch.out, outcome, execution.argv, lines=collect.lines, calls=collect.calls
            )
        return _measurement(tool, outcome, log, accounts)

    def measure_together(
        self, execution: Execution, collect: Collect, lines: Sequence[tuple[str, ...]]
    ) -> list[Measurement | None]:
        """Execute once for all these words after the program's name, each in a child of one process.

        None where only an execution of its own can say how it failed, and empty where the program cannot do that. What it writes is
        not shown if there are several. MeasurementError as `measure`.
        """
        loop = collect.loop
        if loop is None or not loop.rehearsal or execution.executable in _UNFIT or forks.PRELOAD in execution.variables:
            return []
        if not all(forks.fits(words, loop.rehearsal) for words in lines) or forks.library() is None:
            return []
        if forks.has_own_allocator(execution.executable):
            return []
        several = len(lines) > 1
        argv = (execution.argv[0], *loop.rehearsal)
        rehearsing = execution._replace(argv=argv, forks_alike=True, quiet=several)
        outcome, log = self.execute(rehearsing, collect, Tool.CALLGRIND, lines)
        ended = forks.ended(self.scratch.path, len(lines))
        if several and any(self.scratch.tmp.iterdir()):  # the next one could have seen it
            return []
        if not ended:  # it is linked statically, for instance, or has started threads
            _UNFIT.add(execution.executable)
            return []
        found: list[Measurement | None] = []
        for pid, status in ended:
            try:
                found.append(
                    None if several and status else self._measured_sections(execution, collect, outcome, log, pid)
                )
            except MeasurementError:
                if not several:
                    raise
                found.append(None)
        measured = {place: item for place, item in enumerate(found) if item is not None}
        shared = _shared_time(measured, outcome.wall_ms)
        return [shared.get(place) for place in range(len(lines))]

    def _measured_sections(
        self, execution: Execution, collect: Collect, outcome: Outcome, log: str, child: int | None = None
    ) -> Measurement:
        from cachegrind_bench.valgrind.section_parts import section_accounts

        loop, sections, report = collect.loop, collect.sections, b""
        assert loop is not None and sections is not None  # noqa: S101, PT018 - the caller has looked
        with suppress(FileFormatError), reading(self.scratch.out / _REPORT) as file:
            report = file.read()
        try:
            with reading_out_files():
                wanted = {"lines": collect.lines, "calls": collect.calls}
                accounts = section_accounts(self.scratch.out, outcome, execution.argv, sections, child=child, **wanted)
        except MeasurementError:
            if loop.report is not None:
                loop.report.read(report, 0, 0)  # the framework may say why
            raise
        images = [image for image in outcome.images or () if child in (None, image.pid)]
        jump = next((image.jump for image in images if image.jump is not None), None)
        found = _measurement(Tool.CALLGRIND, outcome, log, accounts)
        return replace(found, forked=child is not None, jump=jump, report=report)

    def measure_regions(self, execution: Execution, collect: Collect) -> dict[str, Measurement]:
        """Execute once under Callgrind."""
        from cachegrind_bench.valgrind.region_parts import region_accounts  # few programs have regions

        outcome, log = self.execute(execution, collect, Tool.CALLGRIND)
        with reading_out_files():
            regions = region_accounts(self.scratch.out, outcome, execution.argv, calls=collect.calls)
        found = {name: _measurement(Tool.CALLGRIND, outcome, log, accounts) for name, accounts in regions.items()}
        return _shared_time(found, outcome.wall_ms)

    def execute(
        self, execution: Execution, collect: Collect, tool: Tool, lines: Sequence[Sequence[str]] = ()
    ) -> tuple[Outcome, str]:
        """Execute once under Valgrind, and leave its out files in the scratch directory; also return Valgrind's log.

        The program forks for each of the `lines`.
        """
        self.scratch.renew(self.valgrind.libexec)
        if lines:
            forks.put(self.scratch.path, lines)
            variables = {**execution.variables, **forks.variables(str(self.scratch.path))}
            execution = execution._replace(variables=variables)
        if collect.toggles:
            from cachegrind_bench.valgrind.toggles import symbols  # few count functions only

            collect = replace(collect, toggles=symbols(execution.executable, collect.toggles))
        options = arguments(
            tool,
            self.geometry,
            self.scratch.out,
            guest_chase_off=self.valgrind.guest_chase_off,
            pages=layout(execution.layout).pages,
            collect=collect,
        )
        words = list(execution.argv)
        if collect.loop is not None and collect.loop.log:
            *flags, log = collect.loop.log
            words[execution.begin : execution.begin] = (*flags, log.format(self.scratch.out))
        if collect.loop is not None and collect.loop.report is not None:
            words += [word.format(self.scratch.out / _REPORT) for word in collect.loop.report.words]
        argv = (self.valgrind.launcher, *options, *words)
        try:
            perf_maps = collect.python_depth is not None
            outcome = self._launch(execution, argv, tool=tool, perf_maps=perf_maps)
        finally:
            if collect.loop is not None and collect.loop.log:
                from cachegrind_bench.valgrind.code_log import remove_unfinished  # few compile

                remove_unfinished(self.scratch.out)
        with reading_out_files():
            _restore(self.scratch.out, outcome.places)
        if self.keep is not None:
            self._keep_out_files(self.keep, tool)
        log = self._log()
        self._check(execution, outcome, log, native=False)
        return outcome, log

    def _launch(
        self, execution: Execution, argv: tuple[str, ...], *, tool: Tool | None = None, perf_maps: bool = False
    ) -> Outcome:
        """Execute `argv` instead of the execution's own, natively without a tool."""
        home, scratch = execution.variables.get("HOME"), str(self.scratch.path)
        pairs: tuple[Pair, ...] = ()
        if not execution.keep_place:
            pairs = pairs_of(execution.cwd, execution.executable, home, scratch, plugin=execution.plugin)
        here = self._placed(execution, argv, NOWHERE)
        launched = execution._replace(
            argv=here.argv,
            variables=here.variables,
            placed=self._placed(execution, argv, Translation(pairs)) if pairs else None,
            places=pairs,
            tool=None if tool is None else self.valgrind.image(tool.value),
            perf_maps=perf_maps,
        )
        if tool is None:
            # Natively a C library reads the real clock without a call, so the rest of the time has to be real, too; what
            # spins for others must end; and the loader, which knows the real CPU, looks elsewhere for files.
            launched = launched._replace(clock=None, pin_scheduling=False, record_files=False)
        LOG.debug(f"executes {shown_command(here.argv)} in {execution.cwd}, on CPU {execution.cpu}")
        outcome = launch(launched, self.scratch, echo=(lambda _chunk: None) if execution.quiet else self.echo)
        seen = "".join(f", {real} was {path}" for real, path in outcome.places.pairs)
        LOG.debug(
            f"ended after {outcome.wall_ms} ms{seen}{''.join(f', {part} kept: {why}' for part, why in outcome.unsealed.items())}"
        )
        return outcome

    def _placed(self, execution: Execution, argv: tuple[str, ...], places: Translation) -> Placed:
        return Placed(tuple(map(places.seen, argv)), self._variables(execution, places), places.seen(execution.cwd))

    def _variables(self, execution: Execution, places: Translation) -> dict[str, str]:
        lib = places.seen(str(self.scratch.lib))
        variables = environment.translated(execution.variables, places.seen)
        variables |= {"TMPDIR": places.seen(str(self.scratch.tmp)), "VALGRIND_LIB": lib}
        if not execution.padding:
            return variables
        extra, shift = _preload_bytes(variables, lib), layout(execution.layout).stack
        argv = tuple(map(places.seen, execution.argv))
        return environment.pad(variables, argv, places.seen(execution.executable), extra=extra, shift=shift)

    def _check(self, execution: Execution, outcome: Outcome, log: str, *, native: bool) -> None:
        if outcome.unfit and not outcome.timed_out:
            raise PlaceError(outcome.unfit)
        try:
            check_outcome(
                outcome,
                log,
                timeout_ms=execution.timeout_ms,
                held_back=execution.held_back,
                ignore_status=execution.ignore_status,
                native=native,
            )
        except CommandFailedError as error:
            error.elsewhere = bool(outcome.places.pairs)
            raise

    def _log(self) -> str:
        """Return the ends of Valgrind's logs (3.16 can write half a megabyte of warnings)."""
        texts: list[str] = []
        for path in sorted(self.scratch.out.glob("log.*")):
            with suppress(FileFormatError), reading(path) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_BYTES))
                texts.append(file.read().decode("utf-8", "backslashreplace"))
        return "\n".join(texts)

    def _keep_out_files(self, folder: Path, tool: Tool) -> None:
        """Copy out files under the names that cg_annotate and KCachegrind look for."""
        for path in sorted(self.scratch.out.glob("*out.*")):
            try:
                shutil.copyfile(path, folder / path.name.replace("out.", f"{tool.value}.out.", 1))
            except OSError as error:
                raise UsageError(f"cannot keep out files in {folder}: {error.strerror or error}") from error


def _measurement(tool: Tool, outcome: Outcome, log: str, accounts: Accounts) -> Measurement:
    times = Counter((*accounts.doubts, *refused_programs(log)))
    doubts = [doubt if count == 1 else f"{doubt} ({count} times)" for doubt, count in times.items()]
    accounts = replace(accounts, doubts=tuple(doubts))
    return Measurement(tool=tool, outcome=outcome, accounts=accounts)


@contextmanager
def reading_out_files() -> Generator[None]:
    """Turn what is wrong with an out file into a MeasurementError: to the user no bad input, but a failed measurement."""
    try:
        yield
    except FileFormatError as error:
        with suppress(OSError):
            if os.statvfs(os.path.dirname(error.path)).f_bavail == 0:
                raise MeasurementError(
                    f"Valgrind's out file cannot be used: no space is left for {error.path}",
                    hint="free some space there",
                ) from error
        raise MeasurementError(f"Valgrind's out file cannot be used: {error.message}") from error
    except OSError as error:
        which = "" if error.filename is None else f"{error.filename}: "
        raise MeasurementError(f"Valgrind's out file cannot be used: {which}{error.strerror}") from error


def _restore(out: Path, places: Translation) -> None:
    """Give the out files the real paths of what they name.

    Whoever reads them meanwhile finds each whole, or not at all, and may remove those that were read.
    """
    for path in list(out.iterdir()) if places.pairs else ():
        try:
            with reading(path) as file:
                data = file.read()
        except FileFormatError:
            if os.path.lexists(path):
                raise
            continue
        real = places.real_bytes(data)
        if real != data:
            written = path.with_name(f"real.{path.name}")
            written.write_bytes(real)
            path.unlink(missing_ok=True)  # and not replaced: ext4 brings that to the disk at once
            written.rename(path)


def _preload_bytes(variables: Mapping[str, str], lib: str) -> int:
    """Return how many bytes Valgrind adds to the environment: LD_PRELOAD with its own library in front.

    Cachegrind and Callgrind have only the core's. The native warm-up is padded alike, which does it no harm.
    """
    added = len(f"{lib}/vgpreload_core-amd64-linux.so")  # as long as that of arm64
    return added + 1 if variables.get("LD_PRELOAD") else added + len("LD_PRELOAD=") + 1
