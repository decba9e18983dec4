"""Benchmarks of JMH (Java), from 1.21 on: executed as one batch in JMH's own process by Java's interpreter.

A batch of more iterations minus a batch of one is what these cost. The compilers of the JVM work on threads of their own, as
long as the clock lets them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.protocol import Harness, exactly, output_of
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.model.text import printable
from cachegrind_bench.valgrind.options import Loop

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry

JAVA = ("java", "-Xint", "-XX:+UseG1GC", "-XX:-UsePerfData", "-Djmh.ignoreLock=true")  # several are measured at a time
_ONCE = ("-f", "0", "-t", "1", "-bm", "ss", "-wi", "1", "-wbs", "10", "-i", "1", "-v", "SILENT", "-foe", "true")
_PARAMETER = re.compile(r'  param "(.+?)" = \{(.*)\}')
_LOOP = Loop(
    words={number: ("-bs", str(1 + number)) for number in (0, 10, 100, 1000, 10_000, 100_000)},
    native=("-bs", "1"),
    # What differs from run to run, ten thousand instructions, is then a ten-thousandth; of fewer than ten iterations it could be all.
    most_ir=100_000_000,
    clock=PINNED_CLOCK,
)


class Jmh(Harness):
    """All benchmarks of a jar, with each combination of their parameters."""

    def detect(self, root: Path) -> str | None:
        """Look for the jar that JMH's archetype of Maven, or its plugin for Gradle, builds."""
        paths = (root / "target" / "benchmarks.jar", *sorted((root / "build" / "libs").glob("*-jmh.jar")))
        return next((str(path.relative_to(root)) for path in paths if path.is_file()), None)

    def value(self, command: Sequence[str]) -> tuple[str, ...]:
        """Take what follows `java`."""
        return tuple(command[1:] if os.path.basename(command[0]) == "java" else command)

    def listed(
        self, entry: Entry, environ: Mapping[str, str], note: Callable[[str], object]
    ) -> Sequence[BenchmarkSpec]:
        """Ask for the names and parameters, and choose each by both."""
        program, patterns = _parted(entry.keys["jmh"])
        problem = "JMH could not list its benchmarks"
        text = output_of(entry, ("java", *program, "-lp", *patterns), environ, note, problem)
        found: list[BenchmarkSpec] = []
        for name, parameters in _benchmarks(text):
            for values in product(*parameters.values()):
                chosen = [f"{key}={value}" for key, value in zip(parameters, values, strict=True)]
                command = (*JAVA, *program, *_ONCE, *(word for item in chosen for word in ("-p", item)), exactly(name))
                identity = f"{name}[{','.join(chosen)}]" if chosen else name
                found.append(entry.spec(printable(identity), command, loop=_LOOP))
        if not found:
            raise MeasurementError(
                f"{entry.each.place}: {' '.join(entry.keys['jmh'])} has no benchmarks of JMH",
                hint="where JMH's annotation processor did not run as they were compiled, the jar has no list of them",
            )
        return found


def _parted(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what starts JMH, and the patterns that choose benchmarks: a jar, or options of Java that end in one or in a class."""
    if words[0].endswith(".jar"):
        words = ("-jar", *words)
    end = next(
        (place for place, word in enumerate(words) if word.endswith((".jar", "jmh.Main")) and ":" not in word), 0
    )
    return tuple(words[: end + 1]), tuple(words[end + 1 :])


def _benchmarks(text: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Yield what JMH lists: names in lines of their own, each followed by its parameters."""
    name, parameters = "", dict[str, list[str]]()
    for line in text.partition("Benchmarks:")[2].splitlines():
        if match := _PARAMETER.fullmatch(line):
            parameters[match[1]] = match[2].split(", ")
        elif line.strip():
            if name:
                yield name, parameters
            name, parameters = line.strip(), {}
    if name:
        yield name, parameters


HARNESS = Jmh()
