"""What counts owe to a program's surroundings: the tables of docs/what-makes-runs-differ.md, "Another place".

    python benchmarks/surroundings.py [--work FOLDER] [--without-rights]

Measures a C program, a Rust program, a Python script and benchmarks of pytest in one project, and again where one thing around
them differs. A cell is 0 where all nine counts are the same; otherwise the share that Ir moved by, or how many misses. Without
rights, the same is done where no mount namespace can be made. Needs root, gcc, rustc, pip and Valgrind.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
LIBRARY_LIST = "/etc/ld.so.cache"
LIBRARIES = (0, 50, 200, 400, 800)  # five sizes of the loader's list, in different numbers of pages
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
# Root without the right to mount, in a namespace of users in which no other one can be made.
_REFUSE = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-sys_admin,-sys_nice "$@"'
WITHOUT_RIGHTS = ("unshare", "--user", "--map-root-user", "sh", "-c", _REFUSE, "sh")
C = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int compare(const void *a, const void *b) { return strcmp(*(char **)a, *(char **)b); }
int main(int count, char **words) {
    char path[4096], *names[500];
    if (!realpath(words[0], path)) return 1;
    for (int i = 0; i < 500; i++) {
        names[i] = malloc(5000);
        snprintf(names[i], 5000, "%d %f", i * 7919 % 503, pow(i, count * 0.3));
    }
    qsort(names, 500, sizeof *names, compare);
    return printf("%s %s\n", path, names[0]) < 0;
}
"""
RUST = """
use std::collections::HashMap;
fn main() {
    let here = std::env::current_dir().unwrap();
    let mut found = HashMap::new();
    for i in 0..5000u64 { *found.entry(format!("{}", i * 7919 % 503)).or_insert(0) += i; }
    println!("{} {:?}", here.display(), found.values().max());
}
"""
MODULE = """
import json, re, tomllib
TEXT = "".join(f"[part{n}]\\nname = 'word{n}'\\nvalues = [{n}, {n * 7}]\\n" for n in range(60))
def parse(): return tomllib.loads(TEXT)
def dump(): return json.dumps([parse()] * 3)
def replace(): return re.sub(r"word(\\d+)", r"\\1", TEXT)
"""
SCRIPT = "import os, words\nprint(len(words.dump()), len(words.replace()), {os.getcwd(): hash(__file__)})\n"
BENCHMARKS = "import words\n" + "".join(
    f"def test_{name}(benchmark): benchmark(words.{name})\n" for name in ("parse", "dump", "replace")
)
FILES = {"main.c": C, "main.rs": RUST, "words.py": MODULE, "script.py": SCRIPT, "test_words.py": BENCHMARKS}
Counts = dict[str, dict[str, int]]  # by benchmark with its key, and by event


class Surroundings(NamedTuple):
    """A folder with the project, what cg-bench is started by, and what its Python sees besides."""

    project: Path
    before: Sequence[str] = ()


def build(work: Path, interpreter: str) -> tuple[Path, Path]:
    """Make the project and a virtual environment with cg-bench and pytest, and return both."""
    project = work / "base" / "project"
    project.mkdir(parents=True)
    for name, text in FILES.items():
        (project / name).write_text(text)
    subprocess.run(["gcc", "-O1", "-g", "main.c", "-o", "in-c", "-lm"], cwd=project, check=True)
    subprocess.run(["rustc", "-O", "main.rs", "-o", "in-rust"], cwd=project, check=True)
    subprocess.run([interpreter, "-m", "venv", "--without-pip", work / "venv"], check=True)
    python = work / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-q")
    subprocess.run([*pip, "pytest==9.2.0", str(ROOT)], check=True)
    return project, python


