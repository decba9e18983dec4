"""Write everything that cg-bench counts into one text file: an oracle for changes that must not change any count.

    python benchmarks/oracle.py before.txt
    python benchmarks/oracle.py after.txt
    python benchmarks/oracle.py --compare before.txt after.txt

Measures some 40 programs, two pytest suites and one project for each harness, from the same folder each time, and writes a
sorted line for each benchmark (its nine counts) and for each row of its profile. Two files of one machine are equal to the
byte unless something changed what is counted. What the machine lacks is a line that begins with `absent`. Takes up to 20 minutes.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.small_suites import suite  # noqa: E402

# The same in every run: paths are in the memory of programs.
FOLDER = Path("/tmp/cg-bench-oracle")  # noqa: S108 - a benchmark of the maintainers, not a program for others
DATA, TOOLS = ROOT / "tests" / "data", ROOT / ".tools"

BUILDS = {
    "words": "gcc -O2 -g {data}/pairs/words.c",
    "calls": "gcc -O1 -g {data}/native/calls.c",
    "toggles": "gcc -O2 -g {data}/native/toggles.c -pthread",
    "forks": "gcc -O2 -g {own}/forks.c",
    "signals": "gcc -O2 -g {own}/signals.c",
    "threads": "gcc -O2 -g {own}/threads.c -pthread",
    "static": "gcc -O2 -static {data}/pairs/words.c",
    "heap": "g++ -O2 -g -std=c++17 {own}/heap.cpp",
    "heap-O0": "g++ -O0 -g -std=c++17 {own}/heap.cpp",
    "maps": "rustc -O -g {own}/maps.rs",
    "orders": "rustc -O -g {data}/pairs/orders.rs",
    "state": "gcc -O1 -g {data}/native/state.c",
    "google": "g++ -O2 -g {data}/native/words_bench.cpp -lbenchmark -lpthread",
    "catch2": "g++ -O1 -g {data}/native/chronometer.cpp",
}
PROGRAMS = ("words", "calls", "toggles", "forks", "signals", "threads", "static", "heap", "heap-O0", "maps", "orders")
SHELL = {
    "awk": "{awk} '{{ n[length($1)]++; for (i = 0; i < 20; i++) s += i * NR }} END {{ print s, length(n) }}' text",
    "perl": "perl -e 'my %n; for (1 .. 5000) {{ $n{{$_ * 7919 % 997}} .= $_ }} print scalar(keys %n), qq(\\n)'",
    "perl-text": "perl -ne '$n{{$1}}++ while /(\\w+)/g; END {{ print scalar(keys %n), qq(\\n) }}' text",
    "sqlite": "sqlite3 :memory: 'create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<2000) "
    "insert into t select i, i*7919%997 from n; select count(distinct b), sum(a) from t; create index x on t(b); select count(*) from t where b=5;'",
    "git-log": "git -C repository log --oneline --stat",
    "git-status": "git -C repository status --short",
    "xz": "xz -1 -c -T1 text",
    "gzip": "gzip -c text",
    "bzip2": "bzip2 -c text",
    "sort": "sort text",
    "sed": "sed -e s/word/WORD/g text",
    "grep": "grep -c 'd9[0-9]*1' text",
    "sha256sum": "sha256sum text",
    "bash": "bash -c 'for i in {{1..300}}; do x=$((x + i)); y=$(echo $x); done; echo $y'",
    "sh-pipe": "sh -c 'cat text | sort | uniq -c | head -n 3'",
    "pid": "sh -c 'echo $$ >/dev/null; sh -c \"echo \\$PPID >/dev/null\"'",
    "make": "make -s -f makefile all",
    "find": "find rust go -name '*a*'",
    "tar": "tar cf - text repository/.git/HEAD",
    "bc": "bc -q sums.bc",
}
PYTHON_WORK = ("classes", "text", "hashes", "threads", "processes", "temporary", "waiting")
TEXT = "".join(f"word{number * 7919 % 997} {number} a line of text\n" for number in range(3000))
FILES = {
    "text": TEXT,
    "makefile": "all: one two\n\t@echo all\none:\n\t@echo one\ntwo: one\n\t@echo two\n",
    "sums.bc": "s = 0\nfor (i = 1; i < 300; i++) s += i ^ 3\ns\nquit\n",
    "small/test_small.py": suite(24),
}


def main() -> None:
    """Measure into a file, or compare two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help="where to write what is counted")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="print what differs")
    parser.add_argument("-k", default="", metavar="PART", help="only entries whose name contains this")
    asked = parser.parse_args()
    if asked.compare:
        sys.exit(compare(*asked.compare))
    if asked.file is None:
        parser.error("name a file to write")
    lines = sorted(measured(asked.k))
    asked.file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{sum(line.startswith('counts') for line in lines)} benchmarks, {len(lines)} lines")


