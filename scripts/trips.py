"""Print how many of our files some commands enter, and how many of our modules they import; write that into docs/code-map.md.

    python scripts/trips.py [--files] [--write]

`--files` names the files. `--write` updates the tables of docs/code-map.md, the lines of each folder too. A file is entered where one
of its functions runs in the parent process. What is measured is /bin/true, or one small benchmark.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "cachegrind_bench"
MAP = ROOT / "docs" / "code-map.md"
FLOOR = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| ([\d,; ]+) \|", re.MULTILINE)
_TRIPS = re.compile(r"\| command \| files entered .*?\n\n", re.DOTALL)

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


def lines_of(name: str) -> int:
    """Return how many lines of Python a folder or module of the package has."""
    module = PACKAGE / f"{name}.py"
    paths = [module] if module.is_file() else sorted((PACKAGE / name).rglob("*.py"))
    return sum(path.read_bytes().count(b"\n") for path in paths)


def with_lines(text: str) -> str:
    """Return the code map with the lines of each floor, in hundreds."""

    def row(found: re.Match[str]) -> str:
        lines = (f"{round(lines_of(name), -2):,}" for name in re.findall(r"\w+", found[1]))
        return f"| {found[1]} | {'; '.join(lines)} |"

    floors, heading, rest = text.partition("## Where to add")
    return FLOOR.sub(row, floors) + heading + rest


def main() -> None:
    """Print a table, and with --files the files of each trip."""
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        found = {title: trip(Path(name), start, words) for title, start, words in TRIPS}
    rows = [f"| `{title}` | {len(one['files'])} | {len(one['modules'])} |" for title, one in found.items()]
    table = "\n".join(("| command | files entered | modules imported |", "| --- | --- | --- |", *rows, ""))
    print(table, end="")
    if "--write" in sys.argv[1:]:
        text = _TRIPS.sub(lambda _found: f"{table}\n", with_lines(MAP.read_text(encoding="utf-8")), count=1)
        MAP.write_text(text, encoding="utf-8")
    if "--files" in sys.argv[1:]:
        for title, one in found.items():
            print(f"\n{title}:", *one["files"], sep="\n  ")


if __name__ == "__main__":
    main()
