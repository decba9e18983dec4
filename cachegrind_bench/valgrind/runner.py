"""Runs a command under Valgrind, sealed, and returns what it cost. `Runner` is the seam where tests replay a recording."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Mapping
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
from cachegrind_bench.valgrind.failures import check_outcome, refused_programs
from cachegrind_bench.valgrind.options import Collect, Geometry, Tool, arguments
from cachegrind_bench.valgrind.out_format import reading
from cachegrind_bench.valgrind.processes import Accounts, account

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.hermetic.scratch import Scratch
    from cachegrind_bench.valgrind.tool import Valgrind

_LOG_BYTES = 1 << 16


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One measured execution."""

    tool: Tool
    outcome: Outcome
    accounts: Accounts


_Name = TypeVar("_Name", str, int)
Measured = TypeVar("Measured", bound=Measurement)


def share_time(found: Mapping[_Name, Measured], wall_ms: int) -> dict[_Name, Measured]:
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
        outcome, log = self.execute(execution, collect, tool)
        with reading_out_files():
            accounts = account(
                tool, self.scratch.out, outcome, execution.argv, lines=collect.lines, calls=collect.calls
            )
        return measurement_of(tool, outcome, log, accounts)

    def measure_regions(self, execution: Execution, collect: Collect) -> dict[str, Measurement]:
        """Execute once under Callgrind."""
        from cachegrind_bench.valgrind.region_parts import region_accounts  # few programs have regions

        outcome, log = self.execute(execution, collect, Tool.CALLGRIND)
        with reading_out_files():
            regions = region_accounts(self.scratch.out, outcome, execution.argv, calls=collect.calls)
        found = {name: measurement_of(Tool.CALLGRIND, outcome, log, accounts) for name, accounts in regions.items()}
        return share_time(found, outcome.wall_ms)

    def execute(
        self, execution: Execution, collect: Collect, tool: Tool, fill: Callable[[Path], object] | None = None
    ) -> tuple[Outcome, str]:
        """Execute once under Valgrind, and leave its out files in the scratch directory; also return Valgrind's log.

        `fill` may put files into that directory before.
        """
        self.scratch.renew(self.valgrind.libexec)
        if fill is not None:
            fill(self.scratch.path)
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
        program, own = execution.argv[: execution.begin], execution.argv[execution.begin :]
        first, last = ([word.replace("{}", str(self.scratch.out)) for word in words] for words in collect.words)
        argv = (self.valgrind.launcher, *options, *program, *first, *own, *last)
        outcome = self._launch(execution, argv, tool=tool, perf_maps=collect.python_depth is not None)
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


def measurement_of(tool: Tool, outcome: Outcome, log: str, accounts: Accounts) -> Measurement:
    """Return the measurement of an execution that wrote this log."""
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
