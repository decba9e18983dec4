"""What cg-bench costs on top of bare Valgrind with the same options: run by hand on a quiet machine.

    python benchmarks/overhead.py [REPEATS]

Alternates bare and measured executions of one command in one run, and prints the best times, differences and ratios. The
promise: at most 0.3 s for each run, at most 2 % of a long one, `cg-bench --help` within 150 ms, and with an estimate of the
time at most 1.15 times as much.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cachegrind_bench.valgrind.options import Geometry, Tool, arguments
from cachegrind_bench.valgrind.tool import find

LONG = "s = 0\nfor i in range(2_000_000):\n    s += i * i % 7\n"
COMMANDS = {
    "short: /bin/true": ["/bin/true"],
    "start-up of Python": [os.path.realpath(sys.executable), "-c", "pass"],
    "long: a loop in Python": [os.path.realpath(sys.executable), "-c", LONG],
}


def seconds(argv: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Run a command and return its wall time and CPU time; the latter hardly minds what else the machine does."""
    before, started = os.times(), time.perf_counter()
    subprocess.run(argv, env=env, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    wall, after = time.perf_counter() - started, os.times()
    return wall, after[2] + after[3] - before[2] - before[3]


def best(times: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the smallest wall and CPU times: what others do on the machine only ever adds."""
    wall, cpu = zip(*times, strict=True)
    return min(wall), min(cpu)


def main() -> None:
    """Print one line for each command."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    valgrind = find(None, os.environ)
    env = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    cg_bench = [sys.executable, "-m", "cachegrind_bench"]
    helps = [seconds([*cg_bench, "--help"], env) for _ in range(repeats)]
    print(f"cg-bench --help: {1000 * best(helps)[0]:.0f} ms (best of {repeats})")
    with tempfile.TemporaryDirectory() as folder:
        options = arguments(Tool.CACHEGRIND, Geometry(), Path(folder), guest_chase_off=valgrind.guest_chase_off)
        for name, command in COMMANDS.items():
            count = repeats if "long" not in name else max(3, repeats // 2)
            bare, ours, estimated, only_ir = [], [], [], []
            for _ in range(count):
                bare.append(seconds([valgrind.launcher, *options, *command], {**env, "VALGRIND_LIB": valgrind.libexec}))
                result = str(Path(folder) / "result.json")
                run = [*cg_bench, "run", "-q", "--warmup", "0", "-o", result]
                ours.append(seconds([*run, "--", *command], env))
                estimated.append(seconds([*run, "--estimate", "--", *command], env))
                only_ir.append(seconds([*run, "--model", "ir", "--", *command], env))
            print(f"{name} (best of {count})")
            for kind, low, high in zip(("wall", "CPU"), best(bare), best(ours), strict=True):
                print(f"  {kind}: bare {low:.2f} s, cg-bench {high:.2f} s, +{high - low:.2f} s, ratio {high / low:.3f}")
            for option, times in (("--estimate", estimated), ("--model ir", only_ir)):
                print(f"  CPU with {option}: {best(times)[1] / best(ours)[1]:.3f} of that without")


if __name__ == "__main__":
    main()
