"""Runs the first benchmark of a script of pyperformance, and prints the least CPU seconds of its passes.

    python one_pass.py PASSES LOOPS run_benchmark.py [OPTION]...

Replaces pyperf, which would start more processes: a pass is LOOPS loops of the benchmark. Passes are the region "work" for
`cg-bench run --regions`. One pass before them warms the interpreter up, and another one, in a region of its own, the simulated caches.
"""

from __future__ import annotations

import argparse
import os
import platform
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from cachegrind_bench.region import region

PASSES, LOOPS = int(sys.argv[1]), int(sys.argv[2])


def measured(one: Callable[[], object]) -> None:
    """Time the passes, print the least, and end the script."""
    for _ in range(3):
        one()
    with region("warm"):
        one()
    least = float("inf")
    for _ in range(PASSES):
        before = time.thread_time()
        with region("work"):
            one()
        least = min(least, time.thread_time() - before)
    sys.__stdout__.write(f"{least:.9f}\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]
    os._exit(0)


class Runner:
    """What scripts use of pyperf's class of this name."""

    def __init__(self, *_: object, **__: object) -> None:
        self.metadata: dict[str, object] = {}
        self.argparser = argparse.ArgumentParser()
        self.args = argparse.Namespace()

    def parse_args(self, *_: object) -> argparse.Namespace:
        """Read the options that follow the script."""
        self.args = self.argparser.parse_args(sys.argv[1:])
        return self.args

    def bench_func(self, _name: str, function: Callable[..., object], *args: Any, **_: Any) -> None:
        """Measure calls."""
        measured(lambda: [function(*args) for _ in range(LOOPS)])

    def bench_time_func(self, _name: str, function: Callable[..., object], *args: Any, **_: Any) -> None:
        """Measure calls that loop themselves."""
        measured(lambda: function(LOOPS, *args))


def main() -> None:
    """Run the script with the stand-in."""
    stand_in = ModuleType("pyperf")
    names = {"Runner": Runner, "perf_counter": time.perf_counter, "python_implementation": lambda: "cpython"}
    stand_in.__dict__.update(names, python_has_jit=lambda: False, platform=platform)
    sys.modules["pyperf"] = stand_in
    sys.argv = sys.argv[3:]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
