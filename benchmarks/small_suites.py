"""How long suites of small benchmarks take, and what is counted: `pytest --cg-bench`, and pytest-codspeed's simulation mode.

    python benchmarks/small_suites.py [--sizes 1 6 24 100] [--rounds 3]
    python benchmarks/small_suites.py --suite FOLDER --with yarl    the benchmarks of a real package that lie there
    python benchmarks/small_suites.py --floor                       what Valgrind takes for each step of one benchmark
    python benchmarks/small_suites.py --bare                        what a plugin takes that only forks, warms up and counts

Both run under the same Valgrind, pytest-codspeed under its Callgrind with cache simulation, without ASLR and with a
fixed hash seed, as its own runner does it. Prints seconds (medians) and ratios of one run on this machine, then how far the
count of one benchmark moves with its company. Installs both into a virtual environment of its own; needs Valgrind and pip.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ("pytest==9.2.0", "pytest-codspeed==5.0.4", str(ROOT))
_TOTAL = re.compile(r"^desc: Trigger: Client Request: .*::(\S+)\n(?:.*\n)*?totals: (\d+)", re.MULTILINE)

HEAD = """
import hashlib, json, random, re, textwrap

WORDS = [f"word{number % 97}" for number in range(600)]
TEXT = " ".join(WORDS)
DATA = {word: [number, word, None] for number, word in enumerate(WORDS * 3)}
JSON = json.dumps([DATA] * 4)
NUMBERS = random.Random(1).sample(range(100_000), 4_000)
"""
CALLS = {
    "dumps": "benchmark(json.dumps, [DATA] * 8)",
    "loads": "benchmark(json.loads, JSON)",
    "sub": 'benchmark(re.sub, r"word(\\d+)", r"\\1", TEXT)',
    "wrap": "benchmark(textwrap.wrap, TEXT, 70)",
    "sorted": "benchmark(sorted, NUMBERS)",
    "sha256": "benchmark(lambda: hashlib.sha256(TEXT.encode() * 20).hexdigest())",
}

WARM_UPS = 5
STEPS = ("warm-up", "fork", "on", "first", "second", "off")
CALLGRIND = ("setarch", "-R", "valgrind", "--tool=callgrind", "-q", "--instr-atstart=no", "--cache-sim=yes")
GEOMETRY = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64", "--callgrind-out-file=/dev/null")


def suite(size: int) -> str:
    """Return a file of so many tests: an empty one, or the six again and again."""
    if size == 1:
        return "def test_empty(benchmark): benchmark(lambda: None)\n"
    kinds = list(CALLS.items())
    named = [kinds[number % len(kinds)] + (number // len(kinds),) for number in range(size)]
    return HEAD + "".join(f"\ndef test_{name}_{turn}(benchmark): {call}\n" for name, call, turn in named)


@dataclass(frozen=True, slots=True)
class Tool:
    """One way to measure a file of benchmarks: words before and after `python -m pytest`, and variables."""

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    environ: dict[str, str]

    def measure(self, python: Path, folder: Path, *tests: str) -> tuple[float, dict[str, int]]:
        """Return the seconds that these (words for pytest; else all) took, and the instructions of each."""
        out = folder / "out"
        words = [word.format(out=out) for word in (*self.before, str(python), "-m", "pytest", "-q", *self.after)]
        environ = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")} | self.environ
        begun = time.monotonic()
        done = subprocess.run(
            [*words, "-p", "no:cacheprovider", *tests],
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        took = time.monotonic() - begun
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)} failed:\n{done.stdout[-3000:]}")
        for part in folder.glob("bare.*"):
            part.unlink()
        text = out.read_text() if out.exists() else ""
        if text.startswith("{"):
            found = {item["id"].rpartition("::")[2]: item["counts"]["Ir"] for item in json.loads(text)["benchmarks"]}
        else:
            found = {name: int(total) for name, total in _TOTAL.findall(text)}
        out.unlink(missing_ok=True)
        return took, found


OURS = ("-p", "no:codspeed", "--cg-bench", "--cg-bench-jobs=1", "--cg-bench-output={out}")
TOOLS = (
    Tool(
        "pytest-codspeed, simulation",
        (*CALLGRIND, "--combine-dumps=yes", "--callgrind-out-file={out}"),
        ("-p", "no:cg_bench", "--codspeed"),
        {"CODSPEED_ENV": "local", "CODSPEED_RUNNER_MODE": "simulation", "PYTHONHASHSEED": "0"},
    ),
    Tool("pytest --cg-bench --cg-bench-jobs=1", (), OURS, {}),
    Tool("pytest --cg-bench", (), (*OURS, "--cg-bench-jobs=auto"), {}),
    Tool("pytest --cg-bench --cg-bench-layouts=5", (), (*OURS, "--cg-bench-jobs=auto", "--cg-bench-layouts=5"), {}),
)


BARE = tuple(
    Tool(
        f"fork, warm up, count twice; {lanes} at once",
        (*CALLGRIND, "--callgrind-out-file=bare.%p"),
        ("-p", "no:codspeed", "-p", "no:cg_bench", "-p", "bare_plugin"),
        {"PYTHONPATH": str(ROOT / "benchmarks"), "PYTHONHASHSEED": "0", "BARE_LANES": f"{lanes}"},
    )
    for lanes in (1, 2)
)


def rounds_of(python: Path, folder: Path, rounds: int, tools: Sequence[Tool] = TOOLS) -> tuple[list[float], int]:
    """Return the seconds that each tool takes (medians), in turns as machines have moods, and how many tests there are."""
    done = [[tool.measure(python, folder) for tool in tools] for _ in range(rounds)]
    medians = [statistics.median(seconds for seconds, _ in column) for column in zip(*done, strict=True)]
    return medians, len(done[0][0][1])


def table(heads: list[str], columns: list[list[float]], tools: Sequence[Tool] = TOOLS) -> None:
    """Print a row of seconds for each tool, and parts of those of the first one."""
    print(f"{'seconds, and parts of the first row':42}" + "".join(f"{head:>16}" for head in heads))
    for number, tool in enumerate(tools):
        cells = "".join(f"{column[number]:9.1f} {column[number] / column[0]:6.2f}" for column in columns)
        print(f"{tool.name:42}{cells}", flush=True)


def times(python: Path, folder: Path, sizes: list[int], rounds: int, tools: Sequence[Tool] = TOOLS) -> None:
    """Print how long each tool takes for suites of these sizes."""
    columns: list[list[float]] = []
    for size in sizes:
        (folder / "test_it.py").write_text(suite(size))
        columns.append(rounds_of(python, folder, rounds, tools)[0])
    table([str(size) for size in sizes], columns, tools)


def real(python: Path, folder: Path, rounds: int) -> None:
    """Print how long each tool takes for the benchmarks in a folder."""
    column, count = rounds_of(python, folder, rounds)
    table([f"{count} tests"], [column])


def company(python: Path, folder: Path) -> None:
    """Print what each tool counts for the same call alone, and in four places of a file."""
    (folder / "test_it.py").write_text(suite(24))
    for tool in TOOLS[:2]:
        together = tool.measure(python, folder)[1]
        print(f"\n{tool.name}: instructions alone, and in four places of a file")
        for name in CALLS:
            alone = tool.measure(python, folder, f"test_it.py::test_{name}_0")[1][f"test_{name}_0"]
            counts = [alone, *(together[f"test_{name}_{turn}"] for turn in range(4))]
            spread = (max(counts) - min(counts)) / min(counts)
            print(f"  {name:8}" + "".join(f"{count:>12,}" for count in counts) + f"  {spread:8.3%}", flush=True)


@contextmanager
def timed(seconds: list[float]) -> Iterator[None]:
    """Add how long this took."""
    begun = time.monotonic()
    yield
    seconds.append(time.monotonic() - begun)


def steps_of(call: str) -> list[float]:
    """Return the seconds of each step for this benchmark, under Valgrind."""
    sys.path.insert(0, str(ROOT))
    from cachegrind_bench.region.requests import START_INSTRUMENTATION, STOP_INSTRUMENTATION, Request, Requests

    names: dict[str, object] = {"benchmark": lambda function, *arguments: function(*arguments)}
    exec(HEAD, names)  # noqa: S102 - our own text
    code = compile(call, "benchmark", "eval")
    requests, start, stop = Requests(), Request(START_INSTRUMENTATION).block, Request(STOP_INSTRUMENTATION).block
    seconds: list[float] = []
    with timed(seconds):
        for _ in range(WARM_UPS):
            eval(code, names)  # noqa: S307 - our own text
    reading, writing = os.pipe()
    begun = time.monotonic()
    pid = os.fork()
    if pid:
        os.close(writing)
        with os.fdopen(reading) as told:
            seconds += [float(word) for word in told.read().split()]
        os.waitpid(pid, 0)
        return seconds
    own = [time.monotonic() - begun]
    with timed(own):
        requests.make(start)
    for _ in range(2):
        with timed(own):
            eval(code, names)  # noqa: S307 - our own text
    with timed(own):
        requests.make(stop)
    os.write(writing, " ".join(map(str, own)).encode())
    os._exit(0)


def floor(rounds: int, at_once: int) -> None:
    """Print what Valgrind itself takes for each step of one benchmark, below which no exact measurement of it comes.

    `one call` is one warm-up and one call, in one process for all benchmarks, as pytest-codspeed measures; `two, apart` are
    all warm-ups and two calls that can be compared, in a process of their own. No pytest, no plugin, nothing written.
    Steps are the mean of this many processes at once, as CPUs that share their caches take longer for them.
    """
    heads = ("start", *STEPS, "one call", "two, apart", "ratio")
    print(f"{f'ms, {at_once} each':12}" + "".join(f"{head:>11}" for head in heads))
    for name, call in CALLS.items():
        rows: list[list[float]] = []
        words = (*CALLGRIND, *GEOMETRY, sys.executable, __file__, "--inside", call)
        for _ in range(rounds):
            begun = time.monotonic()
            running = [
                subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                for _ in range(at_once)
            ]
            said = [[float(word) for word in process.communicate()[0].split()] for process in running]
            if any(process.returncode for process in running):
                sys.exit(f"{' '.join(words)} failed")
            steps = [statistics.mean(column) for column in zip(*said, strict=True)]
            rows.append([time.monotonic() - begun - sum(steps), *steps])
        start, warm_up, fork, on, first, second, off = (
            1000 * statistics.median(column) for column in zip(*rows, strict=True)
        )
        one, two = warm_up / WARM_UPS + on + first + off, warm_up + fork + on + first + second
        cells = (start, warm_up, fork, on, first, second, off, one, two)
        print(f"{name:12}" + "".join(f"{cell:11.0f}" for cell in cells) + f"{two / one:11.2f}", flush=True)


def main() -> None:
    """Install, measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[1, 6, 24, 100], help="tests in a suite")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each, of which the median counts")
    parser.add_argument("--suite", type=Path, metavar="FOLDER", help="benchmarks of a real package, instead")
    parser.add_argument("--with", nargs="*", default=[], dest="needed", help="what pip is to install for them")
    parser.add_argument("--floor", action="store_true", help="what Valgrind itself takes for one benchmark, instead")
    parser.add_argument("--bare", action="store_true", help="what a plugin takes that only forks, warms up and counts")
    parser.add_argument("--inside", metavar="CALL", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        print(*steps_of(asked.inside))
        return
    if asked.floor:
        floor(asked.rounds, 1)
        floor(asked.rounds, len(os.sched_getaffinity(0)))
        return
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        venv.create(home / "venv", with_pip=True)
        python = home / "venv/bin/python"
        subprocess.run([python, "-m", "pip", "-q", "install", *REQUIREMENTS, *asked.needed], check=True)
        folder = home / "suite"
        if asked.suite is not None:
            shutil.copytree(asked.suite, folder)
            real(python, folder, asked.rounds)
            return
        folder.mkdir()
        if asked.bare:
            times(python, folder, asked.sizes, asked.rounds, (TOOLS[0], *BARE, *TOOLS[1:3]))
            return
        times(python, folder, asked.sizes, asked.rounds)
        company(python, folder)


if __name__ == "__main__":
    main()
