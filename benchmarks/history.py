"""How adding, comparing and reporting grow with a history: files against SQLite against PostgreSQL. Run by hand.

    python benchmarks/history.py [--sizes BENCHMARKSxCOMMITS,...] [--stores file,sqlite,postgresql] [--postgresql URL]

Each history has one run of all benchmarks for each commit, of counts that mostly stay and now and then step. Measured are: to
add one run more; to find the run of one commit by its name, as `diff` does, and compare it with another; and to read everything
and search all series for changes, as `trend` does. Without --postgresql a server of its own is started, if one is installed.
The times are of one process, without its start; the figures of different stores come from one run and may be compared.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cachegrind_bench.compare import verdict
from cachegrind_bench.compare.verdict import compare
from cachegrind_bench.history.findings import Options, find
from cachegrind_bench.history.series import series_set
from cachegrind_bench.model import thresholds
from cachegrind_bench.model.codec import decode
from cachegrind_bench.model.metrics import DEFAULT_MODEL, Counts
from cachegrind_bench.model.result import Benchmark, Commit, Environment, Result, Run, Score
from cachegrind_bench.store.open import open_store
from cachegrind_bench.store.protocol import Query
from cachegrind_bench.store.record import run_name, run_record

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from cachegrind_bench.store.protocol import Store

ROOT = Path(__file__).resolve().parent.parent
ENV = Environment(key="0123456789ab", fields={"valgrind": "3.24.0"}, info={"cpu_model": "x", "kernel": "6.1"})
BATCH = 20  # runs added at once while a history is made


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds."""

    add: float
    diff: float
    trend: float


def sha(number: int) -> str:
    """Return the id of a commit, whose digits are spread as those of real ones."""
    return f"{number * 0x9E3779B97F4A7C15 % (1 << 160):040x}"


def benchmark(name: str, level: int) -> Benchmark:
    """Return a benchmark of this many instructions, as large as those of small real programs."""
    counts = Counts.of([level, 900, 850, level // 4, 3000, 900, level // 6, 700, 600])
    return Benchmark(
        id=name,
        key="fedcba987654",
        key_fields={"libc": "a" * 40, "interpreter": "b" * 40, "environment": "pinned", "randomness": "pinned"},
        command=("python3", "benchmarks/bench.py", name),
        counts=counts,
        score=Score(model=DEFAULT_MODEL.name, value=DEFAULT_MODEL.score(counts)),
        runs=(Run(layout=0, counts=counts),),
        wall_ms=1234,
    )


def results(benchmarks: int, commits: int) -> Generator[Result]:
    """Yield the result of each commit."""
    chance = random.Random(1)
    levels = [chance.randrange(10**6, 10**9) for _ in range(benchmarks)]
    for number in range(commits):
        for place in range(benchmarks):
            if chance.random() < 0.002:
                levels[place] = round(levels[place] * chance.choice((0.98, 1.01, 1.02)))
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_600_000_000 + 7200 * number))
        yield Result(
            tool_version="1.0",
            created_at=at,
            commit=Commit(
                sha=sha(number), parent=sha(number - 1) if number else None, branch="main", dirty=False, committed_at=at
            ),
            env=ENV,
            benchmarks=tuple(
                benchmark(f"group-{place % 7}/case[n={place}]", level) for place, level in enumerate(levels)
            ),
        )


def timed(work: Callable[[], object]) -> float:
    """Return how long this takes, in seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def stored(store: Store, commit: str) -> Result:
    """Return the run of a commit."""
    names = [name for name in store.names() if (said := run_name(name)) is not None and said.sha12 == commit[:12]]
    return decode(next(store.read(names)).data, names[0])


def measure(store: Store, benchmarks: int, commits: int) -> Times:
    """Fill the store, and measure it."""
    batch: list[Any] = []
    last: Result | None = None
    for last in results(benchmarks, commits):
        batch.append(run_record(last))
        if len(batch) == BATCH:
            store.add(batch)
            batch.clear()
    store.add(batch)
    if last is None or last.commit is None:
        raise SystemExit("there are no commits")
    more = run_record(replace(last, commit=replace(last.commit, sha=sha(commits)), created_at="2030-01-01T00:00:00Z"))
    held = verdict.Gates(
        threshold=thresholds.percentages((), verdict.DEFAULT_THRESHOLD, ""),
        threshold_cache=thresholds.percentage(verdict.DEFAULT_THRESHOLD_CACHE, ""),
        max_drop=thresholds.percentages((), verdict.DEFAULT_MAX_DROP, ""),
    )

    def trend() -> None:
        found = series_set(store.snapshots(Query()))
        for series in found.series:
            find(series, found.line, releases=(), accepted=(), previous=None, options=Options())

    return Times(
        add=timed(lambda: store.add([more])),
        diff=timed(lambda: compare(stored(store, sha(commits // 2)), stored(store, sha(commits - 1)), held)),
        trend=timed(trend),
    )


@contextmanager
def opened(kind: str, url: str | None) -> Generator[Store]:
    """Yield an empty store of this kind."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cg-bench-history.")))
        urls = {"file": f"file:{folder}/store", "sqlite": f"sqlite:///{folder}/history.db", "postgresql": url}
        if kind == "postgresql" and url is None:
            sys.path.insert(0, str(ROOT))
            from tests.postgres import private_server

            urls[kind] = stack.enter_context(private_server()).make_database("history")
        yield stack.enter_context(open_store(str(urls[kind]), cwd=folder, environ={}))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100x100,300x300,1000x1000")
    parser.add_argument("--stores", default="file,sqlite,postgresql")
    parser.add_argument("--postgresql", metavar="URL", help="an empty database")
    options = parser.parse_args(arguments)
    print(f"{'benchmarks x commits':>20}  {'store':<10}  {'add a run':>10}  {'diff':>10}  {'trend':>10}")
    for size in options.sizes.split(","):
        benchmarks, commits = map(int, size.split("x"))
        for kind in options.stores.split(","):
            with opened(kind, options.postgresql) as store:
                times = measure(store, benchmarks, commits)
            print(
                f"{size:>20}  {kind:<10}  {times.add:>8.3f} s  {times.diff:>8.3f} s  {times.trend:>8.2f} s", flush=True
            )


if __name__ == "__main__":
    main()
