"""The environment block of the measured program: allow-listed, fixed, and padded to a constant size.

The block lies on the program's stack, so its size moves every stack address, and with it the misses; and a C library
walks it on each `getenv`. A memory layout moves it on purpose, and heap and libraries: the work stays the same, the
addresses do not, and with them which data share a set of a cache, or a bucket of a table that is keyed by address. Pure
functions: the caller's environment is handed in.

Mytkowicz, Diwan, Hauswirth, Sweeney: "Producing Wrong Data Without Doing Anything Obviously Wrong!", ASPLOS 2009; Curtsinger
and Berger: "STABILIZER: Statistically Sound Performance Evaluation", ASPLOS 2013.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence

import msgspec

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import printable

PAGE = 4096
LINE = 64  # one cache line: bits 6 to 11 of an address choose the set of the default L1
LAYOUTS = PAGE // LINE  # the different places for the stack, as seen from L1
PAGES = 128  # as many as choose the set of the default LL, in bits 12 to 18

# Odd, so that no two layouts are alike, and near LAYOUTS and PAGES times what spreads the first few widely.
_STACK_STRIDE = 27
_PAGE_STRIDE = 37


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """How far from its usual place something lies: the stack in bytes downwards, heap and libraries in pages upwards."""

    stack: int
    pages: int


def layout(number: int) -> Layout:
    """Return what layout `number` (from 0 to LAYOUTS - 1) means; 0 is the usual one.

    Results are compared layout by layout, so these places are part of the result format: they must never change, nor
    depend on how many layouts are measured.
    """
    if not 0 <= number < LAYOUTS:
        message = f"there is no memory layout {number}"
        raise ValueError(message)
    return Layout(stack=number * _STACK_STRIDE % LAYOUTS * LINE, pages=number * _PAGE_STRIDE % PAGES)


# What programs need to find themselves and their libraries.
PASSED = ("HOME", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "VIRTUAL_ENV")

_ONE_THREAD = (
    "BLIS_NUM_THREADS GOMAXPROCS JULIA_NUM_THREADS MKL_NUM_THREADS NUMEXPR_NUM_THREADS OMP_NUM_THREADS "
    "OPENBLAS_NUM_THREADS POLARS_MAX_THREADS PYTHON_CPU_COUNT RAYON_NUM_THREADS TOKIO_WORKER_THREADS "
    "VECLIB_MAXIMUM_THREADS"
)

# Valgrind counts `rep movsb` and `rep stosb` once for each byte, and glibc copies and clears by them from 2 KiB on: 20 times
# the instructions of a loop over vectors, which it keeps to where both begin at a size that is never reached.
TUNABLES = "GLIBC_TUNABLES"
COPIES = "glibc.cpu.x86_rep_movsb_threshold", "glibc.cpu.x86_rep_stosb_threshold"
_NEVER_BYTES = 1 << 30

FIXED: Mapping[str, str] = {
    **dict.fromkeys(_ONE_THREAD.split(), "1"),
    TUNABLES: ":".join(f"{name}={_NEVER_BYTES}" for name in COPIES),
    "GODEBUG": "asyncpreemptoff=1",  # Go's preemption signals arrive by the wall clock
    "LC_ALL": "C.UTF-8",
    "MKL_CBWR": "COMPATIBLE",  # MKL picks its kernels by the host's real CPU otherwise
    "PERL_HASH_SEED": "0",
    "PERL_PERTURB_KEYS": "0",
    "PYTHONHASHSEED": "0",
    "TZ": "UTC0",  # the form that reads no time zone file
}

# Set by the seal itself on every run; a user's value would unmake it.
RESERVED = ("TMPDIR", "VALGRIND_LIB", "VALGRIND_OPTS")

_VARIABLES = 64
_BLOCK = 16384  # four pages: stays the same however long PATH and the command's own path are
_PAD = "CG_BENCH_PAD"
_HOME_STEP, _PATH_STEP = 256, 2048  # rarely exceeded; a file found through the widened entry stays below PATH_MAX


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for by `--env`: names to pass on, and values to set."""

    passed: tuple[str, ...] = ()
    values: Mapping[str, str]

    @classmethod
    def parse(cls, items: Sequence[str]) -> Request:
        """Read `NAME` and `NAME=VALUE` items; UsageError for what cannot be a variable or belongs to the seal."""
        passed: list[str] = []
        values: dict[str, str] = {}
        for item in items:
            name, equals, value = item.partition("=")
            if not name or "\0" in item:
                raise UsageError(
                    f"--env {item!r} does not name a variable", hint="write --env NAME or --env NAME=VALUE"
                )
            if name in RESERVED or name.startswith(_PAD):
                message = f"--env {name}: this variable belongs to the seal"
                raise UsageError(message, hint="every run gets its own value")
            if equals:
                values[name] = value
            else:
                passed.append(name)
        return cls(passed=tuple(passed), values=values)


