"""Valgrind's arguments: cache geometry, and the two tools' options for one run. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from cachegrind_bench.errors import UsageError
from cachegrind_bench.hermetic.layouts import PAGE

if TYPE_CHECKING:
    from pathlib import Path

# Where Valgrind begins to place what the program maps, on 64-bit Linux (aspacemgr-linux.c); a program that can lie
# anywhere comes before, at a place of its own.
_LOWEST = 0x0400_0000
_SMALLEST_LINE = 16  # Valgrind's MIN_LINE_SIZE
_LARGEST_SIZE = (1 << 31) - 1  # Valgrind keeps it in an int, and refuses more


class Tool(StrEnum):
    """The Valgrind tools that count with the same cache model."""

    CACHEGRIND = "cachegrind"
    CALLGRIND = "callgrind"


@dataclass(frozen=True, slots=True)
class Cache:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """The three simulated caches; never taken from the host, whose caches differ from runner to runner."""

    I1: Cache = Cache(32768, 8, 64)
    D1: Cache = Cache(32768, 8, 64)
    LL: Cache = Cache(8388608, 16, 64)

    def __str__(self) -> str:
        return f"I1={self.I1} D1={self.D1} LL={self.LL}"


# Every Valgrind since 3.16 takes these. The order is fixed: it is the same on every run.
_COMMON = (
    "--command-line-only=yes",  # no .valgrindrc, no VALGRIND_OPTS
    "--vgdb=no",  # no pipes in the file system
    "--demangle=no",  # names are stored raw
    "--fair-sched=try",  # threads take turns in a fixed order
    "--trace-children=yes",
)

# Callgrind books the stubs of shared libraries to their callers, and recursive calls to functions of their own, unless
# it is told to do as Cachegrind does.
_LIKE_CACHEGRIND = ("--skip-plt=no", "--separate-recs=1")

# Where a process image ends or splits. Callgrind writes out what it has counted on entering these functions and
# starts again from zero, so that a child does not inherit its parent's counts and an exec loses none. `fork` is the
# older name; since glibc 2.34 it ends in `_Fork`, a few instructions before the system call.
FORKS = ("_Fork", "vfork", "__vfork")
THREADS = ("clone", "__clone")  # of processes as well: posix_spawn
OUTER_FORK = "fork"
EXECS = ("execve",)


def arguments(tool: Tool, geometry: Geometry, out: Path, *, guest_chase_off: bool, pages: int = 0) -> tuple[str, ...]:
    """Return Valgrind's options for one run that writes `out.PID` and `log.PID` into this directory.

    `pages` is how much higher than usual the program's heap and libraries are to lie.
    """
    folder = str(out).replace("%", "%%")
    common = (
        f"--tool={tool.value}",
        *_COMMON,
        *(("--vex-guest-chase=no",) if guest_chase_off else ()),
        *((f"--aspace-minaddr={_LOWEST + pages * PAGE:#x}",) if pages else ()),
        "--cache-sim=yes",
        f"--I1={geometry.I1}",
        f"--D1={geometry.D1}",
        f"--LL={geometry.LL}",
        f"--log-file={folder}/log.%p",
        f"--{tool.value}-out-file={folder}/out.%p",
    )
    if tool is Tool.CACHEGRIND:
        return common
    return (*common, *_LIKE_CACHEGRIND, *(f"--dump-before={name}" for name in (OUTER_FORK, *FORKS, *THREADS, *EXECS)))
