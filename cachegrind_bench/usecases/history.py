"""What is done with a history of stored runs: adding, exporting, importing, removing, renaming and copying."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.history.formats import csvformat, detect, export_only, github_action_benchmark, jsonl
from cachegrind_bench.history.formats.fields import imported_record
from cachegrind_bench.log import LOG
from cachegrind_bench.model.text import counted, grouped, plain, some
from cachegrind_bench.store.checking import wrong_with
from cachegrind_bench.store.protocol import Query, Store
from cachegrind_bench.store.reading import rename as rename_of
from cachegrind_bench.store.record import Record, rename_record, run_name, run_record
from cachegrind_bench.usecases.result_files import open_input, read_result, shown_name
from cachegrind_bench.usecases.stored_runs import find_run, find_runs, name_of, runs_of
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Result, Snapshot

# Formats that carry too little to make a run of, and what they lack.
_ONE_WAY = {
    "bmf": "carries no commit, time or key",
    "openmetrics": "carries no commits",
    "otava-csv": "carries no counts but Ir",
}
_OF_ONE_RUN = "bmf", "github-action-benchmark"
_HINT = "'cg-bench history export' writes such files"
_SHOWN, _NEAR = 20, 10
_BATCH = 200
_MOST_TEXT = 100_000_000  # bytes, as many as a file on GitHub may have


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to export: the runs `since` a time, of these the benchmarks whose ids fit `pattern`, or one `run`."""

    form: str
    since: str | None
    pattern: str | None
    run: str | None

    def check(self) -> None:
        """Refuse what its format does not take. UsageError."""
        if self.form == "jsonl" and self.pattern is not None:
            raise UsageError("jsonl holds whole runs, so --benchmark cannot be used with it", hint="as in --format csv")
        if self.run is not None and self.form not in _OF_ONE_RUN:
            raise UsageError(f"{self.form} always has all runs: --run has no effect", hint="--since chooses from them")


def add(store: Store, names: Sequence[str], *, limit: int, with_profile: bool) -> str:
    """Add result files, all or none if one cannot be read, and keep their profiles if asked."""
    whole: list[Result] = []
    records: dict[str, Record] = {}
    with Waiting().watched(counted(len(names), "result")), store:
        for name in names:
            source = read_result(name, limit=limit)
            record = run_record(source.result)
            problem = wrong_with(record)
            if problem is not None:
                raise UsageError(f"{name} cannot be added: {problem}", hint="measure again to make a new one")
            records[record.name] = record
            if with_profile:
                whole.append(source.whole())
        new = store.add(list(records.values()))
        for result in whole:
            store.keep_profile(run_record(result), result)
        return f"added {counted(new, 'run')} to {plain(store.url)}{_known(len(records) - new)}\n"


def export(store: Store, request: ExportRequest) -> Iterator[bytes]:
    """Yield the file in pieces. UsageError if there is no such run."""
    if request.form == "jsonl":
        yield from (record.data for record in _records(store, request.since))
    elif request.form == "bmf":
        yield export_only.bencher(_run(store, request), LOG.info).encode()
    elif request.form == "github-action-benchmark":
        yield github_action_benchmark.write(_run(store, request)).encode()
    else:
        writers: dict[str, Callable[[Iterable[Snapshot]], Iterator[str]]] = {
            "csv": csvformat.write,
            "openmetrics": export_only.openmetrics,
            "otava-csv": partial(export_only.otava, warn=LOG.info),
        }
        yield from (piece.encode() for piece in writers[request.form](runs_of(store, request.since, request.pattern)))


def _records(store: Store, since: str | None) -> Iterator[Record]:
    """Return the records of runs since then, and of all renames."""
    names = None
    if since is not None:
        wanted = {name_of(run) for run in store.snapshots(Query(since=since))}
        names = [name for name in store.names() if name in wanted or run_name(name) is None]
    return store.read(names)


def _run(store: Store, request: ExportRequest) -> Snapshot:
    """Return the run that is asked for, or that of the newest commit."""
    name = None if request.run is None else find_run(store, request.run)
    found = None
    for run in runs_of(store, request.since, request.pattern):
        if name is None or name_of(run) == name:
            found = run
    if found is None:
        raise UsageError(f"{store.url} has no such run", hint="'cg-bench history list' shows what there is")
    return found


