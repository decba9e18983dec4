"""The things the noise hunter changes, one at a time: what an axis is, and which executions try it.

Knows targets, not results; what comes of the executions is judged in `verify`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.hermetic.clock import Clock
from cachegrind_bench.hermetic.environment import layout
from cachegrind_bench.hermetic.fake_proc import DIRECTORIES, LIBRARIES, LOCALES, USERS
from cachegrind_bench.hermetic.launch import Output
from cachegrind_bench.measure.disturbances import busy_cpus, deep_directory
from cachegrind_bench.measure.plan import target_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import ExitStack

    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.valgrind.runner import Target

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


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to change. `pinned` if the seal keeps it the same in every `run`, so that counts may depend on it.

    `part` is the part of the seal without which the axis cannot be tried; `common` is set where nearly every program's
    counts depend on it.
    """

    key: str
    title: str
    change: str
    advice: str
    pinned: bool = False
    part: str | None = None
    common: bool = False


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The executions that try an axis, and what to compare them with.

    That is the plain execution; or `reference`, and with `unless_plain` only where they differ from the plain one.
    """

    targets: tuple[Target, ...]
    reference: Target | None = None
    unless_plain: bool = False


AXES: tuple[Axis, ...] = (
    Axis(
        key=REPEAT,
        title="repeat",
        change="nothing, measured twice",
        advice="look for threads that race, process ids, the network, and files that change between runs (--prepare resets them)",
    ),
    Axis(
        key="environment",
        title="environment size",
        change=f"{_CI_VARIABLES} variables more, as a CI service sets",
        advice="give the variables it reads a fixed value: --env NAME=VALUE",
    ),
    Axis(
        key="layout",
        title="memory layout",
        change=f"stack {layout(_LAYOUT).stack} bytes lower, heap and libraries {layout(_LAYOUT).pages} pages higher",
        advice="every run has the same layout; --layouts shows what a change amounts to in any layout",
        pinned=True,
        common=True,
    ),
    Axis(
        key=LIBRARIES,
        title="installed libraries",
        change="the loader's list of libraries one page longer, as a package more may make it",
        advice="every run sees a list of the same size, which moves what is mapped after it; --layouts shows how much that matters",
        pinned=True,
        part="files",
        common=True,
    ),
    Axis(
        key=LOCALES,
        title="installed locales",
        change="the archive of locales one page longer, as a language more may make it",
        advice="every run sees an archive of the same size, which moves what is mapped after it; --layouts shows how much that matters",
        pinned=True,
        part="files",
        common=True,
    ),
    Axis(
        key=USERS,
        title="users",
        change="40 users and groups more, before one's own",
        advice="every run sees root and its own user first; numbers instead of names need no list",
        pinned=True,
        part="files",
    ),
    Axis(
        key=DIRECTORIES,
        title="order of directories",
        change="their entries listed backwards, as another file system may",
        advice="every run sees them in the order of their names; a list that is sorted has that order everywhere",
        pinned=True,
        part="files",
    ),
    Axis(
        key=CWD,
        title="working directory",
        change="two levels deeper",
        advice="always measure from the same path, or keep the current directory's name out of the work",
    ),
    Axis(
        key="place",
        title="place",
        change="the project seen where it is, not at its constant path",
        advice="every run sees it at a constant path; --keep-place lets the program see the real one",
        pinned=True,
        part="place",
        common=True,
    ),
    Axis(
        key="load",
        title="CPU load",
        change="busy loops on all CPUs beside it",
        advice="something in it waits or races: give it one thread, and --pin-clock against timeouts",
    ),
    Axis(
        key="cpu",
        title="which CPU",
        change="another CPU",
        advice="it asks for the CPU it runs on; keep that out of the work",
        part="cpu",
    ),
    Axis(
        key="scheduling",
        title="scheduling",
        change="threads that take turns as the kernel likes",
        advice="every run lets a thread run until it waits; less depends on it with one thread",
        pinned=True,
        part="scheduling",
    ),
    Axis(
        key="aslr",
        title="ASLR",
        change="address randomisation left on",
        advice="it computes with addresses (hashes of pointers, for one); the seal turns randomisation off",
        pinned=True,
        part="aslr",
    ),
    Axis(
        key=RANDOM,
        title="random stream",
        change="other random bytes",
        advice="the seal gives the same random bytes to every run; a fixed seed in the program holds everywhere",
        pinned=True,
        part="randomness",
    ),
    Axis(
        key=HASH_SEED,
        title="hash seed",
        change="PYTHONHASHSEED and PERL_HASH_SEED 1 instead of 0",
        advice="the seal sets both to 0; less depends on them where sets are sorted before they are walked",
        pinned=True,
    ),
    Axis(
        key=CLOCK,
        title="clock",
        change="two pinned clocks: another day, another pace",
        advice="--pin-clock answers clock readings with a fixed clock; or keep the time out of the work",
        part="randomness",
    ),
    Axis(
        key="stdout",
        title="kind of stdout",
        change="a file, /dev/null and a terminal instead of a pipe",
        advice="the seal always uses a pipe",
        pinned=True,
        common=True,
    ),
)


def prepare(axis: Axis, plan: Plan, target: Target, stack: ExitStack) -> Trial | str:
    """Return the executions that try this axis on the plain `target`, or why it cannot be tried.

    What is set up for them lasts as long as `stack`.
    """
    return _TRIALS[axis.key](plan, target, stack)


def _environment(plan: Plan, target: Target, stack: ExitStack) -> Trial:
    del stack
    noise = {f"GITHUB_CG_BENCH_{number:02}": "verify/" * (number + 1) for number in range(_CI_VARIABLES)}
    # Through all of what makes a target out of the caller's environment, as another CI run would.
    varied = target_of(replace(plan, environ={"CI": "true", **noise, **plan.environ}))
    return Trial(targets=(replace(target, variables=varied.variables),))


def _layout(plan: Plan, target: Target, stack: ExitStack) -> Trial:
    del plan, stack
    return Trial(targets=(replace(target, layout=_LAYOUT),))


def _elsewhere(what: str) -> Callable[[Plan, Target, ExitStack], Trial]:
    def trial(plan: Plan, target: Target, stack: ExitStack) -> Trial:
        del plan, stack
        return Trial(targets=(replace(target, elsewhere=what),))

    return trial


def _cwd(plan: Plan, target: Target, stack: ExitStack) -> Trial | str:
    mirrors = deep_directory(plan.cwd, stack)
    if isinstance(mirrors, str):
        return mirrors
    shallow, deep = mirrors
    # A mirror is made of links, which some programs follow at a cost: then mirror is compared with mirror.
    return Trial(
        targets=(replace(target, cwd=str(deep)),), reference=replace(target, cwd=str(shallow)), unless_plain=True
    )


def _place(plan: Plan, target: Target, stack: ExitStack) -> Trial | str:
    del plan, stack
    if target.keep_place:
        return "it sees its project where it is, anyway"
    return Trial(targets=(replace(target, keep_place="verify tries it"),))


def _scheduling(plan: Plan, target: Target, stack: ExitStack) -> Trial | str:
    del plan, stack
    if not target.pin_scheduling:
        return "it is one thread, or several processes, of which nobody chooses who runs next"
    return Trial(targets=(replace(target, pin_scheduling=False),))


def _load(plan: Plan, target: Target, stack: ExitStack) -> Trial:
    del plan
    stack.enter_context(busy_cpus())
    return Trial(targets=(target,))


def _cpu(plan: Plan, target: Target, stack: ExitStack) -> Trial | str:
    del plan, stack
    others = sorted(os.sched_getaffinity(0) - {target.cpu})
    if not others:
        return "only one CPU may be used here"
    return Trial(targets=(replace(target, cpu=others[0]),))


def _aslr(plan: Plan, target: Target, stack: ExitStack) -> Trial:
    del plan, stack
    return Trial(targets=(replace(target, aslr_off=False),))


def _random(plan: Plan, target: Target, stack: ExitStack) -> Trial:
    del plan, stack
    return Trial(targets=(replace(target, seed=b"cg-bench verify"),))


def _hash_seed(plan: Plan, target: Target, stack: ExitStack) -> Trial:
    del plan, stack
    return Trial(targets=(replace(target, variables={**target.variables, **dict.fromkeys(_SEEDS, "1")}),))


def _clock(plan: Plan, target: Target, stack: ExitStack) -> Trial:
    del plan, stack
    second = replace(target, clock=SECOND_CLOCK)
    reference = replace(target, clock=FIRST_CLOCK) if target.clock is None else None
    return Trial(targets=(second,), reference=reference)


def _stdout(plan: Plan, target: Target, stack: ExitStack) -> Trial:
    del plan, stack
    kinds = (Output.FILE, Output.NULL, Output.TERMINAL)
    return Trial(targets=tuple(replace(target, output=kind) for kind in kinds))


_TRIALS: Mapping[str, Callable[[Plan, Target, ExitStack], Trial | str]] = {
    "environment": _environment,
    "layout": _layout,
    **{what: _elsewhere(what) for what in (LIBRARIES, LOCALES, USERS, DIRECTORIES)},
    CWD: _cwd,
    "place": _place,
    "load": _load,
    "cpu": _cpu,
    "scheduling": _scheduling,
    "aslr": _aslr,
    RANDOM: _random,
    HASH_SEED: _hash_seed,
    CLOCK: _clock,
    "stdout": _stdout,
}
