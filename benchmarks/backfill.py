"""How few commits `cg-bench backfill` measures, whether it finds all steps, and what choosing them costs.

    python benchmarks/backfill.py                       # 512 commits, 6 steps: adaptive, then every commit; an hour
    python benchmarks/backfill.py --commits 64 --steps 3
    python benchmarks/backfill.py --simulate            # 10,000 commits and 100 workers that answer at once
    python benchmarks/backfill.py --fleet --commits 32  # two Dask workers here against one, on a quiet machine

The repository has a compiled program and a Python benchmark. Each step is in one of the two.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from fractions import Fraction
from pathlib import Path
from typing import Any

from cachegrind_bench.history.adaptive import Search, intervals
from cachegrind_bench.model.codec import encode
from cachegrind_bench.model.metrics import DEFAULT_MODEL, Counts
from cachegrind_bench.model.result import Benchmark, Commit, Environment, Result, Run, Score
from cachegrind_bench.store.files import FileStore
from cachegrind_bench.usecases.backfill import BackfillRequest, Past, Work
from cachegrind_bench.usecases.commit_task import Answer, Machine, Order
from cachegrind_bench.usecases.executors import Workforce
from cachegrind_bench.usecases.saving import Destination
from cachegrind_bench.usecases.selection import SelectRequest
from cachegrind_bench.usecases.worktrees import Overlay
from cachegrind_bench.vcs.revisions import Repository

_OTHERS = "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw"
_STEP = Fraction(2, 1000)
_MODEL, _NOW = DEFAULT_MODEL, "2026-01-31T12:00:00Z"
_CONFIGURATION = """
[[benchmark]]
id = "compiled"
setup = "gcc -O1 -o sum sum.c"
command = "./sum"
[[benchmark]]
id = "python"
command = "python3 -I -S -B sum.py"
"""
_C = "/* %d */ int main(void) { volatile int s = 0; for (int i = 0; i < %d; i++) s += i; return s == 1; }\n"
_PYTHON = "# %d\nsum(number * number for number in range(%d))\n"


def main() -> None:
    """Do what the options say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=512)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--jobs", default="1")
    parser.add_argument("--adaptive-only", action="store_true")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--fleet", action="store_true")
    options = parser.parse_args()
    if options.simulate:
        simulate(10_000, 100)
        return
    with tempfile.TemporaryDirectory() as folder:
        (fleet if options.fleet else measure)(Path(folder), options)


def measure(folder: Path, options: argparse.Namespace) -> None:
    """Plant steps and look for them. AssertionError if others are found, or counts differ."""
    places = sorted(random.Random(1).sample(range(1, options.commits), options.steps))
    plant(folder, options.commits, places)
    adaptive = backfill(folder, "adaptive", "-j", options.jobs)
    print(f"adaptive, -j {options.jobs}: {len(adaptive)} of {options.commits} commits measured, {cpu()} s CPU so far")
    assert found(adaptive, options.commits) == places, "other steps were found"
    if options.adaptive_only:
        return
    every = backfill(folder, "every", "--every-commit")
    print(f"every commit: {len(every)} measured, {cpu()} s CPU so far")
    assert found(every, options.commits) == places, "other steps were found"
    assert all(every[number] == counts for number, counts in adaptive.items()), "counts differ"
    print(
        f"both find the {len(places)} steps, and the counts of all {len(adaptive)} commits that both measured are identical"
    )


def fleet(folder: Path, options: argparse.Namespace) -> None:
    """Measure every commit by one worker, then by two, and print how much sooner these are done. AssertionError if counts differ."""
    import distributed

    connect: Any = distributed.Client
    plant(folder / "one", options.commits, [])
    shutil.copytree(folder / "one", folder / "two")
    found: list[dict[int, dict[str, Any]]] = []
    spent: list[float] = []
    for number, name in enumerate(("one", "two"), start=1):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        url = f"tcp://127.0.0.1:{port}"
        parts = [
            ("scheduler", "--host", "127.0.0.1", "--port", str(port)),
            *[("worker", url, "--nthreads", "1")] * number,
        ]
        cpus = sorted(os.sched_getaffinity(0))
        # Each worker has one CPU, as if it were a machine of its own: else one worker alone uses 1.3 of two.

        with contextlib.ExitStack() as stack:
            for place, (part, *words) in enumerate(parts):
                allowed = ["taskset", "-c", str(cpus[place - 1])] if place else []
                command = [*allowed, sys.executable, "-m", f"distributed.cli.dask_{part}", *words, "--no-dashboard"]
                process = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=folder)
                stack.callback(process.wait)
                stack.callback(process.terminate)
            with connect(url) as client:
                client.wait_for_workers(number)
            began = time.monotonic()
            found.append(backfill(folder / name, "store", "--every-commit", "--workers", url))
            spent.append(time.monotonic() - began)
    assert found[0] == found[1], "counts differ"
    print(
        f"{options.commits} commits: two workers are done {spent[0] / spent[1]:.2f} times as fast as one, with the same counts"
    )


def plant(folder: Path, commits: int, places: list[int]) -> None:
    """Make a repository whose cost changes at these commits, by 2 to 9 % of the loop, in turn in C and in Python."""
    c, python = 40_000, 20_000
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "cg-bench.toml").write_text(_CONFIGURATION)
    for number in range(commits):
        if number in places:
            share = 1 + (2 + places.index(number)) / 20
            c, python = (round(c * share), python) if places.index(number) % 2 else (c, round(python * share))
        (folder / "sum.c").write_text(_C % (number, c))
        (folder / "sum.py").write_text(_PYTHON % (number, python))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", str(number))


