"""Benchmarks of Google Benchmark, from 1.7 on: `State` calls a function of the library where its clock starts and stops."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.errors import CommandFailedError, MeasurementError
from cachegrind_bench.harness.engine.loop import REPORT, Loop, Report, Sections
from cachegrind_bench.harness.protocol import (
    Harness,
    ask,
    exactly,
    found_programs,
    last_lines,
    listed_once,
    variables,
)
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.log import LOG
from cachegrind_bench.model.text import printable

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry
    from cachegrind_bench.process import Completed

_STATE = "_ZN9benchmark5State"
_START, _FINISH = f"{_STATE}16StartKeepRunningEv", f"{_STATE}17FinishKeepRunningEv"
_PAUSE, _RESUME = f"{_STATE}11PauseTimingEv", f"{_STATE}12ResumeTimingEv"
_SECTIONS = Sections(
    begin=(f"after:{_START}", f"after:{_RESUME}"),
    end=(f"before:{_PAUSE}", f"before:{_FINISH}"),
    reset=(f"after:{_START}",),
    odd="the benchmark was executed once only, or more often than it was asked for: a main that sets --benchmark_repetitions or "
    "--benchmark_dry_run does that, and so do a MemoryManager and a ProfilerManager",
)
_THREADS = re.compile(r"/threads:(?!1\b)\d")
_REPEATS = re.compile(r"/repeats:(\d+)")
_TWICE = "--benchmark_repetitions=2"  # the second is warm, and the one that counts
_ONCE = "--benchmark_repetitions=1"  # its first iteration is not counted
_WARM = "--benchmark_min_warmup_time=0.000001"  # for a benchmark that has itself repeated once
_REPORT = (
    "--benchmark_report_aggregates_only=false",
    "--benchmark_out_format=json",
    f"--benchmark_out={{}}/{REPORT}",
)
_NONE = "^cg-bench lists nothing$"
_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_CLOCK = PINNED_CLOCK._replace(step_ns=1000 * 10**9)  # loops that wait for some time end after one round
# How far `PauseTiming` moves the clock of the CPU after `ResumeTiming`: both read the other clock, too.
_SECTION_NS = 2 * _CLOCK.step_ns


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """A repetition, or what was made of all of them."""

    run_name: str = ""
    run_type: str = ""
    aggregate_name: str = ""
    iterations: int = 0
    cpu_time: float = 0
    time_unit: str = "ns"
    error_occurred: bool = False
    error_message: str = ""
    skipped: bool = False
    skip_message: str = ""


class _Rows(msgspec.Struct, frozen=True):
    benchmarks: Sequence[_Row]


class GoogleBenchmark(Harness):
    """The program lists its benchmarks; it is the user's to build it."""

    def detect(self, root: Path) -> Sequence[str]:
        """Look for programs that are built, with the library's functions in them."""
        return found_programs(root, ("*[Bb]ench*",), re.compile(_START.encode()))

    def listed(self, entry: Entry, environ: Mapping[str, str]) -> Sequence[BenchmarkSpec]:
        """Ask the program, first whether it is one that can be given a number of iterations (1.8 and later)."""
        program = tuple(entry.keys["google-benchmark"])
        environ = variables(entry, environ)
        fixed = True
        done = ask(entry, (*program, "--benchmark_list_tests", "--benchmark_min_time=1x"), environ)
        if done.status != 0 or b"--benchmark_min_time" in done.stderr:  # whether it ends or not is up to its main
            fixed = False
            done = ask(entry, (*program, "--benchmark_list_tests"), environ)
        # A program may print more than its list, and prints that as well where it lists nothing.
        others = ask(entry, (*program, "--benchmark_list_tests", f"--benchmark_filter={_NONE}"), environ)
        names = _lines(done) - _lines(others)
        if done.status != 0 or not names:
            hint = (
                "its main has to pass on --benchmark_filter" if done.status == 0 and _lines(done) else last_lines(done)
            )
            raise MeasurementError(
                f"{entry.each.place}: {program[0]} listed no benchmarks of Google Benchmark", hint=hint
            )
        found: list[BenchmarkSpec] = []
        for name in listed_once(entry, names.elements()):
            if _THREADS.search(name):
                LOG.info(f"{entry.each.place}: {name} is left out: it uses threads")
                continue
            command = (*program, f"--benchmark_filter={exactly(name)}")
            found.append(entry.spec(name, command, loop=_loop(name, fixed=fixed)))
        return found


def _lines(done: Completed) -> Counter[str]:
    return Counter(filter(str.strip, map(printable, done.stdout.decode("utf-8", "backslashreplace").splitlines())))


def _loop(name: str, *, fixed: bool) -> Loop:
    explicit = re.search(r"/iterations:([1-9][0-9]{0,14})(?![0-9])", name)  # with 0, it is an argument's name
    repeats = int(_REPEATS.findall(name)[-1]) if _REPEATS.search(name) else 1
    more = (_TWICE, *((_WARM,) if "/repeats:1" in name and repeats == 1 else ()))
    if explicit or not fixed:
        number = int(explicit[1]) if explicit else 1  # 1.7 grows it by the clock
        words: dict[int, tuple[str, ...]] = {number: (f"--benchmark_min_time={'1x' if fixed else 0}", *more)}
        repeats = max(repeats, 2)
    else:
        words = {number: (f"--benchmark_min_time={1 + number}x", _ONCE) for number in (0, 1, 10, 100, 1000)}
    times = "+" if "/min_warmup_time:" in name else f"{{{repeats}}}"
    return Loop(
        words=words,
        native=words[min(words)],
        sections=replace(_SECTIONS, order=f"([be]*r[be]*){times}"),
        clock=_CLOCK,
        report=Report(words=_REPORT, read=partial(_executed, name)),
    )


def _executed(name: str, report: bytes, asked: int, sections: int) -> int:
    """Return how many iterations the last repetition of this benchmark had, by the program's report."""
    if not report.strip():
        hint = "its name, or what main does with the options that it gets, keeps --benchmark_filter or --benchmark_out from it"
        raise MeasurementError(f"the program ran no benchmark called {name}", hint=hint)
    try:
        rows = msgspec.convert(json.loads(report.decode("utf-8", "replace")), _Rows).benchmarks
    except ValueError as error:
        hint = "a program that ends in its benchmark does not finish it"
        raise MeasurementError("the program's report on its benchmark cannot be read", hint=hint) from error
    rows = [row for row in rows if row.run_name == name]
    for row in rows:
        if row.error_occurred or row.skipped:
            said = (
                f"skips itself with the error: {row.error_message}"
                if row.error_occurred
                else f"skips itself: {row.skip_message}"
            )
            raise CommandFailedError(printable(f"the benchmark {said}"))
    if runs := [row for row in rows if row.run_type == "iteration"]:
        return runs[-1].iterations
    # ReportAggregatesOnly: the time of an iteration says how many there were, as the clock moves evenly.
    times = [row.cpu_time * _UNITS_NS.get(row.time_unit, 1) for row in rows if row.aggregate_name == "mean"]
    number = sections * _SECTION_NS / times[0] if times and times[0] > 0 else 0.0
    if sections and (round(number) < max(asked, 1) or abs(number - round(number)) > 1e-6 * number):
        raise MeasurementError(
            "the program does not report how many iterations it executed",
            hint="ReportAggregatesOnly leaves that out, and a benchmark that reads the clock itself hides it",
        )
    return round(number)


HARNESS = GoogleBenchmark()
