"""Benchmarks of Catch2, from 2.9 on: `Chronometer` calls virtual functions, which start and stop its clock, around each sample.

It estimates the clock first, with 40,000 readings. A clock that moves much faster after these is one for which a sample of one
iteration is long enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from cachegrind_bench.errors import MeasurementError, StoreError
from cachegrind_bench.harness.protocol import (
    LISTING_BYTES,
    Harness,
    Listed,
    ask,
    at_most,
    check_version,
    code_of,
    found_programs,
    last_lines,
    listed_once,
    variables,
)
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.hermetic.scratch import FIRST_SLOT, scratch
from cachegrind_bench.measure.session import SCRATCH_BASE
from cachegrind_bench.model.text import printable
from cachegrind_bench.store.durable import read_file
from cachegrind_bench.valgrind.options import Loop, Sections

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry

_MODEL = re.compile(rb"_ZN5Catch9Benchmark6Detail16ChronometerModelI\w+?EE?(?:5start|6finish)Ev(?=\0)")
_QUICK = ("--benchmark-warmup-time", "0", "--benchmark-no-analysis")
_TESTED = ("2.13", "3.7")
_ALL = "[!benchmark]"
_SIGNS = re.compile(r'([\\,\[\]"*~])')
_CLOCK = PINNED_CLOCK._replace(turn=30_000, later_ns=1000 * 10**9)


class Catch2(Harness):
    """A test case is run alone; where it has several benchmarks, all are executed, and one of them is counted."""

    def detect(self, root: Path) -> Sequence[str]:
        """Look for programs that are built, with benchmarks of Catch2 in them."""
        return found_programs(root, ("*[Bb]ench*", "*[Tt]est*"), _MODEL)

    def listed(
        self, entry: Entry, environ: Mapping[str, str], note: Callable[[str], object]
    ) -> Sequence[BenchmarkSpec]:
        """Run all once, as only those that were executed are known; those that are hidden if there are no others."""
        program, *chosen = entry.keys["catch2"]
        cases = _cases(entry, environ, note, (program, *chosen))
        if not any(cases.values()) and not chosen:
            cases = _cases(entry, environ, note, (program, _ALL))
        if not any(cases.values()):
            raise MeasurementError(
                f"{entry.each.place}: {program} ran no benchmarks of Catch2",
                hint="what follows the program chooses test cases, as in: catch2 = 'build/tests [!benchmark]'",
            )
        with code_of(entry.each.cwd / program) as data:
            if not data:
                raise MeasurementError(f"{entry.each.place}: cannot read {program}")
            names = {match[0].decode() for match in _MODEL.finditer(data)}
        found = Listed(entry)
        for case, benchmarks in at_most(entry, cases.items()):
            command = (program, _SIGNS.sub(r"\\\1", case), *_QUICK)
            places = {name: place for place, name in enumerate(benchmarks)}
            for name in listed_once(entry, benchmarks, note):
                loop = _loop(names, places[name], len(benchmarks))
                found.append(entry.spec(printable(f"{case}/{name}"), command, loop=loop))
        return found


def _cases(
    entry: Entry, environ: Mapping[str, str], note: Callable[[str], object], command: Sequence[str]
) -> dict[str, list[str]]:
    """Return the benchmarks of each test case, in the order in which they are executed."""
    with scratch(SCRATCH_BASE, first=FIRST_SLOT) as folder:  # whose rest, if we are killed, the next run removes
        report = folder.path / "report.xml"
        options = ("--reporter", "xml", "--out", str(report), "--benchmark-samples", "1", *_QUICK)
        done = ask(entry, (*command, *options), variables(entry, environ), note)
        try:
            root = ET.fromstring(read_file(report, LISTING_BYTES))  # noqa: S314 - the program could do worse
        except (FileNotFoundError, StoreError, ET.ParseError, ValueError, LookupError):  # another program's
            root = None
    cases = [] if root is None else list(root.iter("TestCase"))
    if done.status != 0 and (cases or root is None):  # version 3 fails if there is no test case to run
        failed = [case.get("name") for case in cases if case.find("OverallResult[@success='false']") is not None]
        raise MeasurementError(
            f"{entry.each.place}: {command[0]} could not run its benchmarks",
            hint="\n".join(printable(f"test case {name} fails") for name in failed) or last_lines(done),
        )
    if root is not None and (version := root.get("catch2-version")):  # from version 3 on
        check_version(entry, "Catch2", version, _TESTED, note)
    return {str(case.get("name")): [str(item.get("name")) for item in case.iter("BenchmarkResults")] for case in cases}


def _loop(names: Collection[str], place: int, number: int) -> Loop:
    """Return how the benchmark in this place is counted, of this number that a test case has; `names` are of functions."""
    return Loop(
        words={10: ("--benchmark-samples", "10")},
        native=("--help",),
        sections=Sections(
            begin=tuple(f"after:{name}" for name in sorted(names) if name.endswith("startEv")),
            end=tuple(f"before:{name}" for name in sorted(names) if name.endswith("finishEv")),
            skip=1,  # by which it estimates how long an iteration takes
            share=(place, number),
            unseen="GCC's -O2 inlines the functions by which Catch2 starts and stops its clock: compile the program that has the "
            "benchmarks with -fno-devirtualize-speculatively, and do not strip it",
        ),
        clock=_CLOCK,
    )


HARNESS = Catch2()
