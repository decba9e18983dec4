"""The things the noise hunter changes, one at a time: what an axis is, and which executions try it.

Knows executions, not results; what comes of the executions is judged in `verify`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.environment import layout
from cachegrind_bench.hermetic.execution import Clock, Execution, Output
from cachegrind_bench.hermetic.fake_proc import DIRECTORIES, LIBRARIES, LOCALES, USERS
from cachegrind_bench.hermetic.scratch import scratch
from cachegrind_bench.measure.plan import Plan, execution_of
from cachegrind_bench.measure.session import SCRATCH_BASE

REPEAT = "repeat"
CLOCK = "clock"
RANDOM = "random"
HASH_SEED = "hash-seed"
CWD = "cwd"

# Two clocks that differ in date, weekday, hour and fractions of a second, and in how fast they go. Both in one month,
# as a C library's calendar costs a few instructions more in some months: no finding about the program.
FIRST_CLOCK = Clock(1_773_135_667_123_456_789, 1_000_000)  # Tuesday 2026-03-10 09:41:07
SECOND_CLOCK = Clock(1_773_421_558_654_321_987, 1_730_001)  # Friday 2026-03-13 17:05:58

_CI_VARIABLES = 40
_LAYOUT = 1
_SEEDS = ("PYTHONHASHSEED", "PERL_HASH_SEED")


class Axis(msgspec.Struct, frozen=True):
    """One thing to change. `pinned` if the seal keeps it the same in every `run`, so that counts may depend on it.

    `part` is the part of the seal without which the axis cannot be tried; `common` is set where nearly every program's
    counts depend on it. `fields` has the fields of an execution that it changes, where no more is needed.
    """

    key: str
    title: str
    change: str
    advice: str
    pinned: bool = False
    part: str | None = None
    common: bool = False
    fields: Mapping[str, Any] = {}


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The executions that try an axis, and what to compare them with.

    That is the plain execution; or `reference`, and with `unless_plain` only where they differ from the plain one.
    """

    executions: tuple[Execution, ...]
    reference: Execution | None = None
    unless_plain: bool = False


# fmt: off
AXES: tuple[Axis, ...] = (
    Axis(REPEAT, "repeat", "nothing changed, measured twice",
         "look for threads that race, process ids, the network, and files that change between runs (--prepare resets them)"),
    Axis("environment", "environment size", f"{_CI_VARIABLES} more variables, as a CI service sets",
         "give the variables it reads a fixed value: --env NAME=VALUE"),
    Axis("layout", "memory layout", f"stack {layout(_LAYOUT).stack} bytes lower, heap and libraries {layout(_LAYOUT).pages} pages higher",
         "every run has the same layout; --layouts shows what a change amounts to in any layout", pinned=True,
         common=True, fields={"layout": _LAYOUT}),
    Axis(LIBRARIES, "installed libraries", "the loader's list of libraries one page longer, as after installing a package",
         "every run sees a list of the same size, which moves what is mapped after it; --layouts shows how much that matters",
         pinned=True, part="files", common=True, fields={"elsewhere": LIBRARIES}),
    Axis(LOCALES, "installed locales", "the archive of locales one page longer, as after adding a language",
         "every run sees an archive of the same size, which moves what is mapped after it; --layouts shows how much that matters",
         pinned=True, part="files", common=True, fields={"elsewhere": LOCALES}),
    Axis(USERS, "users", "40 more users and groups, before one's own",
         "every run sees root and its own user first; numbers instead of names need no list", pinned=True, part="files",
         fields={"elsewhere": USERS}),
    Axis(DIRECTORIES, "order of directories", "their entries listed backwards, as another file system may",
         "every run sees them in the order of their names; a list that is sorted has that order everywhere",
         pinned=True, part="files", fields={"elsewhere": DIRECTORIES}),
    Axis(CWD, "working directory", "two levels deeper",
         "always measure from the same path, or keep the current directory's name out of the work"),
    Axis("place", "place", "the project at its real path, not at the constant one",
         "every run sees it at a constant path; --keep-place lets the program see the real one", pinned=True,
         part="place", common=True, fields={"keep_place": "verify tries it"}),
    Axis("load", "CPU load", "busy loops on all CPUs at the same time",
         "something in it waits or races: give it one thread, and --pin-clock against timeouts"),
    Axis("cpu", "which CPU", "another CPU",
         "it asks which CPU it runs on; keep that out of the work", part="cpu"),
    Axis("scheduling", "scheduling", "threads that take turns as the kernel decides",
         "every run lets a thread run until it waits; counts depend on it less with one thread", pinned=True,
         part="scheduling", fields={"pin_scheduling": False}),
    Axis("aslr", "ASLR", "address randomisation left on",
         "it computes with addresses (hashes of pointers, for one); the seal turns randomisation off", pinned=True,
         part="aslr", fields={"aslr_off": False}),
    Axis(RANDOM, "random stream", "other random bytes",
         "the seal gives the same random bytes to every run; a fixed seed in the program holds everywhere", pinned=True,
         part="randomness", fields={"seed": b"cg-bench verify"}),
    Axis(HASH_SEED, "hash seed", "PYTHONHASHSEED and PERL_HASH_SEED 1 instead of 0",
         "the seal sets both to 0; sort sets before iterating over them to depend on them less", pinned=True),
    Axis(CLOCK, "clock", "two pinned clocks: another day, another pace",
         "--pin-clock answers clock readings with a fixed clock; or keep the time out of the work", part="randomness"),
    Axis("stdout", "kind of stdout", "a file, /dev/null and a terminal instead of a pipe",
         "the seal always uses a pipe", pinned=True, common=True),
)
# fmt: on


