"""How long `cg-bench diff` takes, how much memory, and how both grow with the number of benchmarks. Run by hand.

    python benchmarks/diff.py [--benchmarks N,N,...] [--functions N] [--rounds N]

Makes pairs of results whose benchmarks each have a full profile of mangled and plain names, all with numbers of their own.
In one candidate one benchmark in a hundred does more work than in the base, in one known function; in the other every one
does, so that all profiles are read that the default table can ask for. The time is that of a whole process, the best of some;
the memory is the most that process ever held (its resident set).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cachegrind_bench.model.codec import encode
from cachegrind_bench.model.metrics import DEFAULT_MODEL, EVENTS, Counts
from cachegrind_bench.model.result import Benchmark, Environment, Result, Run, Score

ROOT = Path(__file__).resolve().parent.parent
REGRESSION = 1
# A process of its own: what a program is told it held at most includes what its parent held when it was started.
MEASURE = """
import os, sys, time
start = time.perf_counter()
null = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
_, status, usage = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=null), 0)
print(os.waitstatus_to_exitcode(status), time.perf_counter() - start, usage.ru_maxrss)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one comparison took."""

    seconds: float
    megabytes: float


def names(functions: int) -> list[tuple[str, str]]:
    """Return files and functions of lengths that are usual in C, C++ and Rust, each pair once."""
    found: list[tuple[str, str]] = []
    for number in range(functions):
        file = f"/home/runner/work/project/project/src/module_{number % 37}/part_{number % 211}.cpp"
        word = f"handle_{number}_{'abcdefgh'[: number % 8]}"
        kind = number % 3
        if kind == 0:
            name = f"_ZN7project6moduleILi{number}EE{len(word)}{word}ERKSt6vectorIiSaIiEESt17basic_string_viewIcE"
        elif kind == 1:
            name = f"_ZN7project{len(word)}{word}17h{number * 2654435761 % (1 << 64):016x}E"
        else:
            name = word
        found.append((file, name))
    return found


def rows(functions: int, seed: int) -> list[list[int]]:
    """Return the rows of one profile; many small functions, few large ones."""
    chance = random.Random(seed)
    found: list[list[int]] = []
    for number in range(functions):
        work = int(20_000 / (0.0005 + chance.random() ** 2))
        reads, writes, miss = work // 3, work // 5, work // 700
        found.append(
            [
                2 * number,
                2 * number + 1,
                work,
                miss,
                miss // 2,
                reads,
                miss * 2,
                miss // 3,
                writes,
                miss // 2,
                miss // 4,
            ]
        )
    return found


def more_work(found: list[list[int]], seed: int) -> list[list[int]]:
    """Return the same rows, but that one function of middle size executes more, about 1 % of the whole."""
    more = sum(row[2] for row in found) // 100
    changed = [*found]
    row = changed[seed % len(found)]
    changed[seed % len(found)] = [*row[:2], row[2] + more, *row[3:]]
    return changed


def document(functions: int) -> dict[str, object]:
    """Return what all these results have in common: a file's document without benchmarks, but with all strings."""
    empty = Result(
        tool_version="0",
        created_at="2026-01-31T12:00:00Z",
        commit=None,
        env=Environment(key="0" * 12, fields={}, info={}),
        benchmarks=(),
    )
    found: dict[str, object] = json.loads(encode(empty))
    # File 2 n and name 2 n + 1 belong to function n. A real file has each string once, so it is a little smaller.
    return found | {"strings": [text for pair in names(functions) for text in pair]}


def benchmark(number: int, found: list[list[int]]) -> dict[str, object]:
    """Return a benchmark as a result file has it, with these rows."""
    counts = Counts.of([sum(column) for column in list(zip(*found, strict=True))[2:]])
    value = Benchmark(
        id=f"suite/test_{number:04}[parameter]",
        key="0123456789ab",
        key_fields={},
        command=("./suite", f"--test={number}"),
        counts=counts,
        score=Score(model=DEFAULT_MODEL.name, value=DEFAULT_MODEL.score(counts)),
        runs=(Run(layout=0, counts=counts),),
    )
    whole = Result(
        tool_version="", created_at="", commit=None, env=Environment(key="", fields={}, info={}), benchmarks=(value,)
    )
    written: dict[str, object] = json.loads(encode(whole))["benchmarks"][0]
    return written | {"profile": {"events": list(EVENTS), "functions": found}}


def write(paths: dict[str, Path], count: int, functions: int) -> None:
    """Write the base and the two candidates, one benchmark at a time: the whole would not fit into memory."""
    frame = json.dumps(document(functions) | {"benchmarks": ["@"]}, sort_keys=True, separators=(",", ":"))
    before, after = frame.split('"@"')
    streams = {name: path.open("w", encoding="utf-8") for name, path in paths.items()}
    for stream in streams.values():
        stream.write(before)
    for number in range(count):
        found = rows(functions, number)
        changed = more_work(found, number)
        for name, mine in (("base", found), ("few", changed if number % 100 == 7 else found), ("all", changed)):
            text = json.dumps(benchmark(number, mine), sort_keys=True, separators=(",", ":"))
            streams[name].write(f"{',' if number else ''}{text}")
    for stream in streams.values():
        stream.write(f"{after}\n")
        stream.close()


def measure(base: Path, candidate: Path, rounds: int) -> Cost:
    """Compare them several times; the most memory and the least time of all."""
    command = [sys.executable, "-m", "cachegrind_bench", "diff", str(base), str(candidate)]
    costs: list[Cost] = []
    for _ in range(rounds):
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, *command],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
            text=True,
        )
        code, seconds, kilobytes = done.stdout.split()
        assert int(code) == REGRESSION, f"exit code {code}: {done.stderr}"
        costs.append(Cost(seconds=float(seconds), megabytes=int(kilobytes) / 1000))
    return Cost(seconds=min(cost.seconds for cost in costs), megabytes=max(cost.megabytes for cost in costs))


def main() -> None:
    """Print one line for each number of benchmarks and each candidate, and how they grow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmarks", default="100,300,1000", metavar="N,N,...", help="default: %(default)s")
    parser.add_argument("--functions", type=int, default=3000, metavar="N", help="rows of a profile (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="default: %(default)s")
    options = parser.parse_args()
    print(
        f"{'benchmarks':>10}  {'changed':>7}  {'each file':>10}  {'time':>7}  {'memory':>7}  growth: size, time, memory"
    )
    first: dict[str, tuple[int, Cost]] = {}
    for count in map(int, options.benchmarks.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            paths = {name: Path(folder) / f"{name}.json" for name in ("base", "few", "all")}
            write(paths, count, options.functions)
            size = paths["base"].stat().st_size
            for name in ("few", "all"):
                cost = measure(paths["base"], paths[name], options.rounds)
                small, least = first.setdefault(name, (size, cost))
                growth = (size / small, cost.seconds / least.seconds, cost.megabytes / least.megabytes)
                print(
                    f"{count:>10}  {name:>7}  {size / 1e6:>7.1f} MB  {cost.seconds:>5.2f} s  {cost.megabytes:>4.0f} MB  "
                    + ", ".join(f"×{factor:.1f}" for factor in growth),
                    flush=True,
                )


if __name__ == "__main__":
    main()
