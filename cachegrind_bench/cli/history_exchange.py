"""`cg-bench history export` and `import`: a history in the formats of other tools."""

from __future__ import annotations

import os
import stat
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.options import opened_store, since_option, size_limit_option, store_option
from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.model.text import counted, grouped, matches, plain
from cachegrind_bench.store.durable import check_writable, new_file, write_atomic
from cachegrind_bench.store.record import run_name
from cachegrind_bench.usecases.result_files import open_input, shown_name
from cachegrind_bench.usecases.stored_runs import find_run, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    from cachegrind_bench.model.history import Snapshot
    from cachegrind_bench.store.protocol import Store
    from cachegrind_bench.store.record import Record

FORMATS = "csv", "jsonl", "bmf", "github-action-benchmark", "openmetrics", "otava-csv"
# Those that carry too little to make a run of, and what they lack.
_ONE_WAY = {
    "bmf": "carries no commit, time or key",
    "openmetrics": "carries no commits",
    "otava-csv": "carries no counts but Ir",
}
_OF_ONE_RUN = "bmf", "github-action-benchmark"
_HINT = "such files are written by 'cg-bench history export'"
_BATCH = 200
_CHUNK = 1 << 20


@click.command(
    "export",
    epilog="""\b
Formats, and what they carry:
  jsonl                    everything, one line for each record; 'import' makes the same history of it
  csv                      a row for each benchmark of each run: commit, keys, status, counts, score
  github-action-benchmark  one run's scores, counts and commit, for its tool customSmallerIsBetter
  bmf                      one run's scores and counts, for 'bencher run --adapter json'
  openmetrics              scores and counts by the times of commits, for Prometheus
  otava-csv                scores and Ir, one row for each run, for Apache Otava

\b
Examples:
  cg-bench history export --format csv -o history.csv
  cg-bench history export --format jsonl | gzip > history.jsonl.gz
  cg-bench history export --format github-action-benchmark --run 1a2b3c4d -o output.json
""",
)
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="What to write.")
@click.option("-o", "--output", "target", default="-", metavar="FILE", help="Where to. [default: stdout]")
@since_option
@click.option("--benchmark", "pattern", metavar="PATTERN", help="Only benchmarks with this id (* and ? are wildcards).")
@click.option("--run", metavar="RUN", help="The run, where a format has only one. [default: that of the newest commit]")
@store_option
def export_command(*, form: str, target: str, **options: Any) -> None:
    """Write the history in the format of another tool, or as lines that lose nothing (jsonl)."""
    if form == "jsonl" and options["pattern"] is not None:
        raise UsageError("jsonl has whole runs, so --benchmark cannot choose from them", hint="as in --format csv")
    if options["run"] is not None and form not in _OF_ONE_RUN:
        raise UsageError(f"{form} has all runs: --run says nothing", hint="--since chooses from them")
    if target != "-":
        check_writable(Path(target))
    with opened_store(options) as store:
        _deliver(_exported(store, form, options), target)


@click.command(
    "import",
    epilog="""\b
What can be imported:
  jsonl                    everything, with the same ids: the way to move a history
  csv                      as it was exported; columns in any order
  github-action-benchmark  what 'export' wrote for it, also from the page's data.js; entries of other tools are passed over

Runs from csv and github-action-benchmark lack what these do not carry. Their keys say where they come from, so that they
compare with each other, but never with runs that were measured. A run that the store has already is not imported again.

\b
Examples:
  cg-bench history import history.jsonl
  gunzip < history.jsonl.gz | cg-bench history import - --store sqlite:///history.db
""",
)
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="Format of FILE. [default: detected from its content]"
)
@store_option
@size_limit_option
@click.argument("file")
def import_command(file: str, *, form: str | None, max_size: int, **options: Any) -> None:
    """Add the runs of a FILE ('-' is stdin) that 'history export' wrote: all of them, or none if one is damaged."""
    from cachegrind_bench.history.formats import detect, jsonl

    if form in _ONE_WAY:
        raise UsageError(f"{form} {_ONE_WAY[form]}, so it cannot be imported", hint="jsonl loses nothing")
    name = shown_name(file)
    with opened_store(options) as store, open_input(file, limit=max_size, hint=_HINT) as stream:
        form = form or detect(stream)
        if form == "jsonl":
            names = [record.name for record in jsonl.read(stream, name)]  # all are looked at before the first is added
            total, foreign = len(names), 0
            stream.seek(0)
            records = jsonl.read_again(stream, name, names)
            new = sum(store.add(batch) for batch in iter(lambda: list(islice(records, _BATCH)), []))
        else:
            found, total, foreign = _parts(_text(stream, name), form, name, store)
            new = store.add(found)
        there = f"; {grouped(total - new)} already there" if total > new else ""
        output.write(f"imported {counted(new, 'record')} from {plain(name)} into {store.url}{there}\n")
    if foreign:
        output.write_error(f"cg-bench: {counted(foreign, 'value')} of other tools passed over\n")