def import_file(store: Store, file: str, form: str | None, *, limit: int) -> str:
    """Add the runs of a file in this format, which is else detected: all of them, or none if one is damaged."""
    if form in _ONE_WAY:
        raise UsageError(f"{form} {_ONE_WAY[form]}, so it cannot be imported", hint="use jsonl, which loses nothing")
    name = shown_name(file)
    foreign = 0
    with (
        store,
        open_input(file, limit=limit, hint=_HINT) as stream,
        Waiting().watched(f"the records of {name}"),
    ):
        form = form or detect(stream)
        if form == "jsonl":
            names = [record.name for record in jsonl.read(stream, name)]  # all are looked at before the first is added
            total = len(names)
            stream.seek(0)
            new = _add_all(store, jsonl.read_again(stream, name, names))
        else:
            text = _text_of(stream, name, form)
            runs, foreign = (
                (csvformat.read(text, name), 0) if form == "csv" else github_action_benchmark.read(text, name)
            )
            known = set(store.names())  # a run that was measured is better than what was exported of it
            total = len(runs)
            new = store.add([imported_record(run, form, name) for run in runs if name_of(run) not in known])
        report = f"imported {counted(new, 'record')} from {plain(name)} into {plain(store.url)}{_known(total - new)}\n"
    if foreign:
        LOG.info(f"{counted(foreign, 'value')} of other tools skipped")
    return report


def _text_of(stream: BinaryIO, name: str, form: str) -> str:
    """Return the text of a file that is read as a whole; what is made of it takes many times its size."""
    data = stream.read(_MOST_TEXT + 1)
    if len(data) > _MOST_TEXT:
        what = f"{name} is too large: of {form} at most {_MOST_TEXT} bytes are read"
        raise UsageError(what, hint="split it, or use jsonl, which is read line by line")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"not UTF-8 text: {error.reason} at byte {error.start}", path=name) from error


def prune(store: Store, runs: Sequence[str], *, before: str | None, keep: int | None, dry_run: bool) -> str:
    """Remove these runs, and those that are older than `before` and not among the last `keep`."""
    survey = store.survey()
    total = sum(run_name(name) is not None for name in survey.names)
    doomed = dict.fromkeys(name for text in runs for name in find_runs(store, text, survey))
    if before is not None or keep is not None:
        found = sorted(
            (run.created_at, run.uid, name_of(run)) for run in store.snapshots(Query(wanted=lambda _: False))
        )
        rest = found[: max(0, len(found) - (keep or 0))]
        doomed |= dict.fromkeys(name for created_at, _, name in rest if before is None or created_at < before)
    removed = len(doomed) if dry_run else store.remove(list(doomed))
    lines = [f"  {plain(name)}\n" for name in list(doomed)[:_SHOWN]]
    if len(doomed) > _SHOWN:
        lines.append(f"  and {counted(len(doomed) - _SHOWN, 'other')}\n")
    for problem in survey.problems:
        LOG.warning(f"{problem.what}; it stays as it is, with all that is in it")
    what = "would remove" if dry_run else "removed"
    return f"{what} {removed} of {counted(total, 'run')} from {plain(store.url)}\n{''.join(lines)}"


def rename(store: Store, old: str, new: str) -> str:
    """Call a benchmark by a new name from now on. UsageError if no run has it, or all have both."""
    found = [{point.id for point in run.points} for run in store.snapshots(Query(wanted={old, new}.__contains__))]
    runs, taken = sum(names == {old} for names in found), sum(names == {old, new} for names in found)
    if not runs + taken:
        names = sorted({point.id for run in store.snapshots(Query()) for point in run.points})
        known = f"there are: {some(names, _NEAR) or 'none'}"
        raise UsageError(f"no run in {store.url} has a benchmark {old!r}", hint=known)
    if not runs:
        why = f"in {counted(taken, 'run')}, all that have {old!r}, another benchmark is called {new!r}"
        raise UsageError(why, hint="give a name that is not used in any of them")
    store.add([rename_record(old, new, _after_all_others(store))])
    if taken:
        LOG.info(f"in {counted(taken, 'run')} both names stay, as there are two benchmarks")
    return f"{plain(old)} is called {plain(new)} from now on, in {counted(runs, 'stored run')} as well\n"


def _after_all_others(store: Store) -> str:
    """Return the time of a new rename: now, but after all others, as renames hold in the order of their times."""
    now = datetime.now(UTC)
    others = [name for name in store.names() if run_name(name) is None]
    for record in store.read(others) if others else ():
        with suppress(ValueError, OverflowError):  # not a valid time
            now = max(now, datetime.fromisoformat(rename_of(record).created_at) + timedelta(seconds=1))
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def copy(giving: Store, taking: Store) -> str:
    """Copy what one store has and the other lacks."""
    names = giving.names()
    missing = sorted(set(names) - set(taking.names()))
    new = _add_all(taking, giving.read(missing) if missing else iter(()))
    return (
        f"copied {counted(new, 'record')} from {plain(giving.url)} to {plain(taking.url)}{_known(len(names) - new)}\n"
    )


def _add_all(store: Store, records: Iterator[Record]) -> int:
    """Add records in batches, so that they need not be in memory together; return how many were new."""
    return sum(store.add(batch) for batch in iter(lambda: list(islice(records, _BATCH)), []))


def _known(count: int) -> str:
    return f"; {grouped(count)} already there" if count > 0 else ""
