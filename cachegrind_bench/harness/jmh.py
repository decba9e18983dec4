"""Benchmarks of JMH (Java), from 1.21 on: executed as one batch in JMH's own process.

A batch of more iterations minus a batch of one is what these cost. The JVM compiles each method before its first call, as far as it
is not of the JDK or of JMH: those are interpreted, or the start of the JVM alone would take billions of instructions. Nothing is
inlined, so that each method has its own instructions.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.harness.engine.loop import Loop
from cachegrind_bench.harness.protocol import Harness, exactly, output_of, starts, text_of
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.log import LOG
from cachegrind_bench.model.text import printable
from cachegrind_bench.valgrind.code_log import CODE_LOG

if TYPE_CHECKING:
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
_BUILDERS = ("mvn", "mvnw", "gradle", "gradlew")
# Options of JMH that choose benchmarks, and those with a value that say how often, for how long and with what output: not of use here.
_CHOOSES = ("p", "e")
_UNUSED = frozenset(
    (
        "f",
        "wf",
        "i",
        "wi",
        "r",
        "w",
        "wbs",
        "to",
        "tu",
        "opi",
        "bm",
        "wm",
        "si",
        "gc",
        "foe",
        "v",
        "o",
        "rf",
        "rff",
        "prof",
    )
)
_OPTION = re.compile(r"-([A-Za-z]+)(?:=(.*)|(\d.*))?")
_LIST = "META-INF/BenchmarkList"
_LISTED = re.compile(r"JMH S \d+ (\S+) S \d+ \S+ S \d+ (\S+) .* M \d+ (.*)")
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
        """Take what follows `java`. UsageError for a tool that builds."""
        if os.path.basename(command[0]) in _BUILDERS:
            raise UsageError(
                f"--harness jmh: {command[0]} starts Java itself, out of the sight of cg-bench",
                hint=f"build with it and give what it starts: --harness jmh -- java -jar target/benchmarks.jar; in a table, setup = "
                f'"{command[0]} …" builds',
            )
        return tuple(command[1:] if starts(command, "java") else command)

    def listed(self, entry: Entry, environ: Mapping[str, str]) -> Sequence[BenchmarkSpec]:
        """Ask for the names and parameters, and choose each by both."""
        place = entry.each.place
        program, others = _parted(entry.keys["jmh"], place)
        patterns = _patterns(others, place)
        problem = "JMH could not list its benchmarks"
        text = output_of(entry, ("java", *program, "-lp", *patterns), environ, problem)
        own = {value.partition("=")[0] for option, value in pairwise(patterns) if option == "-p"}
        numbers = {key: number for key, number in _numbers(program, entry.each.cwd).items() if key[1] not in own}
        found: list[BenchmarkSpec] = []
        for name, parameters in _benchmarks(text):
            split = [_Values.of(key, values, numbers.get((name, key))) for key, values in parameters.items()]
            for parameter in split:
                if parameter.left_out:
                    LOG.info(
                        f"{place}: {printable(name)} is left out where its parameter {parameter.name} is "
                        f"{printable(parameter.left_out)}: JMH's option -p takes a comma for the end of a value"
                    )
            for chosen in product(*(parameter.values for parameter in split)):
                given = (("-p", item) for item, parameter in zip(chosen, split, strict=True) if parameter.has_others)
                command = (*JAVA, *program, *_ONCE, *chain.from_iterable(given), exactly(name))
                identity = f"{name}[{','.join(chosen)}]" if chosen else name
                found.append(entry.spec(printable(identity), command, loop=_LOOP))
        if not found:
            raise MeasurementError(
                f"{place}: {' '.join(entry.keys['jmh'])} has no benchmarks of JMH",
                hint="where JMH's annotation processor did not run as they were compiled, the jar has no list of them",
            )
        return found


class _Values(NamedTuple):
    """The values of a parameter that can be chosen, as `NAME=VALUE`. If it has no others, none needs to be."""

    name: str
    values: Sequence[str]
    has_others: bool = True
    left_out: str = ""

    @classmethod
    def of(cls, name: str, text: str, number: int | None) -> _Values:
        """Read the list of values that JMH writes, of which the jar says how many there are."""
        values = text.split(", ")
        if number == 1 and "," in text:
            return cls(name, (f"{name}={text}",), has_others=False)
        if number not in (None, len(values)):
            return cls(name, (), left_out=text)
        fit = tuple(f"{name}={value}" for value in values if "," not in value)
        return cls(name, fit, left_out=" or ".join(value for value in values if "," in value))


def _patterns(words: Sequence[str], place: str) -> tuple[str, ...]:
    """Return the words for JMH that choose benchmarks. UsageError with its name for an option that cannot be followed."""
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            found.append(word)
            continue
        match = _OPTION.fullmatch(word)
        name = match[1] if match else ""
        if match is None or (name != "t" and name not in _UNUSED and name not in _CHOOSES):
            hint = "options of Java come before -jar" if name.startswith("jvm") else "leave it out"
            raise UsageError(f"{place}: cg-bench cannot follow JMH's option {word}", hint=hint)
        value = match[2] or match[3] or next(rest, "")
        if name in _CHOOSES:
            found += (f"-{name}", value)
        elif name == "t" and value != "1":
            LOG.info(f"{place}: -t {value} is left out: each benchmark has one thread")
    return tuple(found)


def _numbers(program: Sequence[str], cwd: Path) -> dict[tuple[str, str], int]:
    """Return how many values each parameter of a benchmark has, by the lists of JMH that are on the class path."""
    found: dict[tuple[str, str], int] = {}
    option = ("-jar",) if program[-2:-1] == ("-jar",) else ("-cp", "-classpath", "--class-path")
    paths = next((path for word, path in pairwise(program) if word in option), "")
    for path in chain.from_iterable(map(partial(_places, cwd), paths.split(":"))):
        for line in _list_of(path).splitlines():
            if match := _LISTED.match(line):
                words = match[3].split(" ")
                while len(words) > 2 and words[0].isdecimal() and words[2].isdecimal():
                    found[f"{match[1]}.{match[2]}", words[1]] = int(words[2])
                    del words[: 3 + 2 * int(words[2])]
    return found


def _places(cwd: Path, item: str) -> Sequence[Path]:
    """Return what an item of a class path stands for."""
    return sorted((cwd / item[:-1]).glob("*.jar")) if item.endswith("*") else [cwd / item]


def _list_of(path: Path) -> str:
    if path.is_dir():
        return text_of(path / _LIST).decode("utf-8", "replace")
    with suppress(OSError, KeyError, zipfile.BadZipFile), zipfile.ZipFile(path) as jar:
        return jar.read(_LIST).decode("utf-8", "replace")
    return ""


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


def _benchmarks(text: str) -> list[tuple[str, dict[str, str]]]:
    """Return what JMH lists: names in lines of their own, each followed by its parameters, once for each of its modes."""
    found: list[tuple[str, dict[str, str]]] = []
    for line in text.partition("Benchmarks:")[2].splitlines():
        if not line.endswith("}") or not (match := _PARAMETER.fullmatch(line)):
            if line.strip():
                found.append((line.strip(), {}))
        elif found:
            found[-1][1][match[1]] = match[2]
    return list({repr(item): item for item in found}.values())


HARNESS = Jmh()