def _exported(store: Store, form: str, options: dict[str, Any]) -> Iterator[bytes]:
    """Return the file in pieces."""
    from cachegrind_bench.history.formats import csvformat, export_only, github_action_benchmark

    def warn(sentence: str) -> None:
        output.write_error(f"cg-bench: {sentence}\n")

    if form == "jsonl":
        yield from (record.data for record in _records(store, options["since"]))
    elif form == "bmf":
        yield export_only.bencher(_run(store, options), warn).encode()
    elif form == "github-action-benchmark":
        yield github_action_benchmark.write(_run(store, options)).encode()
    else:
        writers: dict[str, Callable[[Iterable[Snapshot]], Iterator[str]]] = {
            "csv": csvformat.write,
            "openmetrics": export_only.openmetrics,
            "otava-csv": partial(export_only.otava, warn=warn),
        }
        yield from (piece.encode() for piece in writers[form](_runs(store, options)))


def _records(store: Store, since: str | None) -> Iterator[Record]:
    """Return the records of runs since then, and of all renames."""
    from cachegrind_bench.store.protocol import Query

    names = None
    if since is not None:
        wanted = {name_of(run) for run in store.snapshots(Query(since=since))}
        names = [name for name in store.names() if name in wanted or run_name(name) is None]
    return store.read(names)


def _runs(store: Store, options: dict[str, Any]) -> Iterator[Snapshot]:
    from cachegrind_bench.store.protocol import Query

    pattern = options["pattern"]
    wanted: Callable[[str], bool] | None = None if pattern is None else lambda name: matches(name, pattern)
    runs = store.snapshots(Query(since=options["since"], wanted=wanted))
    return (run for run in runs if pattern is None or run.points)


def _run(store: Store, options: dict[str, Any]) -> Snapshot:
    """Return the run that is asked for, or that of the newest commit. UsageError if there is none."""
    name = None if options["run"] is None else find_run(store, options["run"])
    found = None
    for run in _runs(store, options):
        if name is None or name_of(run) == name:
            found = run
    if found is None:
        raise UsageError(f"{store.url} has no such run", hint="'cg-bench history list' shows what there is")
    return found


def _deliver(pieces: Iterable[bytes], target: str) -> None:
    """Write to stdout, or to a file that is whole or not there."""
    if target == "-":
        for chunk in _chunks(pieces):
            output.write(chunk)
        return
    path = Path(os.path.realpath(target))
    if path.exists() and not path.is_file():  # a pipe or a device
        write_atomic(path, b"".join(pieces))
        return

    def write(stream: BinaryIO) -> None:
        stream.writelines(pieces)

    with new_file(path.parent, write) as temporary:
        mode = path.stat().st_mode if path.exists() else temporary.stat().st_mode
        os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, path)


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Return the same bytes in fewer pieces."""
    gathered: list[bytes] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size > _CHUNK:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)


def _text(stream: BinaryIO, name: str) -> str:
    try:
        return stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"not UTF-8 text: {error.reason} at byte {error.start}", path=name) from error


def _parts(text: str, form: str, name: str, store: Store) -> tuple[list[Record], int, int]:
    """Return the records to add, how many runs were read, and how many values of other tools were passed over."""
    from cachegrind_bench.history.formats import csvformat, github_action_benchmark
    from cachegrind_bench.history.formats.fields import imported_record

    runs, foreign = (csvformat.read(text, name), 0) if form == "csv" else github_action_benchmark.read(text, name)
    known = set(store.names())  # a run that was measured is better than what was exported of it
    return [imported_record(run, form, name) for run in runs if name_of(run) not in known], len(runs), foreign


COMMANDS = export_command, import_command