def prepare() -> None:
    """Empty the folder and fill it with all files and built programs. A program that cannot be built is missing."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, text in FILES.items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(text, encoding="utf-8")
    own = ROOT / "benchmarks" / "oracle_programs"
    shutil.copy(own / "work.py.txt", FOLDER / "work.py")
    for name, command in BUILDS.items():
        words = [*command.format(data=DATA, own=own).split(), "-o", str(FOLDER / name)]
        subprocess.run(words, check=False, stdout=sys.stderr)
    shutil.copytree(DATA / "suites", FOLDER / "suites", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(DATA / "node", FOLDER / "node")
    if (TOOLS / "node" / "node_modules").is_dir():
        (FOLDER / "node" / "node_modules").symlink_to(TOOLS / "node" / "node_modules")
    (FOLDER / "suites" / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n", encoding="utf-8")
    for path in sorted((DATA / "native" / "criterion").rglob("*")):
        if path.is_file():
            target = FOLDER / "rust" / path.relative_to(DATA / "native" / "criterion")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    go = FOLDER / "go"
    go.mkdir()
    (go / "go.mod").write_text("module example.com/sums\n\ngo 1.21\n", encoding="utf-8")
    shutil.copy(own / "sums.go.txt", go / "sums_test.go")
    _make_repository(FOLDER / "repository")


def _make_repository(folder: Path) -> None:
    identity = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in IDENTITY.items()}
    environ = {"PATH": os.environ["PATH"], "HOME": str(FOLDER), **identity}

    def git(*words: str) -> None:
        subprocess.run(("git", *words), cwd=folder, env=environ, check=True, stdout=subprocess.DEVNULL)

    folder.mkdir()
    git("init", "--quiet", "--initial-branch=main")
    for number in range(20):
        (folder / f"file{number % 7}").write_text(TEXT[number * 100 : number * 900], encoding="utf-8")
        git("add", ".")
        git("commit", "--quiet", "--message", f"Change {number}")
    git("-c", "pack.threads=1", "gc", "--quiet")  # threads find other deltas on a busy machine


IDENTITY = {"NAME": "oracle", "EMAIL": "oracle@example.com", "DATE": "2026-01-01T00:00:00Z"}


def entries() -> Iterator[tuple[str, str, str]]:
    """Yield what to measure: a name, the program that it needs, and the text of a configuration."""
    for name in PROGRAMS:
        yield name, str(FOLDER / name), _command(["./" + name])
    awk = shutil.which("gawk") or "awk"
    for name, command in SHELL.items():
        words = command.format(awk=awk)
        yield name, words.split()[0], _command(words)
    for version in ("3.11", "3.12", "3.13"):
        python = _python(version)
        for work in PYTHON_WORK:
            yield f"python{version}-{work}", python, _command([python, "work.py", work])
    suites = str(TOOLS / "suites" / "3.11" / "bin" / "python")
    yield "pytest-small", suites, f"pytest = 'small'\npython = '{suites}'"
    yield (
        "pytest-yarl",
        suites,
        f"pytest = 'yarl-1.25.1/test_quoting_benchmarks.py'\npython = '{suites}'\ncwd = 'suites'",
    )
    yield "google-benchmark-c", str(FOLDER / "state"), "google-benchmark = './state'"
    yield "google-benchmark", str(FOLDER / "google"), "google-benchmark = './google'"
    yield "catch2", str(FOLDER / "catch2"), "catch2 = './catch2'"
    target = f"env = ['CARGO_TARGET_DIR={FOLDER}/target']"
    yield "criterion", "cargo", f"criterion = 'rust'\n{target}"
    yield "divan", "cargo", f"divan = 'rust'\n{target}"
    yield "go", "go", "go = './...'\ncwd = 'go'"
    yield "jmh", "java", f"jmh = ['-cp', '{TOOLS}/jmh/classes:{TOOLS}/jmh/lib/*', 'org.openjdk.jmh.Main', 'Sums.work']"
    yield "tinybench", "node", "tinybench = 'tiny.mjs'\ncwd = 'node'"
    yield "vitest", "node", "vitest = '.'\ncwd = 'node'"


def _command(words: str | Sequence[str]) -> str:
    return f"command = {json.dumps(words)}"


def _python(version: str) -> str:
    versions = Path.home() / ".pyenv" / "versions"
    found = sorted(versions.glob(f"{version}.*/bin/python"))
    return str(found[0]) if found else shutil.which(f"python{version}") or f"python{version}"


# These repeat within a bound only, see docs/what-makes-runs-differ.md, so they have their names here and no counts: harnesses
# of JIT compilers, processes that wait for each other, and programs that make text of process ids.
INEXACT = ("jmh", "tinybench", "vitest", "go", "bash", "make", "pid", "sh-pipe")


def measured(part: str) -> Iterator[str]:
    """Yield the lines of all entries whose name contains this, with progress on stderr."""
    prepare()
    plain: dict[str, str] = {}
    for name, needed, text in entries():
        if part not in name:
            continue
        if shutil.which(needed) is None:
            yield f"absent\t{name}\t{os.path.basename(needed)}"
        elif text.startswith("command"):
            plain[name] = text
        else:
            yield from _lines(name, f"[[benchmark]]\nid = '{name}'\n{text}\n")
    if plain:
        yield from _lines(
            "commands", "\n".join(f"[[benchmark]]\nid = '{name}'\n{text}\n" for name, text in plain.items())
        )


def _lines(name: str, config: str) -> Iterator[str]:
    (FOLDER / "cg-bench.toml").write_text(config, encoding="utf-8")
    output = FOLDER / "result.json"
    output.unlink(missing_ok=True)
    print(f"{name} …", file=sys.stderr, flush=True)
    words = (
        sys.executable,
        "-m",
        "cachegrind_bench",
        "run",
        "-q",
        "-o",
        str(output),
        *(("--pin-clock",) if name == "commands" else ()),
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CG_BENCH")}
    done = subprocess.run(words, cwd=FOLDER, env={**environ, "PYTHONPATH": str(ROOT)}, check=False)
    if not output.exists():
        yield f"failed\t{name}\texit status {done.returncode}"
        return
    result = json.loads(output.read_bytes())
    for benchmark in result["benchmarks"]:
        exact = name not in INEXACT and benchmark["id"] not in INEXACT and not benchmark["id"].endswith("-processes")
        yield from _rows(benchmark, result["strings"], exact=exact)


def _rows(benchmark: Mapping[str, Any], strings: Sequence[str], *, exact: bool) -> Iterator[str]:
    name = benchmark["id"]
    if benchmark["status"] != "ok":
        yield f"failed\t{name}\t{benchmark['status']}"
        return
    counts = " ".join(f"{event}={count}" for event, count in benchmark["counts"].items())
    seal = " ".join(part for part, state in sorted(benchmark["seal"].items()) if state["state"] == "pinned")
    yield f"counts\t{name}\t{counts if exact else 'varies'}"
    yield f"sealed\t{name}\t{seal}"
    if exact:
        for file, function, *costs in benchmark["profile"]["functions"]:
            yield f"profile\t{name}\t{strings[file]}:{strings[function]}\t{' '.join(map(str, costs))}"


def compare(old: Path, new: Path) -> int:
    """Print the lines that differ; return 1 if there are any, as an exit code."""
    before, after = (path.read_text(encoding="utf-8").splitlines() for path in (old, new))
    found = [
        line for line in difflib.unified_diff(before, after, str(old), str(new), n=0, lineterm="") if line[:2] != "@@"
    ]
    names = sorted({line.split("\t")[1] for line in found[2:]})
    print(*found, sep="\n")
    print(f"{max(0, len(found) - 2)} lines differ, of {len(names)} entries: {', '.join(names) or 'none'}")
    return min(1, len(found))


if __name__ == "__main__":
    main()
