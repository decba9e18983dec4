"""Benchmarks of Google Benchmark, from 1.7 on: `State` calls a function of the library where its clock starts and stops."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.protocol import (
    Harness,
    Listed,
    ask,
    exactly,
    found_programs,
    last_lines,
    listed_once,
    variables,
)
from cachegrind_bench.hermetic.launch import FAST_CLOCK
from cachegrind_bench.model.text import printable
from cachegrind_bench.valgrind.options import Loop, Sections

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry

_STATE = "_ZN9benchmark5State"
_START, _FINISH = f"{_STATE}16StartKeepRunningEv", f"{_STATE}17FinishKeepRunningEv"
_PAUSE, _RESUME = f"{_STATE}11PauseTimingEv", f"{_STATE}12ResumeTimingEv"
_SECTIONS = Sections(
    begin=(f"after:{_START}", f"after:{_RESUME}"),
    end=(f"before:{_PAUSE}", f"before:{_FINISH}"),
    reset=(f"after:{_START}",),
)
_THREADS = re.compile(r"/threads:(?!1\b)\d")
_TWICE = "--benchmark_repetitions=2"  # the second is warm, and the one that counts


class GoogleBenchmark(Harness):
    """The program lists its benchmarks; it is the user's to build it."""

    def detect(self, root: Path) -> Sequence[str]:
        """Look for programs that are built, with the library's functions in them."""
        return found_programs(root, ("*[Bb]ench*",), re.compile(_START.encode()))

    def listed(
        self, entry: Entry, environ: Mapping[str, str], note: Callable[[str], object]
    ) -> Sequence[BenchmarkSpec]:
        """Ask the program, first whether it is one that can be given a number of iterations (1.8 and later)."""
        program = tuple(entry.keys["google-benchmark"])
        environ = variables(entry, environ)
        fixed = True
        done = ask(entry, (*program, "--benchmark_list_tests", "--benchmark_min_time=1x"), environ, note)
        if done.status != 0 or b"--benchmark_min_time" in done.stderr:  # whether it ends or not is up to its main
            fixed = False
            done = ask(entry, (*program, "--benchmark_list_tests"), environ, note)
        names = [printable(line.strip()) for line in done.stdout.decode("utf-8", "backslashreplace").splitlines()]
        if done.status != 0 or not any(names):
            raise MeasurementError(
                f"{entry.each.place}: {program[0]} listed no benchmarks of Google Benchmark", hint=last_lines(done)
            )
        found = Listed(entry)
        for name in listed_once(entry, list(filter(None, names)), note):
            if _THREADS.search(name):
                note(f"{entry.each.place}: {name} is left out: it uses threads")
                continue
            command = (*program, f"--benchmark_filter={exactly(name)}")
            found.append(entry.spec(name, command, loop=_loop(name, fixed=fixed)))
        return found


def _loop(name: str, *, fixed: bool) -> Loop:
    explicit = re.search(r"/iterations:([1-9][0-9]{0,14})(?![0-9])", name)  # with 0, it is an argument's name
    if explicit or not fixed:
        number = int(explicit[1]) if explicit else 1  # 1.7 grows it by the clock
        words = {number: (f"--benchmark_min_time={'1x' if fixed else 0}", _TWICE)}
    else:
        words = {number: (f"--benchmark_min_time={number}x", _TWICE) for number in (1, 10, 100, 1000)}
    return Loop(
        words=words,
        native=words[min(words)],
        sections=_SECTIONS,
        clock=FAST_CLOCK,
        reported=rf"^{re.escape(name)}\s+\S+ \w+\s+\S+ \w+\s+(\d+)\b",
    )


HARNESS = GoogleBenchmark()
