"""Runs that tests of stores keep: many, small, each another commit."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from cachegrind_bench.model.metrics import DEFAULT_MODEL
from cachegrind_bench.model.result import Commit, Run, Score
from cachegrind_bench.store.files import FileStore
from cachegrind_bench.store.record import canonical_line, rename_record, run_record, uid_of
from cachegrind_bench.store.segments import SCHEMA
from tests.unit.samples import VECTOR, benchmark, result, times

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from cachegrind_bench.model.result import Benchmark, Result
    from cachegrind_bench.store.record import Record


def measured(name: str = "sieve", factor: int = 1, **changes: Any) -> Benchmark:
    """Return a benchmark whose counts are this many times those of the samples."""
    counts = times(VECTOR, factor)
    score = Score(model=DEFAULT_MODEL.name, value=DEFAULT_MODEL.score(counts))
    return benchmark(
        **{
            "id": name,
            "counts": counts,
            "score": score,
            "runs": (Run(layout=0, counts=counts),),
            "profile": None,
            **changes,
        }
    )


def run(number: int, *benchmarks: Benchmark, **changes: Any) -> Result:
    """Return the run of commit `number`, made in January 2026 unless told otherwise, a minute after the one before."""
    at = f"2026-01-{1 + number // 1440 % 28:02}T{number // 60 % 24:02}:{number % 60:02}:00Z"
    commit = Commit(sha=f"{number:040x}"[::-1], parent=None, branch="main", dirty=False, committed_at=at)
    return result(*(benchmarks or (measured(factor=1 + number),)), **{"commit": commit, "created_at": at, **changes})


def stored(number: int, *benchmarks: Benchmark, **changes: Any) -> Record:
    """Return the record of that run."""
    return run_record(run(number, *benchmarks, **changes))


RECORDS = sorted((stored(n) for n in range(8)), key=lambda record: record.name)
NAMES = [record.name for record in RECORDS]
RENAME = rename_record("sieve", "filter", "2026-01-05T00:00:00Z")
FEBRUARY = stored(20, created_at="2026-02-01T00:00:00Z")


def filled(folder: Path) -> FileStore:
    """Return a store of files with eight runs of January, one of February and a rename."""
    store = FileStore(folder)
    assert store.add([FEBRUARY, *reversed(RECORDS), RENAME]) == 10
    return store


def segment(records: list[Record]) -> tuple[str, bytes]:
    """Return name and bytes of a segment, as older versions wrote one, of these runs of January, sorted by name."""
    lines = [{"schema": SCHEMA, "names": [record.name for record in records]}]
    lines += [{"name": record.name, "data": record.data.decode()} for record in records]
    text = b"".join(map(canonical_line, lines))
    return f"segments/2026-01.{uid_of(text)[:8]}.jsonl.gz", gzip.compress(text, 4, mtime=0)


def fold(store: FileStore, records: list[Record] = RECORDS) -> Path:
    """Put these runs of a store into a segment, as older versions did, and return its path."""
    name, data = segment(records)
    (store.folder / "segments").mkdir(exist_ok=True)
    (store.folder / name).write_bytes(data)
    for record in records:
        (store.folder / record.name).unlink()
    return store.folder / name


def files(store: FileStore) -> list[str]:
    return sorted(str(path.relative_to(store.folder)) for path in store.folder.rglob("*") if path.is_file())


def all_names() -> list[str]:
    return sorted([*NAMES, FEBRUARY.name, RENAME.name])


def problems(store: FileStore) -> list[str]:
    return [f"{problem.where}: {problem.what}" for problem in store.check()]