def prepare(axis: Axis, plan: Plan, plain: Execution, stack: ExitStack) -> Trial | str:  # noqa: PLR0911 - a case for each axis
    """Return the executions that try this axis on the `plain` one, or why it cannot be tried.

    What is set up for them lasts as long as `stack`.
    """
    match axis.key:
        case "place" if plain.keep_place:
            return "it sees its project at its real path anyway"
        case "scheduling" if not plain.pin_scheduling:
            return "it is one thread, or several processes, and nothing chooses which of them runs next"
        case "environment":
            noise = {f"GITHUB_CG_BENCH_{number:02}": "verify/" * (number + 1) for number in range(_CI_VARIABLES)}
            # Through all of what makes an execution out of the caller's environment, as another CI run would.
            varied = execution_of(replace(plan, environ={"CI": "true", **noise, **plan.environ}))
            return Trial(executions=(plain._replace(variables=varied.variables),))
        case "load":
            stack.enter_context(busy_cpus())
            return Trial(executions=(plain,))
        case "cpu":
            others = sorted(os.sched_getaffinity(0) - {plain.cpu})
            return Trial(executions=(plain._replace(cpu=others[0]),)) if others else "only one CPU may be used here"
        case "hash-seed":
            return Trial(executions=(plain._replace(variables={**plain.variables, **dict.fromkeys(_SEEDS, "1")}),))
        case "cwd":
            mirrors = deep_directory(plan.cwd, stack)
            if isinstance(mirrors, str):
                return mirrors
            shallow, deep = (plain._replace(cwd=str(mirror)) for mirror in mirrors)
            # A mirror is made of links, which some programs follow at a cost: then mirror is compared with mirror.
            return Trial(executions=(deep,), reference=shallow, unless_plain=True)
        case "clock":
            reference = plain._replace(clock=FIRST_CLOCK) if plain.clock is None else None
            return Trial(executions=(plain._replace(clock=SECOND_CLOCK),), reference=reference)
        case "stdout":
            kinds = (Output.FILE, Output.NULL, Output.TERMINAL)
            return Trial(executions=tuple(plain._replace(output=kind) for kind in kinds))
        case _:
            return Trial(executions=(plain._replace(**axis.fields),))


_MOST_LOOPS = 256
_MOST_ENTRIES = 5000
# Ends itself when it gets another parent, so that killing us with -9 leaves no load behind.
_BUSY = """
import os, sys
parent = int(sys.argv[1])
try:
    os.sched_setaffinity(0, {int(sys.argv[2])})
except OSError:
    pass
while os.getppid() == parent:
    sum(range(10000))
"""


@contextlib.contextmanager
def busy_cpus() -> Generator[None]:
    """Keep every CPU we may use busy."""
    with contextlib.ExitStack() as stack:
        for cpu in sorted(os.sched_getaffinity(0))[:_MOST_LOOPS]:
            argv = [sys.executable, "-I", "-S", "-c", _BUSY, str(os.getpid()), str(cpu)]
            stack.enter_context(process.start(argv, env=None, stdin_pipe=False))
        yield


def deep_directory(cwd: Path, stack: ExitStack) -> tuple[Path, Path] | str:
    """Return two directories of links to all that is in `cwd`, one two levels deeper than the other; or why they could not be made.

    Relative paths downwards work in them, those upwards (`../data`) do not. They go when `stack` is left, and should we
    be killed, with the next scratch directory of that number.
    """
    try:
        with os.scandir(cwd) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError as error:
        return f"the working directory cannot be listed: {error.strerror}"
    if len(names) > _MOST_ENTRIES:
        return f"the working directory has {len(names)} entries, too many to mirror"
    try:
        mine = stack.enter_context(scratch(SCRATCH_BASE))
        mine.renew()
        base = mine.path
        shallow, deep = base / "cwd", base / "two" / "levels" / "cwd"
        for folder in (shallow, deep):
            folder.mkdir(parents=True)
            for name in names:
                (folder / name).symlink_to(cwd / name)
    except (OSError, MeasurementError) as error:
        return f"no mirror of the working directory can be made: {error}"
    return shallow, deep
