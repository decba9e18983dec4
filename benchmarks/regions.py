"""How long it takes to measure twenty functions of real suites: one by one as whole processes, or by the pytest plugin.

    python benchmarks/regions.py [--python 3.11]

Prints seconds and ratios of one run on this machine. Beside them stands pytest-codspeed: under stock Valgrind where it
can measure there, and in its own mode of measuring time. Needs `scripts/setup.sh test`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.suites import TWENTY, VERSIONS, Suites, suite_python  # noqa: E402 - found by the line above

CG_BENCH = Path(sys.executable).with_name("cg-bench")
# Plain tests: the fixture calls the function once. Those of other plugins would call it until a second is over.
PLAIN = ("-p", "no:cacheprovider", "-p", "no:benchmark", "-p", "no:codspeed")


def seconds(*words: str | Path, cwd: Path) -> float:
    """Run a command that has to succeed, and return how long it took."""
    begun = time.monotonic()
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    took = time.monotonic() - begun
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words[:8]))} ... failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return took


def whole_processes(suites: Suites) -> float:
    """Measure each function as a process of its own, without another warm-up than the first one's."""
    total = 0.0
    for number, name in enumerate(TWENTY):
        print(f"\r  {number + 1} of {len(TWENTY)} whole processes", end="", file=sys.stderr, flush=True)
        command = (suites.python, "-m", "pytest", *PLAIN, name)
        total += seconds(CG_BENCH, "run", "--quiet", "--warmup", "0", "--", *command, cwd=suites.folder)
    print(file=sys.stderr)
    return total


def codspeed(suites: Suites, *before: str) -> float | None:
    """Let pytest-codspeed measure the same; None where it cannot."""
    mode = ("--codspeed", "--codspeed-mode", "simulation" if before else "walltime")
    words = (
        *before,
        str(suites.python),
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:benchmark",
        *mode,
        *TWENTY,
    )
    begun = time.monotonic()
    done = subprocess.run(words, cwd=suites.folder, capture_output=True, text=True, check=False)
    return time.monotonic() - begun if done.returncode == 0 and "20 benchmarked" in done.stdout else None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", choices=VERSIONS, default="3.11")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        suites = Suites.copy(suite_python(asked.python), Path(folder))
        natively = seconds(suites.python, "-m", "pytest", *PLAIN, *TWENTY, cwd=suites.folder)  # compiles what needs it
        natively = seconds(suites.python, "-m", "pytest", *PLAIN, *TWENTY, cwd=suites.folder)
        result = Path(folder) / "result.json"
        measure = ("-p", "no:cacheprovider", "--cg-bench", f"--cg-bench-output={result}")
        one, two = (
            seconds(suites.python, "-m", "pytest", *measure, f"--cg-bench-jobs={jobs}", *TWENTY, cwd=suites.folder)
            for jobs in (1, 2)
        )
        callgrind = ("valgrind", "--tool=callgrind", "--instr-atstart=no", "--cache-sim=yes", "-q")
        under = codspeed(suites, *callgrind, f"--callgrind-out-file={folder}/codspeed.%p")
        walltime = codspeed(suites)
        whole = whole_processes(suites)
    rows: list[tuple[str, float | None]] = [
        ("20 whole processes, cg-bench run", whole),
        ("pytest --cg-bench", one),
        ("pytest --cg-bench --cg-bench-jobs=2", two),
        ("pytest-codspeed under stock Callgrind", under),
        ("pytest-codspeed, walltime", walltime),
        ("plain tests", natively),
    ]
    print(f"Twenty functions, Python {asked.python}; seconds, and as a part of twenty whole processes\n")
    for name, took in rows:
        shown = "cannot" if took is None else f"{took:8.1f}  {took / whole:7.3f}"
        print(f"{name:40} {shown:>17}")


if __name__ == "__main__":
    main()