def compose(caller: Mapping[str, str], request: Request, own: Mapping[str, str]) -> dict[str, str]:
    """Return the variables the program is to see, not yet padded.

    `caller` is the environment cg-bench was started in, `own` holds the values of this run (TMPDIR and the like).
    A name asked for by `--env` that the caller lacks is left out. HOME and PATH are widened to a constant length,
    unless `--env` gives their value. The user's own tunables of glibc come after ours, so that they win.
    """
    names = (*PASSED, *request.passed)
    chosen = {name: caller[name] for name in names if name in caller}
    if "HOME" in chosen:
        chosen["HOME"] = _widened(chosen["HOME"], _HOME_STEP)
    if "PATH" in chosen:
        before, colon, last = chosen["PATH"].rpartition(":")
        room = len(os.fsencode(before + colon))
        chosen["PATH"] = before + colon + _widened(last, _PATH_STEP, used=room)
    asked = {**chosen, **request.values}
    if asked.get(TUNABLES):
        asked[TUNABLES] = f"{FIXED[TUNABLES]}:{asked[TUNABLES]}"
    return {**FIXED, **asked, **own}


def _widened(path: str, step: int, *, used: int = 0) -> str:
    """Return an absolute path with slashes before it, so that with `used` bytes it is a multiple of `step` long.

    It means the same (POSIX: three or more slashes are as one; hence never just one more). Programs derive dozens of
    strings from HOME and PATH; their lengths decide where the heap puts what comes after, and a constant length took
    differences of up to 5e-4 between two users away.
    """
    if not path.startswith("/"):
        return path
    length = used + len(os.fsencode(path))
    return "/" * (-(length + 2) % step + 2) + path


def translated(variables: Mapping[str, str], translate: Callable[[str], str]) -> dict[str, str]:
    """Return the variables with their values translated; those that were widened are widened again."""
    found: dict[str, str] = {}
    for name, value in variables.items():
        before, last = value.rpartition(":")[::2] if name == "PATH" else ("", value)
        before += ":" if before else ""
        if name in ("HOME", "PATH") and last.startswith("///"):
            before, last = translate(before), translate("/" + last.lstrip("/"))
            used, step = (0, _HOME_STEP) if name == "HOME" else (len(os.fsencode(before)), _PATH_STEP)
            found[name] = before + _widened(last, step, used=used)
        else:
            found[name] = translate(value)
    return found


def held_back(caller: Mapping[str, str], request: Request) -> list[str]:
    """Return the names of the caller's variables that the program does not see, sorted."""
    seen = {*PASSED, *request.passed, *request.values, *FIXED, *RESERVED}
    return sorted(name for name in caller if name not in seen and name != "_")


def pad(
    variables: Mapping[str, str], argv: Sequence[str], executable: str, *, extra: int = 0, shift: int = 0
) -> dict[str, str]:
    """Fill the block up so that strings on the program's stack take a constant number of bytes.

    Counted are the variables, the arguments, the path of the executable, and `extra` bytes that Valgrind adds. Both
    the number of variables and the size grow in whole steps when a command needs more than usual. `shift` is
    added to it: bytes by which the stack lies lower, and nothing else changes.
    """
    count = -(-(len(variables) + 2) // _VARIABLES) * _VARIABLES
    padded = {**variables, **{f"{_PAD}_{index:03}": "" for index in range(count - len(variables) - 1)}, _PAD: ""}
    strings = [f"{name}={value}" for name, value in padded.items()]
    used = sum(len(os.fsencode(text)) + 1 for text in (*strings, *argv, executable)) + extra
    # Whole pages from the constant block upwards: the offset within a page, which is what caches see, stays.
    size = max(_BLOCK, -(-used // PAGE) * PAGE)
    padded[_PAD] = "x" * (size - used + shift)
    return dict(sorted(padded.items()))


def fingerprint_values(request: Request, caller: Mapping[str, str]) -> dict[str, str]:
    """Return a short hash of each value passed on by request: shows a change, reveals no secret."""
    chosen = {name: caller[name] for name in request.passed if name in caller} | dict(request.values)
    return {printable(name): hashlib.sha256(os.fsencode(chosen[name])).hexdigest()[:12] for name in sorted(chosen)}