def backfill(folder: Path, store: str, *words: str) -> dict[int, dict[str, Any]]:
    """Return the counts of each commit that was measured, by its number."""
    words = ("backfill", "main", "--fresh", "--store", f"file:{folder}.{store}", *words)
    subprocess.run([sys.executable, "-m", "cachegrind_bench", *words], cwd=folder, env=environ(), check=True)
    numbers = {
        sha: int(name) for sha, name in (line.split() for line in git(folder, "log", "--format=%H %s").splitlines())
    }
    known: dict[int, dict[str, Any]] = {}
    for path in Path(f"{folder}.{store}").rglob("*.json"):
        run = json.loads(path.read_bytes())
        known[numbers[run["commit"]["sha"]]] = {item["id"]: item["counts"] for item in run["benchmarks"]}
        path.unlink()
    return known


def found(known: dict[int, dict[str, Any]], commits: int) -> list[int]:
    """Return the commits whose instructions differ from those of the commit before, as far as both are known."""
    costs = {place: {name: item["Ir"] for name, item in counts.items()} for place, counts in known.items()}
    assert {0, commits - 1} <= costs.keys()
    steps = [item for item in intervals(costs) if item.difference > _STEP]
    assert all(item.after == item.before + 1 for item in steps), "a step was not narrowed down"
    return [item.after for item in steps]


class _AtOnce(Executor):
    """Answers an order at once, with what its commit costs."""

    def __init__(self, costs: dict[str, int], environment: Environment) -> None:
        self._costs, self._environment = costs, environment

    def submit(self, _task: Any, order: Order, /) -> Future[Any]:  # type: ignore[override]
        """Return an answer."""
        counts = Counts(Ir=self._costs[order.sha], **dict.fromkeys(_OTHERS, 0))
        benchmark = Benchmark(
            id="benchmark", key="0" * 12, key_fields={}, command=("x",), counts=counts, score=Score(model=_MODEL.name, value=_MODEL.score(counts)),
            runs=(Run(layout=0, counts=counts),),
        )  # fmt: skip
        commit = Commit(sha=order.sha, parent=None, branch=None, dirty=False, committed_at=_NOW)
        result = Result(
            tool_version="0", created_at=_NOW, commit=commit, env=self._environment, benchmarks=(benchmark,)
        )
        future = Future[Any]()
        future.set_result(Answer(machine="m", result=encode(result), failure=None))
        return future


class _Counting(FileStore):
    """A store that keeps nothing."""

    def exists(self) -> bool:
        """Return that there is none."""
        return False

    def add(self, records: Sequence[object]) -> int:
        """Say that they are kept."""
        return len(records)


def simulate(commits: int, workers: int) -> None:
    """Print what it costs to choose commits and keep the books, with an executor that answers at once."""
    shas = tuple(f"{number:040x}" for number in range(commits))
    costs = [1_000_000]
    for number in range(commits - 1):
        costs.append(round(costs[-1] * random.Random(number).choice((1, 1, 1, 1.01, 0.99))))
    environment = Environment(key="0" * 12, fields={}, info={})
    machine = Machine(name="m", key="0" * 12, fields={}, environment=environment, unsealed={})
    force = Workforce(
        executor=_AtOnce(dict(zip(shas, costs, strict=True)), environment),
        task=lambda order: Answer(machine="m", result=None, failure=order.sha),
        width=workers,
        machine=machine,
        repository=Path(),
    )
    for name, required in (("adaptive", {0, commits - 1}), ("every commit", set(range(commits)))):
        past = past_with(shas, frozenset(required))
        search = Search(commits, required, _STEP, {})
        began = time.process_time()
        nowhere = Destination(store=_Counting(Path()), cwd=Path(), again=())
        work = Work(past, nowhere, force, search)
        work.run()
        spent = (time.process_time() - began) * 1000 / work.measured
        print(f"{name}: {work.measured} of {commits} commits, {workers} workers: {spent:.2f} ms CPU a commit")
    print(f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


def past_with(shas: tuple[str, ...], required: frozenset[int]) -> Past:
    """Return commits to choose from."""
    request = BackfillRequest(
        revisions="", since=None, tags=None, every=None, all_commits=False, min_step=_STEP, commits=None, seconds=None,
        words=(), command=(), select=SelectRequest(), carry=None, retry=False, split=1, fresh=False, model=_MODEL,
    )  # fmt: skip
    return Past(
        request=request,
        repository=Repository(Path(), {}),
        shas=shas,
        required=required,
        overlay=Overlay(configuration=None),
        within=".",
        wanted=frozenset(),
        others=lambda _name: True,
    )


def cpu() -> int:
    """Return the CPU seconds of all processes that ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(used.ru_utime + used.ru_stime)


def git(folder: Path, *words: str) -> str:
    """Run git and return what it wrote."""
    return subprocess.run(["git", *words], cwd=folder, env=environ(), check=True, capture_output=True, text=True).stdout


def environ() -> dict[str, str]:
    """Return our variables, with somebody who commits."""
    people = {f"GIT_{role}_{what}": "x@y" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {**os.environ, **people}


if __name__ == "__main__":
    main()
