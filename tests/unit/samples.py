"""Hand-made values that several tests share: small, odd, and with hostile text in every place that takes text."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from cachegrind_bench.hermetic.execution import Image
from cachegrind_bench.hermetic.launch import Outcome
from cachegrind_bench.model.metrics import DEFAULT_MODEL, EVENTS, Counts, FunctionCost, Profile
from cachegrind_bench.model.result import (
    Benchmark,
    Commit,
    Environment,
    ObjectFile,
    ProcessCost,
    Result,
    Run,
    Score,
    SealPart,
    SealState,
    Status,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# The vector of DESIGN.md §3: L1 1778, LL 10, RAM 53, and a score of 3418.
VECTOR = Counts(Ir=1353, Dr=255, Dw=233, I1mr=51, D1mr=12, D1mw=0, ILmr=50, DLmr=3, DLmw=0)

HOSTILE = "a|b <script>alert(1)</script> @root #1 `x` **b** [l](http://e.vil) www.e.vil $x$ \x1b[31mred\n\u202eback"


def times(counts: Counts, factor: int) -> Counts:
    return Counts.of([value * factor for value in counts.as_tuple()])


def profile_of(**functions: Counts) -> Profile:
    rows = tuple(FunctionCost("main.c", name, counts.as_tuple()) for name, counts in sorted(functions.items()))
    return Profile(events=EVENTS, functions=rows)


def pinned(**others: str) -> dict[str, SealPart]:
    """Return a seal whose parts are pinned but for `others`, which were unavailable for that reason."""
    parts = {name: SealPart(state=SealState.PINNED) for name in ("aslr", "environment", "randomness", "cpu")}
    parts |= {name: SealPart(state=SealState.UNAVAILABLE, why=why) for name, why in others.items()}
    parts["clock"] = SealPart(state=SealState.KEPT, why="the real clock")
    return parts


def benchmark(**changes: Any) -> Benchmark:
    """Return a benchmark that went well, with one run and one function unless told otherwise."""
    counts: Counts | None = changes.get("counts", VECTOR)
    values: dict[str, Any] = {
        "id": "sieve",
        "key": "0123456789ab",
        "key_fields": {"libc": "abc", "tool": "cachegrind"},
        "command": ("./sieve", "100"),
        "exit_status": 0,
        "counts": counts,
        "score": None if counts is None else Score(model=DEFAULT_MODEL.name, value=DEFAULT_MODEL.score(counts)),
        "runs": () if counts is None else (Run(layout=0, counts=counts),),
        "processes": () if counts is None else (ProcessCost(executable="/bin/sieve", counts=counts),),
        "objects": (ObjectFile(path="/bin/sieve", build_id="c0ffee"),),
        "wall_ms": 1234,
        "seal": pinned(),
        "profile": None if counts is None else profile_of(main=counts),
    }
    return Benchmark(**{**values, **changes})


def result(*benchmarks: Benchmark, **changes: Any) -> Result:
    values: dict[str, Any] = {
        "tool_version": "0.1.0",
        "created_at": "2026-01-31T12:00:00Z",
        "commit": Commit(
            sha="0123456789abcdef0123456789abcdef01234567",
            parent=None,
            branch="main",
            dirty=False,
            committed_at="2026-01-30T12:00:00Z",
        ),
        "env": Environment(
            key="ba9876543210",
            fields={"architecture": "x86_64", "valgrind": "3.24.0", "guest_chase": "off"},
            info={"cpu_count": 4, "kernel": "6.1"},
        ),
        "benchmarks": benchmarks or (benchmark(),),
    }
    return Result(**{**values, **changes})


def rich_benchmark() -> Benchmark:
    """Return a benchmark with everything a report can show: processes, noise, warnings, loose parts, hostile names."""
    other, third = times(VECTOR, 100), times(VECTOR, 7)
    whole = VECTOR + other + third
    rows = (
        FunctionCost("/src/|pipe|.c", HOSTILE, VECTOR.as_tuple()),
        FunctionCost("???", "_ZNSt6vectorIiSaIiEE9push_backEOi", other.as_tuple()),
        FunctionCost("src/lib.rs", "_ZN5parse4line17h0123456789abcdefE", third.as_tuple()),
    )
    return benchmark(
        id=f"odd {HOSTILE}",
        command=("./run", "a b", HOSTILE),
        counts=whole,
        runs=(Run(layout=0, counts=whole), Run(layout=0, counts=whole + VECTOR)),
        processes=(
            ProcessCost(executable="/usr/bin/python3.11", counts=other),
            ProcessCost(executable=f"/tmp/{HOSTILE}", counts=VECTOR + third),
        ),
        processes_exact=False,
        warnings=("a process of /bin/x was killed", f"careful: {HOSTILE}"),
        tool="callgrind",
        wall_ms=75_000,
        seal=pinned(randomness="no seccomp", random_devices="no seccomp"),
        profile=Profile(events=EVENTS, functions=rows),
    )


def failed_benchmark(**changes: Any) -> Benchmark:
    return benchmark(
        **{
            "counts": None,
            "status": Status.FAILED,
            "exit_status": 3,
            "error": "the command failed with exit status 3",
            "wall_ms": 10,
            **changes,
        }
    )


def run_without_rights(code: str, *arguments: str) -> str:
    """Run Python code (its imports first, then `begin()`) as a user who is not root, and return what it printed."""
    begin = "import os\ndef begin():\n    if os.geteuid() == 0:\n        os.setgroups([]), os.setgid(65534), os.setuid(65534)\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + code, *arguments],
        env={"PYTHONPATH": os.getcwd(), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def image(pid: int, path: str, **changes: Any) -> Image:
    values: dict[str, Any] = {"argv": [path], "parent": 0, "forked": False, "forks": 0, "replaced": False}
    return Image(pid=pid, path=path, **{**values, **changes})


def outcome(**changes: Any) -> Outcome:
    unsealed: Mapping[str, str] = {}
    values: dict[str, Any] = {
        "exit_status": 0,
        "signal": None,
        "timed_out": False,
        "leftover": 0,
        "wall_ms": 5,
        "tail": b"",
        "unsealed": unsealed,
        "images": (),
    }
    return Outcome(**{**values, **changes})
