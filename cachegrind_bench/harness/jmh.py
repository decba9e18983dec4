"""Benchmarks of JMH (Java), from 1.21 on: executed as one batch in JMH's own process.

A batch of more iterations minus a batch of one is what these cost. The JVM compiles each method before its first call, as far as it
is not of the JDK or of JMH: those are interpreted, or the start of the JVM alone would take billions of instructions. Nothing is
inlined, so that each method has its own instructions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.harness.protocol import Harness, Listed, at_most, exactly, output_of
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.model.text import printable
from cachegrind_bench.valgrind.options import CODE_LOG, Loop

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry

_INTERPRETED = (
    *("java/*", "javax/*", "jdk/*", "sun/*", "com/sun/*", "joptsimple/*"),
    *(f"org/openjdk/jmh/{package}/*" for package in ("generators", "profile", "results", "runner", "util")),
)
JAVA = (
    *("java", "-Xcomp", "-Xbatch", "-XX:TieredStopAtLevel=1", "-XX:-Inline", "-XX:+UseG1GC", "-XX:-UsePerfData"),
    "-XX:CompileCommand=quiet",
    *(f"-XX:CompileCommand=exclude,{methods}.*" for methods in _INTERPRETED),
    "-Djmh.ignoreLock=true",  # several are measured at a time
)
_ONCE = ("-f", "0", "-t", "1", "-bm", "ss", "-wi", "1", "-wbs", "10", "-i", "1", "-v", "SILENT", "-foe", "true")
_PARAMETER = re.compile(r'  param "(.+?)" = \{(.*)\}')
# Options of Java whose value is the next word.
_WITH_A_WORD = re.compile(
    "-cp|-classpath|--class-path|-p|--(upgrade-)?module-path|--patch-module|--(add|limit)-modules|--add-(reads|exports|opens)|--source"
)
_LOOP = Loop(
    words={number: ("-bs", str(1 + number)) for number in (0, 10, 100, 1000, 10_000, 100_000)},
    native=("-bs", "1"),
    # What differs from run to run, a hundred thousand instructions at most, is then little; of few iterations it could be all.
    most_ir=200_000_000,
    clock=PINNED_CLOCK,
    log=("-XX:+UnlockDiagnosticVMOptions", "-XX:+LogCompilation", f"-XX:LogFile={{}}/%p-{CODE_LOG}"),
)


class Jmh(Harness):
    """All benchmarks of a jar, with each combination of their parameters."""

    def detect(self, root: Path) -> Sequence[str]:
        """Look for the jars that JMH's archetype of Maven, or its plugin for Gradle, builds, also in modules."""
        jars = ("target/benchmarks.jar", "*/target/benchmarks.jar", "build/libs/*-jmh.jar", "*/build/libs/*-jmh.jar")
        return [str(path.relative_to(root)) for jar in jars for path in sorted(root.glob(jar)) if path.is_file()]

    def value(self, command: Sequence[str]) -> tuple[str, ...]:
        """Take what follows `java`."""
        return tuple(command[1:] if os.path.basename(command[0]) == "java" else command)

    def listed(
        self, entry: Entry, environ: Mapping[str, str], note: Callable[[str], object]
    ) -> Sequence[BenchmarkSpec]:
        """Ask for the names and parameters, and choose each by both."""
        program, patterns = _parted(entry.keys["jmh"], entry.each.place)
        problem = "JMH could not list its benchmarks"
        text = output_of(entry, ("java", *program, "-lp", *patterns), environ, note, problem)
        found = Listed(entry)
        for name, chosen in at_most(entry, _chosen(_benchmarks(text))):
            command = (*JAVA, *program, *_ONCE, *(word for item in chosen for word in ("-p", item)), exactly(name))
            identity = f"{name}[{','.join(chosen)}]" if chosen else name
            found.append(entry.spec(printable(identity), command, loop=_LOOP))
        if not found:
            raise MeasurementError(
                f"{entry.each.place}: {' '.join(entry.keys['jmh'])} has no benchmarks of JMH",
                hint="where JMH's annotation processor did not run as they were compiled, the jar has no list of them",
            )
        return found


def _parted(words: Sequence[str], place: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what starts JMH, options of Java that a jar or a class ends, and the patterns that choose benchmarks."""
    end = 0
    while end < len(words):
        word = words[end]
        if word in ("-jar", "-m", "--module") and end + 1 < len(words):
            return tuple(words[: end + 2]), tuple(words[end + 2 :])
        if not word.startswith("-"):
            jar = ("-jar",) if word.endswith(".jar") else ()
            return (*words[:end], *jar, word), tuple(words[end + 1 :])
        end += 2 if _WITH_A_WORD.fullmatch(word) else 1
    raise UsageError(
        f"{place}: {' '.join(('java', *words))} names neither a jar nor a class",
        hint="as in: java -jar target/benchmarks.jar",
    )


def _chosen(benchmarks: Iterable[tuple[str, Mapping[str, Sequence[str]]]]) -> Iterator[tuple[str, list[str]]]:
    """Yield each benchmark with each combination of its parameters."""
    for name, parameters in benchmarks:
        for chosen in product(*parameters.values()):
            yield name, [f"{key}={value}" for key, value in zip(parameters, chosen, strict=True)]


def _benchmarks(text: str) -> list[tuple[str, dict[str, list[str]]]]:
    """Return what JMH lists: names in lines of their own, each followed by its parameters, once for each of its modes."""
    found: list[tuple[str, dict[str, list[str]]]] = []
    for line in text.partition("Benchmarks:")[2].splitlines():
        if not line.endswith("}") or not (match := _PARAMETER.fullmatch(line)):
            if line.strip():
                found.append((line.strip(), {}))
        elif found:
            found[-1][1][match[1]] = match[2].split(", ")
    return list({repr(item): item for item in found}.values())


HARNESS = Jmh()