def measure(around: Surroundings, python: Path, output: Path) -> Mapping[str, Counts]:
    """Return the counts of each program, by the names of its benchmarks."""
    run = (python.parent / "cg-bench", "run", "-o", output, "--")
    tests = (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--cg-bench", f"--cg-bench-output={output}")
    commands: dict[str, tuple[str | Path, ...]] = {
        "C": (*run, "./in-c"),
        "Rust": (*run, "./in-rust"),
        "Python script": (*run, python, "script.py"),
        "pytest": tests,
    }
    found = dict[str, Counts]()
    for name, command in commands.items():
        output.unlink(missing_ok=True)
        argv = [*around.before, *map(str, command)]
        done = subprocess.run(argv, cwd=around.project, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{argv} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        benchmarks = json.loads(output.read_text())["benchmarks"]
        found[name] = {f"{benchmark['id']} {benchmark['key']}": benchmark["counts"] for benchmark in benchmarks}
    return found


def moved(base: Counts, counts: Counts) -> str:
    """Return how far counts are from those of the base, at most of all benchmarks."""
    if base.keys() != counts.keys():
        return "not comparable"
    shares = [abs(counts[name]["Ir"] - old["Ir"]) / old["Ir"] for name, old in base.items()]
    misses = [sum(abs(counts[name][event] - old[event]) for event in old) for name, old in base.items()]
    return f"{max(shares):.1e}" if any(shares) else f"{max(misses)} misses" if any(misses) else "0"


def _copy(project: Path, to: Path) -> Path:
    shutil.copytree(project, to, symlinks=True)
    return to


def _library_lists(work: Path) -> Iterator[Path]:
    library = work / "library.so"
    subprocess.run(["gcc", "-shared", "-nostdlib", "-xc", "-", "-o", library], input=b"int nothing;", check=True)
    for size in LIBRARIES:
        folder, made = work / f"libraries-{size}", work / f"{size}.cache"
        folder.mkdir()
        for number in range(size):
            shutil.copyfile(library, folder / f"lib{number * 7919 % 997}c.so.{number}")
        configuration = work / f"{size}.conf"
        configuration.write_text(f"{folder}\ninclude /etc/ld.so.conf\n")
        ldconfig = shutil.which("ldconfig", path="/sbin:/usr/sbin") or "ldconfig"
        subprocess.run([ldconfig, "-X", "-f", configuration, "-C", made], check=True, stderr=subprocess.DEVNULL)
        yield made


@contextmanager
def _distributions(python: Path) -> Iterator[None]:
    """Two distributions more beside those of cg-bench, for as long as this lasts."""
    words = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip())
    made = [packages / name for name in ("aaa", "zzz", "aaa-1.0.dist-info", "zzz-1.0.dist-info")]
    for folder in made:
        folder.mkdir()
        name = folder.name.partition("-")[0]
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    try:
        yield
    finally:
        for folder in made:
            shutil.rmtree(folder)


def _fixed(project: Path, *before: str) -> Callable[[ExitStack], Surroundings]:
    return lambda _stack: Surroundings(project, before)


def surroundings(project: Path, python: Path, work: Path) -> Iterator[tuple[str, Callable[[ExitStack], Surroundings]]]:
    """Yield what differs, and what makes it so until its stack is closed."""
    yield "nothing, measured again", _fixed(project)
    longer = _copy(project, work / "a-path" / "that-is-much-longer" / "project")
    yield "a checkout in a longer path", _fixed(longer)
    for made in _library_lists(work):
        words = ("unshare", "--mount", "sh", "-c", f'mount --bind {made} {LIBRARY_LIST} && exec "$@"', "sh")
        name = f"a list of libraries of {made.stat().st_size // 4096} pages"
        yield name, _fixed(project, *words)
    more = _copy(project, work / "more" / "project")
    for number in range(10):
        (more / f"notes{number}.txt").write_text("x\n")
    yield "ten files more in the folder", _fixed(more)
    elsewhere = Path("/dev/shm") / work.name / "project"  # noqa: S108 - what Linux has in the place of ext4

    def other_file_system(stack: ExitStack) -> Surroundings:
        stack.callback(shutil.rmtree, elsewhere.parent)
        return Surroundings(_copy(project, elsewhere))

    yield "tmpfs in place of ext4", other_file_system

    def more_distributions(stack: ExitStack) -> Surroundings:
        stack.enter_context(_distributions(python))
        return Surroundings(project)

    yield "two distributions more in site-packages", more_distributions
    own = _copy(project, work / "nobody" / "project")
    for folder in (own.parent, own, *own.rglob("*")):
        os.chown(folder, 65534, 65534)
    yield "another user than root, in an own checkout", _fixed(own, *NOBODY, "env", f"HOME={own}")


def main() -> None:
    """Measure, and print a row as soon as it is known."""
    parser = argparse.ArgumentParser(prog="python benchmarks/surroundings.py", description=__doc__)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()), help="an ordinary file system")
    parser.add_argument("--without-rights", action="store_true", help="measure where nothing can be mounted")
    parser.add_argument("--python", default="/usr/bin/python3", help="one that all users may read")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        work = Path(folder)
        work.chmod(0o755)
        project, python = build(work, options.python)
        output = work / "results" / "result.json"
        output.parent.mkdir()
        output.parent.chmod(0o777)
        rights = WITHOUT_RIGHTS if options.without_rights else ()
        base = measure(Surroundings(project, rights), python, output)
        names = [f"{name} ({min(counts['Ir'] for counts in found.values()):,} Ir)" for name, found in base.items()]
        print(f"| | {' | '.join(names)} |\n| --- |{' --- |' * len(base)}", flush=True)
        for name, prepare in surroundings(project, python, work):
            with ExitStack() as stack:
                around = prepare(stack)
                found = measure(around._replace(before=(*around.before, *rights)), python, output)
            cells = [moved(counts, found[program]) for program, counts in base.items()]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
