"""Keeping the result that is being measured: in a history, whatever happens meanwhile, or as a baseline."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.errors import (
    CgBenchError,
    FileFormatError,
    MeasurementError,
    NoValgrindError,
    StoreError,
    UsageError,
)
from cachegrind_bench.interruption import uninterrupted
from cachegrind_bench.log import LOG
from cachegrind_bench.model.text import printable, some
from cachegrind_bench.store.baselines import Baselines, make_store
from cachegrind_bench.store.durable import write_atomic
from cachegrind_bench.usecases.measurement import MeasureRequest, result_of, valgrind_setup_of
from cachegrind_bench.vcs.git import Git
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.store.protocol import Store

_SHOWN = 10  # ids in a message


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """A store for results that are measured in `cwd`, with their profiles if `with_profile`.

    What cannot be stored after all is left in a file, which the command `again` stores later.
    """

    store: Store
    cwd: Path
    again: tuple[str, ...]
    with_profile: bool = False


class SaveRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Where the result of `measure` is stored."""

    destination: Destination
    measure: MeasureRequest


def check_store(destination: Destination) -> None:
    """Find out whether the store can be used, and make its folder. UsageError or StoreError if it cannot.

    A folder that appeared between two runs would change the counts of programs that list their directory.
    """
    store = destination.store
    store.check_usable()
    if not store.is_quick:
        with suppress(UsageError):  # the result may fit elsewhere
            _make_refuge(destination.cwd)
    store.names()
    if destination.with_profile:
        store.check_profiles()


def save(request: SaveRequest, result: Result) -> None:
    """Store the result, and say so. StoreError as `keep` raises it."""
    _check_commit(request.measure, result)
    store = request.destination.store
    with store:
        uid, is_new = keep(request.destination, result)
    LOG.info(f"{'stored' if is_new else 'it was there already'} in {store.url} as {uid}")


def keep(destination: Destination, result: Result) -> tuple[str, bool]:
    """Store a result durably; return its uid, and whether it is new. If that fails or is interrupted, a file has it.

    What may take long is begun with the result in that file: we may be killed. StoreError names the file.
    """
    from cachegrind_bench.store.record import run_record

    store, record = destination.store, run_record(result)
    what = "the result was not stored"
    refuge: Path | None = None
    try:
        if not store.is_quick:
            refuge = _leave(destination.cwd, record.uid, result)
        new = store.add([record])
        what = "the result was stored, but not its profile"
        if destination.with_profile:
            store.keep_profile(record, result)
    except BaseException as error:
        with uninterrupted():
            advice = _advice(destination, refuge or _leave(destination.cwd, record.uid, result))
        if isinstance(error, StoreError):
            hint = f"{error.hint}\n{advice}" if error.hint else advice
            raise StoreError(f"{what}: {error.message}", hint=hint) from error
        LOG.warning(f"{what}: {advice}")
        raise
    if refuge is not None:
        with suppress(OSError):
            refuge.unlink()
    return record.uid, bool(new)


@contextmanager
def failure_saved(request: SaveRequest, plan: Plan) -> Generator[None]:
    """If the one command that is measured inside fails, store that it did."""
    try:
        yield
    except NoValgrindError:
        raise  # nothing was measured, so nothing failed
    except MeasurementError as error:
        try:
            save(request, _failed(plan, request.measure, error))
        except CgBenchError as second:  # the first error is the one that counts
            LOG.warning(second.message)
        raise


def _check_commit(request: MeasureRequest, result: Result) -> None:
    """Warn of what nobody would notice before a report stays empty."""
    from cachegrind_bench.vcs.commits import commit_info

    if result.commit is not None:
        if result.commit.dirty:
            LOG.warning("stored, but in no report: tracked files differ from the commit")
        return
    try:
        commit_info(_git(request))
    except MeasurementError as error:
        LOG.warning(f"stored without a commit, so in no report: {error.message}")


def _make_refuge(cwd: Path) -> Path:
    """Make the folder where results wait that were not stored. UsageError if it cannot be."""
    store = Baselines.find(cwd).store
    make_store(store, store / "unstored")
    return store / "unstored"


def _leave(cwd: Path, uid: str, result: Result) -> Path | None:
    """Leave the result in a file, since it took long to measure; None if that fails too."""
    from cachegrind_bench.model.codec import encode

    try:
        path = _make_refuge(cwd) / f"{uid}.json"
        write_atomic(path, encode(result))
    except CgBenchError:  # the disk may be what is full
        return None
    return path


@contextmanager
def left_if_unwritten(cwd: Path, *results: Result) -> Generator[None]:
    """If a file that somebody named cannot be written after all, or Ctrl-C ends that, leave these results in others, which the error names."""
    from cachegrind_bench.store.record import run_record

    try:
        yield
    except (UsageError, KeyboardInterrupt) as error:
        with uninterrupted():
            # Not the name of what is left until a database has it, which is removed then.
            paths = [_leave(cwd, f"{run_record(result).uid}.unwritten", result) for result in results]
        kept = [f"what was measured is kept in {path}" for path in paths if path is not None]
        if isinstance(error, UsageError):
            error.hint = "\n".join(filter(None, (error.hint, *kept))) or None
        elif kept:
            error.add_note("\n".join(kept))
        raise


def _advice(destination: Destination, path: Path | None) -> str:
    if path is None:
        return (
            "it could not be kept in .cg-bench either: 'cg-bench run -o FILE' writes a file for 'cg-bench history add'"
        )
    return f"it is kept in {path}; try again with: {shlex.join([*destination.again, str(path)])}"


def refuse_to_drop(saved: Baselines, name: str, is_measured: Callable[[str], bool]) -> None:
    """Do not let some benchmarks take the place of others: UsageError if the baseline has one that is not measured."""
    from cachegrind_bench.usecases.result_files import read_result

    if not saved.exists(name):
        return
    try:
        found = read_result(str(saved.path(name))).result
        others = [item.id for item in found.benchmarks if not is_measured(item.id)]
    except FileFormatError:
        return  # nothing in it can be used
    if others:
        raise UsageError(
            f"the baseline {name!r} holds other benchmarks, which would be lost: {some(others, _SHOWN)}",
            hint=f"save under another name, or start afresh: cg-bench baseline remove {name}",
        )


def _failed(plan: Plan, request: MeasureRequest, error: MeasurementError) -> Result:
    """Return the result of a command that failed, as a suite would have it."""
    from cachegrind_bench.config.benchmarks import BenchmarkSpec
    from cachegrind_bench.suite.execute import failed
    from cachegrind_bench.vcs.commits import commit_of

    ready = valgrind_setup_of(request)
    words = tuple(map(printable, plan.command.typed))
    spec = BenchmarkSpec(id=plan.benchmark_id, command=words, cwd=plan.cwd, parameters={}, place="")
    return result_of(request, ready.environment, [failed(spec, ready, error)], commit_of(_git(request)))


def _git(request: MeasureRequest) -> Git:
    return Git(request.cwd, request.environ, Waiting())
