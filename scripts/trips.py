"""Print which of our files four commands enter, and how many modules of ours they import: `python scripts/trips.py [--files]`.

A file is entered where one of its functions runs in the parent process. What is measured is /bin/true, or one small benchmark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "cachegrind_bench"

# In the process of the command: notes every function of ours that is called, and writes the sums when it ends.
_NOTING = """
import atexit, inspect, json, os, sys, threading
package, target, own, found = {package!r}, {target!r}, os.getpid(), set()
def note(frame, event, _argument):
    code = frame.f_code
    if event == "call" and code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(package):
        found.add(code.co_filename[len(package) + 1:])
def write():
    sys.setprofile(None)
    if os.getpid() == own:
        modules = [name for name in sys.modules if name.partition(".")[0] == "cachegrind_bench"]
        with open(target, "w") as file:
            json.dump({{"files": sorted(found), "modules": sorted(modules)}}, file)
atexit.register(write)
threading.setprofile(note)
sys.setprofile(note)
sys.argv = {words!r}
{start}
"""
_COMMAND = "from cachegrind_bench.cli.main import main; main()"
_PYTEST = "import pytest; raise SystemExit(pytest.main(sys.argv[1:]))"
_SUITE = "def test_sum(benchmark):\n    benchmark(sum, range(100))\n"

TRIPS = (
    ("diff", _COMMAND, "cg-bench diff a.json a.json"),
    ("run", _COMMAND, "cg-bench run --warmup 0 -- /bin/true"),
    ("run --save", _COMMAND, "cg-bench run --warmup 0 --save -- /bin/true"),
    ("trend --html", _COMMAND, "cg-bench trend --html trend"),
    ("pytest --cg-bench", _PYTEST, "pytest -q -p no:cacheprovider --cg-bench test_sum.py"),
)


def trip(folder: Path, start: str, words: str) -> dict[str, list[str]]:
    """Return the files that a command enters, and the modules that it imports."""
    target = folder / "trip.out"
    code = _NOTING.format(package=str(PACKAGE), target=str(target), words=words.split(), start=start)
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environ, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{words}: exit code {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}")
    found: dict[str, list[str]] = json.loads(target.read_bytes())
    return found


def prepare(folder: Path) -> None:
    """Make a repository with a benchmark, a result and a history in this folder."""
    (folder / "test_sum.py").write_text(_SUITE)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@localhost")
    run = (sys.executable, "-m", "cachegrind_bench", "run", "--save", "-o", "a.json", "--", "/bin/true")
    for words in (
        (*git, "init", "-q", "-b", "main"),
        (*git, "add", "test_sum.py"),
        (*git, "commit", "-q", "-m", "a benchmark"),
        run,
    ):
        subprocess.run(words, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, capture_output=True)


def main() -> None:
    """Print a table, and with --files the files of each trip."""
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        found = {title: trip(Path(name), start, words) for title, start, words in TRIPS}
    print("| command | files entered | modules imported |\n| --- | --- | --- |")
    for title, one in found.items():
        print(f"| `{title}` | {len(one['files'])} | {len(one['modules'])} |")
    if "--files" in sys.argv[1:]:
        for title, one in found.items():
            print(f"\n{title}:", *one["files"], sep="\n  ")


if __name__ == "__main__":
    main()
