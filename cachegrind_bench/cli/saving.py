"""The store of history that a command uses: the option that names it, and what `run --save` keeps in it."""

from __future__ import annotations

import os
import shlex
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource

from cachegrind_bench.cli import output
from cachegrind_bench.cli.options import (
    opened_store,
    options_group,
    store_option,
    typed,
    with_profile_option,
    working_directory,
)
from cachegrind_bench.errors import CgBenchError, MeasurementError, NoValgrindError, StoreError, UsageError
from cachegrind_bench.interruption import uninterrupted
from cachegrind_bench.model.text import plain

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.store.files import FileStore
    from cachegrind_bench.store.protocol import Store

_SQLITE = "sqlite:///"


save_options = options_group(
    click.option("--save", is_flag=True, help="Add the result to the history, see 'cg-bench history'."),
    store_option,
    with_profile_option,
)


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """A store that was found to work, for the result of what is measured now. `profiles` is it, where these are kept too.

    If it fails after all, the result is left in the folder `refuge`, for the command `again`.
    """

    store: Store
    profiles: FileStore | None
    refuge: Path
    again: tuple[str, ...]
    quiet: bool

    def keep(self, result: Result) -> None:
        """Store the result. StoreError if it cannot be after all; then, and if interrupted, it is left in a file."""
        from cachegrind_bench.store.record import run_record

        self._check_commit(result)
        record = run_record(result)
        what = "the result was not stored"
        try:
            with self.store:
                new = self.store.add([record])
                what = "the result was stored, but not its profile"
                if self.profiles is not None:
                    self.profiles.keep_profile(record, result)
        except BaseException as error:
            with uninterrupted():
                advice = self._left(record.uid, result)
            if isinstance(error, StoreError):
                hint = f"{error.hint}\n{advice}" if error.hint else advice
                raise StoreError(f"{what}: {error.message}", hint=hint) from error
            output.write_error(f"cg-bench: {what}: {advice}\n")
            raise
        if not self.quiet:
            told = "stored" if new else "it was there already"
            output.write_error(f"cg-bench: {told} in {self.store.url} as {record.uid}\n")

    def _check_commit(self, result: Result) -> None:
        """Warn of what nobody would notice before a report stays empty."""
        from cachegrind_bench.vcs.commits import NoCommit, commit_info

        found = commit_info(working_directory(), os.environ) if result.commit is None else None
        if isinstance(found, NoCommit):
            output.write_error(f"cg-bench: warning: stored without a commit, so in no report: {plain(found.why)}\n")
        elif result.commit is not None and result.commit.dirty:
            output.write_error("cg-bench: warning: stored, but in no report: tracked files differ from the commit\n")

    def _left(self, uid: str, result: Result) -> str:
        """Leave the result in a file, since it took long to measure, and say what to do with it."""
        from cachegrind_bench.model.codec import encode
        from cachegrind_bench.store.baselines import make_store
        from cachegrind_bench.store.durable import write_atomic

        path = self.refuge / "unstored" / f"{uid}.json"
        try:
            make_store(self.refuge, path.parent)
            write_atomic(path, encode(result))
        except CgBenchError:  # the disk may be what is full
            return "with -o FILE it is kept in a file, which 'cg-bench history add FILE' stores later"
        return f"it is kept in {path}; try again with: {shlex.join([*self.again, str(path)])}"


def saving(options: Mapping[str, Any]) -> Saving | None:
    """Return where to store what will be measured, None if that was not asked for.

    Whether the store can be used is found out now, and its folder made: one that appeared between two runs would change
    the counts of programs that list their directory. UsageError or StoreError if not.
    """
    from cachegrind_bench.store.baselines import Baselines

    if not options["save"]:
        if click.get_current_context().get_parameter_source("with_profile") is ParameterSource.COMMANDLINE:
            raise UsageError("--with-profile says what to store, but nothing is", hint="add --save")
        return None
    store = opened_store(options)
    again = ["cg-bench", "history", "add", *(["--store", store.url] if typed("store") else [])]
    again += ["--with-profile"] * options["with_profile"]
    return Saving(
        store=checked_store(store),
        profiles=profiles_of(store, options),
        refuge=Baselines.find(working_directory()).store,
        again=tuple(again),
        quiet=options["quiet"],
    )


def checked_store(store: Store) -> Store:
    """Return the store, after it was reached, and its folder made if it is one. StoreError or UsageError if it will not do."""
    from cachegrind_bench.store.baselines import make_store
    from cachegrind_bench.store.durable import check_writable
    from cachegrind_bench.store.files import FileStore

    if isinstance(store, FileStore):
        make_store(store.folder)
        check_writable(store.folder / "runs.json")
    elif store.url.startswith(_SQLITE):
        check_writable(Path(store.url.removeprefix(_SQLITE)))
    store.names()
    return store


def profiles_of(store: Store, options: Mapping[str, Any]) -> FileStore | None:
    """Return the store where --with-profile was given. UsageError if it keeps no profiles."""
    from cachegrind_bench.store.files import FileStore

    if not options["with_profile"]:
        return None
    if not isinstance(store, FileStore):
        raise UsageError(f"{store.url} keeps no profiles", hint="leave --with-profile out, or store in files: file:DIR")
    return store


@contextmanager
def storing_failure(history: Saving | None, plan: Plan, options: Mapping[str, Any]) -> Generator[None]:
    """If the one command that is measured inside fails, store that it did."""
    try:
        yield
    except NoValgrindError:
        raise  # nothing was measured, so nothing failed
    except MeasurementError as error:
        if history is not None:
            try:
                history.keep(_failed(plan, options, error))
            except CgBenchError as second:  # the first error is the one that counts
                output.write_error(f"cg-bench: warning: {plain(second.message)}\n")
        raise


def _failed(plan: Plan, options: Mapping[str, Any], error: MeasurementError) -> Result:
    """Return the result of a command that failed, as a suite would have it."""
    from cachegrind_bench._version import __version__
    from cachegrind_bench.cli.options import geometry
    from cachegrind_bench.hermetic import environment
    from cachegrind_bench.measure import session
    from cachegrind_bench.model.result import Commit, Result
    from cachegrind_bench.suite.execute import Job, failed
    from cachegrind_bench.vcs import commits

    passed = environment.fingerprint_values(plan.request, plan.environ)
    ready = session.laboratory(
        valgrind=options["valgrind"], geometry=geometry(options), environ=plan.environ, passed=passed
    )
    words = tuple(os.fsencode(word).decode("utf-8", "backslashreplace") for word in plan.command.typed)
    job = Job(id=plan.benchmark_id, plan=lambda: plan, command=words, cwd=plan.cwd, parameters={})
    found = commits.commit_info(plan.cwd, plan.environ)
    return Result(
        tool_version=__version__,
        created_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        commit=found if isinstance(found, Commit) else None,
        env=ready.environment,
        benchmarks=(failed(job, ready, error),),
    )
