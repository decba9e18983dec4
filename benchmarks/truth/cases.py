"""What `python -m benchmarks.truth measure` counts and times: the programs of `programs`, sizes for them, and how they are built."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).with_name("programs")
ROOT = SOURCES.parents[2]
SWEEP = ROOT / "examples" / "cache-sweep" / "sweep.c"
ONE_PASS = ROOT / "examples" / "pyperformance" / "one_pass.py"
PYPERFORMANCE = "pyperformance==1.14.0"


def _listed(text: str) -> dict[str, list[str]]:
    """Return the words after each name; a comma or the end of a line separates programs."""
    lines = (part.split() for part in text.replace("\n", ",").split(","))
    return {words[0]: words[1:] for words in lines if words}


# Programs, and sizes for each.
MICRO = _listed(
    """
    add-chain 300000, add-free 300000, mul-chain 300000, mul-free 300000, rotate 300000, popcount 300000,
    call-same 300000, fadd-chain 300000, fadd-free 300000, fmul-chain 300000, div-chain 100000, div-free 100000,
    fdiv-chain 100000, fdiv-free 100000, root 100000, sine 100000, branch-always 200000, branch-half 200000,
    branch-tenth 200000, branch-period 200000, call-random 200000, chase 1000 20000 100000 4000000,
    gather 1000 20000 100000 4000000, stride 1000 30000 2000000, store 1000 30000 2000000, histogram 1000 500000,
    sum 1000 500000, clear 256 4096 65536 4194304, copy 256 4096 65536 4194304, move 256 4096 65536 4194304,
    compare 256 65536, length 256 65536, recursion 24, grow 4000000, allocate 1000
    """
)
C = _listed(
    """
    sort-library 2000 50000, sort-library-sorted 50000, sort-shell 2000 50000, sort-heap 2000 60000,
    sort-radix 2000 400000, search-binary 1000 2000000, search-table 2000 400000, search-tree 2000 40000, trees 8 14,
    hash-fnv 1000000, hash-crc-bits 100000, hash-adler 500000, hash-sip 1000000, zlib-crc 2000000, zlib-1 100000,
    zlib-6 30000 200000, zlib-inflate 300000, bzip2 50000, lzma 30000, lz 300000, huffman 300000, text-words 500000,
    text-lines 1000000, text-find 1000000, text-edit 100000, base64 500000, parse-library 10000, parse-own 100000,
    print 5000, matrix-rows 60 200, matrix-inner 60 200, transpose 200 1500, blur 200 600, floyd 120, nbody 3000,
    mandelbrot 150, fft 128, sieve 30000 2000000, life 400, queens 9, fannkuch 8, vm 100000, graph 5000 400000,
    knapsack 20000, bignum 1500, sqlite-insert 2000, sqlite-scan 5000, sqlite-index 5000, sqlite-group 5000,
    sqlite-join 5000
    """
)
CPP = _listed(
    """
    sort 2000 200000, sort-stable 100000, sort-strings 10000, map 1000 50000, map-hashed 2000 200000, map-words 20000,
    set 10000, join 30000, stream-out 10000, stream-in 30000, split 30000, regex 5000, virtual 2000 300000,
    heap 50000, ring 300000, push 500000, shared 50000, records 10000
    """
)
RUST = _listed(
    """
    sort 2000 200000, sort-unstable 2000 200000, sort-keys 10000, map-hashed 100000, map-words 10000,
    map-ordered 2000 50000, set 2000 200000, words 20000, letters 20000, upper 30000, replace 20000, parse 10000,
    tokens 20000, print 10000, iterate 500000, matrix 20000, edit 10000, sieve 3000 200000, queue 300000,
    tree 2000 30000, power 5000, dynamic 2000 200000
    """
)
# Of pyperformance: loops, and options that make the work shorter.
PYTHON = _listed(
    """
    base64 20
    chaos 1 --width=64 --height=64 --iterations=500
    comprehensions 100
    deepcopy 10
    deltablue 1
    float 1 --points=5000
    gc_collect 1
    hexiom 1
    json_dumps 1
    json_loads 10
    logging 50
    nbody 1 --iterations=1000
    pickle 5 pickle
    pidigits 1 --digits=500
    raytrace 1 --width=20 --height=20
    regex_dna 1 --fasta-length=5000
    regex_effbot 1
    regex_v8 1
    sqlite_synth 50
    telco 1
    typing_runtime_protocols 20
    unpack_sequence 50
    pathlib 1
    """
)
OTHERS = {"pickle": ("unpickle", "pickle_dict", "pickle_list")}  # further benchmarks of a script
SIZES = (*(digit * 10**power for power in range(3, 7) for digit in (1, 2, 5)), 10**7)


class Case(NamedTuple):
    """A program to measure: its place among others, its command, without the number of passes, and what is counted of it."""

    family: str
    variant: str
    build: str
    kind: str
    before: tuple[str, ...]
    after: tuple[str, ...] = ()
    counted: tuple[str, ...] = ("--toggle", "work")
    units: int = 1

    @property
    def name(self) -> str:
        """The name of its point."""
        return f"{self.family}/{self.variant}" + (f"@{self.build}" if self.build != "default" else "")

    def command(self, passes: int) -> list[str]:
        """Return the command that runs so many passes."""
        return [*self.before, str(passes), *self.after]


class Build(NamedTuple):
    """A file of programs, what compiles it, and the sizes of its programs."""

    name: str
    kind: str
    command: str
    programs: dict[str, list[str]]
    prefix: str = ""
    levels: tuple[str, ...] = ("1", "3")


BUILDS = (
    Build("micro.c", "micro", "cc -g -O{level} {source} -o {program} -lm", MICRO, levels=("2",)),
    Build("programs.c", "real", "cc -g -O{level} {source} -o {program} -lm -lz -lbz2 -llzma -lsqlite3", C),
    Build("programs.cpp", "real", "c++ -g -O{level} {source} -o {program}", CPP, "cpp-"),
    Build("programs.rs", "real", "rustc -g -C opt-level={level} {source} -o {program}", RUST, "rs-"),
)


def compiled(command: str, source: Path, program: Path, level: str) -> bool:
    """Compile a program unless it is there; say so where it cannot be."""
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return True
    words = [word.format(source=source, program=program, level=level) for word in command.split()]
    if shutil.which(words[0]) is None:
        print(f"{source.name} is left out: there is no {words[0]} here")
        return False
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        print(f"{source.name} is left out at -O{level}: {done.stderr.strip().splitlines()[-1]}")
    return done.returncode == 0


def native(work: Path) -> Iterator[Case]:
    """Yield the sweep, the small loops and the programs in C, C++ and Rust, each compiled."""
    sweep = work / "sweep"
    if compiled("cc -g -O{level} {source} -o {program}", SWEEP, sweep, "2"):
        for order in ("linear", "random"):
            for size in SIZES:
                units = max(10**6, size) if order == "linear" else 10**6
                name = f"{'lin' if order == 'linear' else 'rnd'}read-{size}"
                yield Case("sweep", name, "default", "sweep", (str(sweep), order, str(size)), units=units)
    for build in BUILDS:
        for level in build.levels:
            program = work / f"{build.name.replace('.', '-')}-O{level}"
            if compiled(build.command, SOURCES / build.name, program, level):
                kept = f"O{level}" if build.kind == "real" else "default"
                for name, sizes in build.programs.items():
                    for size in sizes:
                        family, before = build.prefix + name.partition("-")[0], (str(program), name, size)
                        yield Case(family, f"{name}-{size}", kept, build.kind, before)


def pythons(work: Path, interpreters: Sequence[str]) -> Iterator[Case]:
    """Yield pyperformance's programs under each of these Pythons."""
    folder = work / "pyperformance"
    if not folder.exists():
        options = "--quiet", "--no-deps", "--disable-pip-version-check", "--target", str(folder)
        if subprocess.run([interpreters[0], "-m", "pip", "install", *options, PYPERFORMANCE], check=False).returncode:
            print("programs of pyperformance are left out: pip did not get it")
            return
    for python in interpreters:
        ask = "import sys; print('%d.%d' % sys.version_info[:2])"
        version = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
        for script, words in PYTHON.items():
            path = folder / "pyperformance" / "data-files" / "benchmarks" / f"bm_{script}" / "run_benchmark.py"
            loops, *shorter = words
            for other in ("", *OTHERS.get(script, ())):
                after = loops, str(path), *((other,) if other else shorter)
                before = python, str(ONE_PASS)
                yield Case(f"bm-{script}", other or script, f"py{version}", "python", before, after, ("--regions",))
