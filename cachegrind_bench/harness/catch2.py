"""Benchmarks of Catch2, from 2.9 on: `Chronometer` calls virtual functions, which start and stop its clock, around each sample.

It estimates the clock first, with 40,000 readings. A clock that moves much faster after these is one for which a sample of one
iteration is long enough.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from cachegrind_bench.errors import MeasurementError, StoreError, UsageError
from cachegrind_bench.harness.engine.loop import Loop, Sections
from cachegrind_bench.harness.protocol import (
    LISTING_BYTES,
    Harness,
    ask,
    check_version,
    code_of,
    found_programs,
    last_lines,
    listed_once,
    variables,
)
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.hermetic.scratch import FIRST_SLOT, scratch
from cachegrind_bench.log import LOG
from cachegrind_bench.measure.session import SCRATCH_BASE
from cachegrind_bench.model.text import printable
from cachegrind_bench.store.durable import read_file

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry

_MODEL = re.compile(rb"_ZN5Catch9Benchmark6Detail16ChronometerModelI\w+?EE?(?:5start|6finish)Ev(?=\0)")
_QUICK = ("--benchmark-warmup-time", "0", "--benchmark-no-analysis")
_TESTED = ("2.13", "3.7")
_ALL = "[!benchmark]"
_SIGNS = re.compile(r'([\\,\[\]"*~])')
# Options, those with a value first: kept as they choose what is executed, and of no use here.
_KEPT_VALUED = frozenset(("-f", "--input-file", "-c", "--section", "--rng-seed"))
_KEPT = frozenset(("-#", "--filenames-as-tags"))
_UNUSED_VALUED = frozenset(
    f"{dashes}{name}"
    for dashes, names in (
        ("-", "r o n x w d D v"),
        ("--", "reporter out name abortx warn durations min-duration verbosity order use-colour colour-mode"),
        ("--benchmark-", "samples resamples confidence-interval warmup-time"),
    )
    for name in names.split()
)
_UNUSED = frozenset(("-s", "--success", "-a", "--abort", "-i", "--invisibles", "--benchmark-no-analysis"))
_CLOCK = PINNED_CLOCK._replace(turn=30_000, later_ns=1000 * 10**9)


class Catch2(Harness):
    """A test case is run alone; where it has several benchmarks, all are executed, and one of them is counted."""

    def detect(self, root: Path) -> Sequence[str]:
        """Look for programs that are built, with benchmarks of Catch2 in them."""
        return found_programs(root, ("*[Bb]ench*", "*[Tt]est*"), _MODEL)

    def listed(self, entry: Entry, environ: Mapping[str, str]) -> Sequence[BenchmarkSpec]:
        """Run all once, as only those that were executed are known; those that are hidden if there are no others."""
        program, *words = entry.keys["catch2"]
        chosen, kept = _sorted_words(words, entry.each.place)
        cases = _cases(entry, environ, (program, *chosen, *kept))
        if not any(cases.values()) and not chosen:
            cases = _cases(entry, environ, (program, _ALL, *kept))
        if not any(cases.values()):
            raise MeasurementError(
                f"{entry.each.place}: {program} ran no benchmarks of Catch2",
                hint="what follows the program chooses test cases, as in: catch2 = 'build/tests [!benchmark]'",
            )
        with code_of(entry.each.cwd / program) as data:
            if not data:
                raise MeasurementError(f"{entry.each.place}: cannot read {program}")
            names = {match[0].decode() for match in _MODEL.finditer(data)}
        found: list[BenchmarkSpec] = []
        for case, benchmarks in cases.items():
            command = (program, _SIGNS.sub(r"\\\1", case), *kept, *_QUICK)
            places = {name: place for place, name in enumerate(benchmarks)}
            for name in listed_once(entry, benchmarks):
                loop = _loop(names, places[name], len(benchmarks))
                found.append(entry.spec(printable(f"{case}/{name}"), command, loop=loop))
        return found


def _sorted_words(words: Sequence[str], place: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what chooses test cases, and the options that are kept. UsageError with its name for one that is not known."""
    chosen: list[str] = []
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name, value = (*re.split("[=:]", word, maxsplit=1), None)[:2]
        if not word.startswith("-"):
            chosen.append(word)
        elif name in _KEPT_VALUED | _UNUSED_VALUED:
            value = next(rest, "") if value is None else value
            kept += (name, value) if name in _KEPT_VALUED else ()
        elif word in _KEPT:
            kept.append(word)
        elif word not in _UNUSED:
            hint = "leave it out; what follows the program chooses test cases, as in: build/tests [!benchmark]"
            raise UsageError(
                f"{place}: cg-bench does not know what the option {word} of Catch2 means for a benchmark", hint=hint
            )
    return tuple(chosen), tuple(kept)


def _cases(entry: Entry, environ: Mapping[str, str], command: Sequence[str]) -> dict[str, list[str]]:
    """Return the benchmarks of each test case, in the order in which they are executed."""
    with scratch(SCRATCH_BASE, first=FIRST_SLOT) as folder:  # whose rest, if we are killed, the next run removes
        report = folder.path / "report.xml"
        options = ("--reporter", "xml", "--out", str(report), "--benchmark-samples", "1", *_QUICK)
        done = ask(entry, (*command, *options), variables(entry, environ))
        try:
            root = ET.fromstring(read_file(report, LISTING_BYTES))  # noqa: S314 - the program could do worse
        except (FileNotFoundError, StoreError, ET.ParseError):  # another program's
            root = None
    cases = [] if root is None else list(root.iter("TestCase"))
    found = {str(case.get("name")): [str(item.get("name")) for item in case.iter("BenchmarkResults")] for case in cases}
    without = [_why_without(case) for case in cases if not found[str(case.get("name"))]]
    if done.status != 0 and (cases or root is None) and not any(found.values()):  # 3 fails without a test case, too
        raise MeasurementError(
            f"{entry.each.place}: {command[0]} could not run its benchmarks",
            hint="\n".join(filter(None, without)) or last_lines(done),
        )
    thrown = [
        printable(f"{item.get('name')} in test case {case.get('name')} fails: {failed.get('message')}")
        for case in cases
        for item in case.iter("BenchmarkResults")
        if (failed := item.find("failed")) is not None
    ]
    for why in (*filter(None, without), *thrown):
        LOG.info(f"{entry.each.place}: {why}")
    if root is not None and (version := root.get("catch2-version")):  # from version 3 on
        check_version(entry, "Catch2", version, _TESTED)
    return found


def _why_without(case: ET.Element) -> str:
    """Say why a test case comes to no benchmark, empty where it just has none."""
    skips, fails = case.find(".//Skip"), case.find("OverallResult[@success='false']")
    why = "fails" if fails is not None else "" if skips is None else f"skips itself: {(skips.text or '').strip()}"
    return why and printable(f"test case {case.get('name')} {why}")


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
            unseen="where Catch2 says that no test case matched, rename it; else GCC's -O2 has inlined the functions by which Catch2 "
            "starts and stops its clock: compile with -fno-devirtualize-speculatively, and do not strip the program",
        ),
        clock=_CLOCK,
    )


HARNESS = Catch2()
