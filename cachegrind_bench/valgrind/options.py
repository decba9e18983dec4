"""Valgrind's arguments: cache geometry, and the two tools' options for one run. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from string import ascii_letters, digits
from typing import Any

import msgspec
from msgspec.structs import replace

from cachegrind_bench.errors import UsageError
from cachegrind_bench.hermetic.environment import PAGE
from cachegrind_bench.model.metrics import DEFAULT_MODEL, IR_MODEL, CostModel
from cachegrind_bench.model.result import NO_CACHES

# Where Valgrind begins to place what the program maps, on 64-bit Linux (aspacemgr-linux.c); a program that can lie
# anywhere comes before, at a place of its own.
_LOWEST = 0x0400_0000
_SMALLEST_LINE = 16  # Valgrind's MIN_LINE_SIZE
_LARGEST_SIZE = (1 << 31) - 1  # Valgrind keeps it in an int, and refuses more


class Tool(StrEnum):
    """The Valgrind tools that count with the same cache model."""

    CACHEGRIND = "cachegrind"
    CALLGRIND = "callgrind"


class Cache(msgspec.Struct, frozen=True):
    """One simulated cache: bytes, ways, bytes of a line."""

    size: int
    associativity: int
    line_size: int

    def __str__(self) -> str:
        return f"{self.size},{self.associativity},{self.line_size}"

    @classmethod
    def parse(cls, text: str, option: str) -> Cache:
        """Read `SIZE,ASSOCIATIVITY,LINE_SIZE`; UsageError unless Valgrind can simulate it."""
        parts = [part.strip() for part in text.split(",")]
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
            raise UsageError(
                f"{option} {text!r} is not a cache", hint=f"write SIZE,ASSOCIATIVITY,LINE_SIZE: {option} 32768,8,64"
            )
        size, ways, line = (int(part) for part in parts)
        problem = _problem(size, ways, line)
        if problem:
            raise UsageError(f"{option} {text}: {problem}", hint=f"a cache that works: {option} 32768,8,64")
        return cls(size, ways, line)


def _problem(size: int, ways: int, line: int) -> str | None:
    """Return why Valgrind would refuse this cache (cachegrind/cg-arch.c, check_cache), None if it takes it."""
    if not (size > 0 and ways > 0):
        return "size and associativity must be positive"
    if size > _LARGEST_SIZE:
        return f"the size must be below {_LARGEST_SIZE + 1} bytes"
    if line < _SMALLEST_LINE or line & (line - 1):
        return f"the line size must be a power of two and at least {_SMALLEST_LINE}"
    if size <= line:
        return "the size must be larger than a line"
    if ways * line > size:
        return "size must be at least associativity times line size"
    sets = size // (ways * line)
    if size % (ways * line) or sets & (sets - 1):
        return "size / (associativity x line size), the number of sets, must be a power of two"
    return None


class Geometry(msgspec.Struct, frozen=True, kw_only=True):
    """The three simulated caches; never taken from the host, whose caches differ from runner to runner.

    With `branches` a branch predictor is simulated, too, for an estimate of the time; the other counts remain as they are.
    If not `simulated`, instructions are counted and nothing else, in about half the time.
    """

    I1: Cache = Cache(32768, 8, 64)
    D1: Cache = Cache(32768, 8, 64)
    LL: Cache = Cache(8388608, 16, 64)
    branches: bool = False
    simulated: bool = True

    @classmethod
    def chosen(cls, options: Mapping[str, Any], prefix: str) -> Geometry:
        """Return what the options i1, d1, ll, model and estimate ask for; errors call them by this prefix. UsageError for what cannot be."""
        caches = {name: text for name in ("I1", "D1", "LL") if (text := options.get(name.lower())) is not None}
        parsed = {name: Cache.parse(str(text), f"{prefix}{name}") for name, text in caches.items()}
        branches, model = bool(options.get("estimate")), CostModel.parse(options.get("model") or DEFAULT_MODEL.name)
        return replace(cls(branches=branches, simulated=branches or model != IR_MODEL), **parsed)

    def __str__(self) -> str:
        return NO_CACHES if not self.simulated else f"I1={self.I1} D1={self.D1} LL={self.LL}"


class Scope(StrEnum):
    """Which part of an execution is counted. All but the whole of it need Callgrind."""

    PROCESS = "process"  # everything, from the first instruction to the last
    TOGGLE = "toggle"  # what is inside of named functions
    REGIONS = "regions"  # what is between client requests that toggle the collection; see `region`
    CALLS = "calls"  # what is between client requests that zero and write out the counts
    PARTS = "parts"  # what is in some of the parts that Callgrind writes, which the caller chooses


# Where a process image ends or splits. Callgrind writes out what it has counted on entering these functions and
# starts again from zero, so that a child does not inherit its parent's counts and an exec loses none. `fork` is the
# older name; since glibc 2.34 it ends in `_Fork`, a few instructions before the system call.
FORKS = ("_Fork", "vfork", "__vfork")
THREADS = ("clone", "__clone")  # of processes as well: posix_spawn
OUTER_FORK = "fork"
EXECS = ("execve",)
_AT_PROCESSES = tuple(f"--dump-before={name}" for name in (OUTER_FORK, *FORKS, *THREADS, *EXECS))


class Collect(msgspec.Struct, frozen=True, kw_only=True):
    """What to count: `toggles` are names of functions, with * and ?, for Scope.TOGGLE; `region` is the only one wanted.

    `dumps` are the options by which Callgrind writes out what it has counted so far. `words` are what the program gets before and
    after its own arguments, with {} for the folder of out files. `python_depth` asks for the paths of Python calls (see `python_contexts`), with up to that many callers; `stubs` are the
    names of stubs of libraries that are not to count among the callers, `kept` those of native functions that are. `by_instruction` keeps the counts of instructions apart.
    `lines` keeps the counts of source lines and `calls`, under Callgrind, which function called which: both concern reading only.
    """

    scope: Scope = Scope.PROCESS
    toggles: tuple[str, ...] = ()
    region: str | None = None
    dumps: tuple[str, ...] = _AT_PROCESSES
    words: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    python_depth: int | None = None
    stubs: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    by_instruction: bool = False
    lines: bool = False
    calls: bool = False

    @classmethod
    def inside(cls, *, region: str | None = None, toggles: Sequence[str] = ()) -> Collect:
        """Return what counts only this region, or only what is inside of these functions, else everything."""
        if toggles:
            return cls(scope=Scope.TOGGLE, toggles=tuple(toggles))
        return WHOLE if region is None else cls(scope=Scope.REGIONS, region=region)


WHOLE = Collect()

# Every Valgrind since 3.16 takes these. The order is fixed: it is the same on every run.
_COMMON = (
    "--command-line-only=yes",  # no .valgrindrc, no VALGRIND_OPTS
    "--vgdb=no",  # no pipes in the file system
    "--demangle=no",  # names are stored raw
    "--fair-sched=try",  # threads take turns in a fixed order
    "--trace-children=yes",
)

# Callgrind books the stubs of shared libraries to their callers, and recursive calls to functions of their own, unless
# its options make it do as Cachegrind does.
_LIKE_CACHEGRIND = ("--skip-plt=no", "--separate-recs=1")
_SCOPES: Mapping[Scope, tuple[str, ...]] = {
    # Without instrumentation, what comes before the first mark runs about ten times faster.
    Scope.REGIONS: ("--instr-atstart=no", "--collect-atstart=no"),
    Scope.CALLS: ("--instr-atstart=no",),
}
_FIRST_SIGNS = "_" + ascii_letters
_SIGNS = f"{_FIRST_SIGNS}{digits}.@$"


def arguments(
    tool: Tool, geometry: Geometry, out: Path, *, guest_chase_off: bool, pages: int = 0, collect: Collect = WHOLE
) -> tuple[str, ...]:
    """Return Valgrind's options for one run that writes `out.PID` and `log.PID` into this directory.

    `pages` is how much higher than usual the program's heap and libraries are to lie.
    """
    simulated = geometry.simulated and collect.python_depth is None  # paths of calls have Ir alone
    caches = (
        *("--cache-sim=yes", f"--I1={geometry.I1}", f"--D1={geometry.D1}", f"--LL={geometry.LL}"),
        *(("--branch-sim=yes",) if geometry.branches else ()),
    )
    folder = str(out).replace("%", "%%")
    common = (
        f"--tool={tool.value}",
        *_COMMON,
        *(("--vex-guest-chase=no",) if guest_chase_off else ()),
        *((f"--aspace-minaddr={_LOWEST + pages * PAGE:#x}",) if pages else ()),
        *(caches if simulated else ("--cache-sim=no",)),
        f"--log-file={folder}/log.%p",
        f"--{tool.value}-out-file={folder}/out.%p",
    )
    if tool is Tool.CACHEGRIND:
        return common
    return (
        *common,
        *(_LIKE_CACHEGRIND if collect.python_depth is None else python_paths(collect)),
        *collect.dumps,
        *(("--dump-instr=yes",) if collect.by_instruction else ()),
        *_scope(collect),
        *(f"--toggle-collect={name}" for name in collect.toggles),
    )


def _scope(collect: Collect) -> tuple[str, ...]:
    if collect.scope is Scope.REGIONS and collect.python_depth is not None:
        # Who called a function is known only where the caller was called under instrumentation, too.
        return ("--collect-atstart=no",)
    return _SCOPES.get(collect.scope, ())


def is_plain(name: str) -> bool:
    """Return whether a function of this name can be kept among the callers on the paths of Python calls."""
    return name[:1] in {*_FIRST_SIGNS} and {*name} <= {*_SIGNS}


def python_paths(collect: Collect) -> tuple[str, ...]:
    """Return the options by which Callgrind keeps the paths of Python calls apart.

    With `python -X perf` each Python function runs through a trampoline of its own, which is code without a name. All
    functions that have a name are skipped, which books what they cost to the nearest caller that is not: a trampoline.
    So contexts of `--separate-callers` are made of trampolines only, and each has the exact self cost of a path; functions
    that are kept are in these contexts, too.
    """
    return (
        "--skip-plt=no",  # a skipped stub that nobody called yet ends Callgrind
        "--dump-instr=yes",
        "--dump-line=no",
        "--separate-recs=2",
        f"--separate-callers={collect.python_depth}",
        *(f"--fn-skip={stub}" for stub in collect.stubs),
        *(f"--fn-skip={name}" for name in _all_names_but({OUTER_FORK, *FORKS, *THREADS, *EXECS, *collect.kept})),
    )


def _all_names_but(names: Collection[str]) -> tuple[str, ...]:
    """Return patterns for all names of functions but these: Callgrind writes nothing out before one that it skips.

    It knows * and ?, and nothing that excepts; so what may follow each beginning of these names is spelled out.
    """
    beginnings = {name[:length] for name in names for length in range(len(name) + 1)}
    others = [start + sign for start in beginnings for sign in _SIGNS if start or sign in _FIRST_SIGNS]
    exact = [start for start in beginnings if start and start not in names]
    return tuple(sorted([*exact, *(f"{other}*" for other in others if other not in beginnings)]))
