"""Tests the seal by experiment: starts a small program twice, sealed, and looks at what it saw.

What the launcher says it did is one thing; that two programs really read the same random bytes is another.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from typing import Any

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic import environment
from cachegrind_bench.hermetic.execution import SHARED, Execution, Placed
from cachegrind_bench.hermetic.kernel import architecture
from cachegrind_bench.hermetic.launch import PINNED_CLOCK, Outcome, launch
from cachegrind_bench.hermetic.place import RUN, Translation
from cachegrind_bench.hermetic.scratch import Scratch
from cachegrind_bench.measure.seal import PARTS

_PROGRAM = """
import ctypes, os, resource, stat, sys
def device(name):
    with open(name, "rb", buffering=0) as file:
        return file.read(8).hex()
def seconds(number):
    # By a system call: natively a C library reads the clock without one, which Valgrind keeps it from.
    moment = (ctypes.c_long * 2)()
    ctypes.CDLL(None).syscall(ctypes.c_long(number), ctypes.c_long(0), ctypes.byref(moment))
    return moment[0]
print({
    "aslr": bool(int(open("/proc/self/personality").read(), 16) & 0x40000),
    "environment": sorted(os.environ.items()),
    "randomness": os.getrandom(8).hex(),
    "random_devices": (device("/dev/urandom"), device("/dev/random")),
    "cpu": sorted(os.sched_getaffinity(0)),
    "scheduling": os.sched_getscheduler(0) == os.SCHED_FIFO,
    "limits": (resource.getrlimit(resource.RLIMIT_STACK)[0], resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
    "output": stat.S_ISFIFO(os.fstat(1).st_mode),
    "tmpdir": (os.environ["TMPDIR"], os.listdir(os.environ["TMPDIR"])),
    "clock": seconds(int(sys.argv[1])),
})
"""
_TIMEOUT_MS = 30_000


def probe(scratch: Scratch, environ: Mapping[str, str], cpu: int | None) -> dict[str, str]:
    """Return the parts of the seal that do not hold, each with the reason. MeasurementError if nothing can be started."""
    first, second = (_sealed(scratch, environ, cpu) for _ in range(2))
    (seen, outcome), (again, _) = first, second
    reasons = {part: reason for part, reason in outcome.unsealed.items() if part in PARTS}
    if outcome.images is None:
        reasons.setdefault("randomness", "no seccomp")
    if "randomness" in reasons:
        reasons["random_devices"] = reasons["files"] = reasons["clock"] = reasons["randomness"]
    wrong = {
        "aslr": seen["aslr"] is not True,
        # The supervisor numbers it 0, and only where it really is the one CPU.
        "cpu": cpu is not None and (len(seen["cpu"]) > 1 if outcome.images is None else seen["cpu"] != [0]),
        "scheduling": seen["scheduling"] is not True,
        "output": seen["output"] is not True,
        "clock": seen["clock"] != PINNED_CLOCK.epoch_ns // 10**9,
        "tmpdir": bool(seen["tmpdir"][1]),
    }
    for part in seen:
        if wrong.get(part) or seen[part] != again[part]:
            reasons.setdefault(part, "the seal was applied, but a program sees no effect of it")
    if reasons.get("scheduling") == SHARED:  # it has the right to it
        del reasons["scheduling"]
    return reasons


def _sealed(scratch: Scratch, environ: Mapping[str, str], cpu: int | None) -> tuple[dict[str, Any], Outcome]:
    scratch.renew()
    table = architecture()
    argv = (sys.executable, "-I", "-S", "-c", _PROGRAM, str(table.calls["clock_gettime"] if table else -1))
    own = {"TMPDIR": str(scratch.tmp)}
    variables = environment.compose(environ, environment.Request(values={}), own)
    padded = environment.pad(variables, argv, sys.executable)
    places = Translation(((str(scratch.path), RUN),))
    there = environment.pad(environment.translated(variables, places.seen), argv, sys.executable)
    heard = bytearray()
    execution = Execution(
        argv=argv,
        variables=padded,
        cwd="/",
        placed=Placed(argv, there, "/"),
        places=places.pairs,
        cpu=cpu,
        pin_scheduling=True,
        clock=PINNED_CLOCK,
        timeout_ms=_TIMEOUT_MS,
    )
    outcome = launch(execution, scratch, echo=heard.extend)
    text = heard.decode("utf-8", "backslashreplace").strip()
    if outcome.exit_status != 0:
        raise MeasurementError("a small sealed program failed", hint=text[-500:] or None)
    return ast.literal_eval(text.splitlines()[-1]), outcome
