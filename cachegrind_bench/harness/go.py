"""Benchmarks of `go test`: `testing.B` calls functions of its own, and `time.Now`, where its timer starts and stops.

Only entries of functions are looked for: Valgrind cannot follow returns where goroutines take turns on one thread. It then
takes the return into a function for an entry, as after the garbage collector's statistics were read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.engine.loop import Loop, Sections
from cachegrind_bench.harness.go_command import after_go_test, parse_command
from cachegrind_bench.harness.protocol import (
    Harness,
    ask,
    build_folder,
    check_version,
    exactly,
    files_below,
    last_lines,
    output_of,
    text_of,
    variables,
)
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.log import LOG
from cachegrind_bench.model.text import printable
from cachegrind_bench.store.baselines import STORE, make_store

if TYPE_CHECKING:
    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry

_FUNCTION = re.compile(r"^func (Benchmark(?![a-z])\w*)\(\s*\w+\s+\*\w+\.B\s*\)", re.MULTILINE)
_TESTED = ("1.26",)
# Begins what the testing package itself says with -test.v=test2json, wherever in a line that is: not what a benchmark prints.
_MARK = "\x16"
_RUN, _SKIP, _LAST = "=== RUN   ", "--- SKIP: ", ("PASS\n", "FAIL\n")
_FIELDS = (
    "{{.ImportPath}}\t{{.Dir}}\t{{with .Module}}{{.Path}}{{end}}\t{{range .TestGoFiles}}{{.}}/{{end}}"
    '{{range .XTestGoFiles}}{{.}}/{{end}}\t{{with .Error}}{{.Err}}{{end}}{{"\\x00"}}'
)
# Before, Go executes one iteration for itself, but not for 1x, nor of a benchmark with b.Loop: so 2x is what is subtracted.
_LOOP = Loop(
    words={number: (f"-test.benchtime={2 + number}x",) for number in (0, 1, 10, 100, 1000)},
    native=("-test.benchtime=1x", "-test.v"),  # which says why a benchmark skips itself
    sections=Sections(
        begin=("before:testing.(*B).StartTimer", "before:testing.(*B).ResetTimer"),
        settle=("before:time.Now",),
        end=("before:testing.(*B).StopTimer",),
        reset=("before:testing.(*B).ResetTimer",),
        finish=("before:testing.(*B).runN.func1", "before:testing.(*B).runN.deferwrap1"),
        patterns=("before:time.Now", "before:testing.(*B).*r*"),
        regular=True,  # a goroutine that is switched within StopTimer hides later calls of it from Callgrind
        odd="a benchmark that skips itself when it is measured (its output says why), ends the program or reads the clock itself "
        "cannot be counted",
    ),
    clock=PINNED_CLOCK._replace(step_ns=1000),
)


class _Package(NamedTuple):
    """A package of Go that has tests."""

    path: str
    folder: Path
    module: str
    tests: Sequence[str]

    def names(self, chosen: str) -> list[str]:
        """Return the names of the benchmarks in its source, of those that this regular expression chooses."""
        texts = (text_of(self.folder / name).decode("utf-8", "replace") for name in self.tests)
        names = [name for text in texts for name in _FUNCTION.findall(text)]
        with suppress(re.error):  # Go's are not quite those of Python
            names = [name for name in names if re.search(chosen.partition("/")[0], name)]
        return names


class _Found(NamedTuple):
    """A benchmark of a package: how it is executed, or why it cannot be."""

    package: _Package
    name: str
    command: tuple[str, ...]
    problem: str = ""


class Go(Harness):
    """Each package becomes a program, whose benchmarks are known once each has run for one iteration."""

    def detect(self, root: Path) -> Sequence[str]:
        """Look for benchmarks in the tests of a module."""
        if not (root / "go.mod").is_file():
            return ()
        tests = (Path(path) for path in files_below(root) if path.endswith("_test.go"))
        has_some = any(_FUNCTION.search(text_of(path).decode("utf-8", "replace")) for path in tests)
        return ("./...",) if has_some else ()

    def value(self, command: Sequence[str]) -> tuple[str, ...]:
        """Take what follows `go test`."""
        return after_go_test(command)

    def listed(self, entry: Entry, environ: Mapping[str, str]) -> Sequence[BenchmarkSpec]:
        """Build the packages that have tests, and run what they have."""
        asked = _Asked(entry, environ)
        place, given = entry.each.place, asked.given
        version = asked.go("env", "GOVERSION").strip().removeprefix("go")
        check_version(entry, "Go", version, _TESTED)
        if given.cpu != "1":
            LOG.info(f"{place}: -cpu={given.cpu} is left out: each benchmark has one CPU")
        found = [item for package in asked.packages() for item in asked.benchmarks(package)]
        if not found:
            chosen = "" if (given.bench, given.skip) == (".", "") else " that -bench and -skip choose"
            raise MeasurementError(f"{place}: there are no benchmarks{chosen} in {' '.join(given.packages)}")
        if all(item.problem for item in found):
            message, _, hint = found[0].problem.partition("\n")
            raise MeasurementError(f"{place}: {message}", hint=hint)
        return [*_specs(entry, found)]


def _specs(entry: Entry, found: Sequence[_Found]) -> Iterator[BenchmarkSpec]:
    """Yield all; those of the same name in two modules of a workspace are called by the whole path of their package."""
    names = [_joined(item.package.path.removeprefix(item.package.module).strip("/"), item.name) for item in found]
    times = Counter(names)
    for name, item in zip(names, found, strict=True):
        # In what it writes itself, the same may precede it.
        loop = replace(_LOOP, reported=rf"{re.escape(item.name)} *\t *(\d+)(?:\t|$)")
        whole = name if times[name] == 1 else _joined(item.package.path, item.name)
        yield entry.spec(printable(whole), item.command, cwd=item.package.folder, loop=loop, problem=item.problem)


def _joined(package: str, name: str) -> str:
    return f"{package}/{name}" if package else name


class _Asked:
    """Asks Go, and the programs that it builds, about an entry."""

    def __init__(self, entry: Entry, environ: Mapping[str, str]) -> None:
        self.entry, self.environ = entry, environ
        self.given = parse_command(entry.keys["go"], entry.each.place)
        self.cwd = entry.each.cwd / self.given.folder

    def go(self, *words: str, problem: str = "") -> str:
        """Return what a command of Go writes. MeasurementError if it fails."""
        problem = problem or f"'go {words[0]}' failed"
        return output_of(self.entry, ("go", *words), self.environ, problem, cwd=self.cwd, builds=True)

    def packages(self) -> list[_Package]:
        """Return the packages that have tests. MeasurementError for one that is not there."""
        found: list[_Package] = []
        for line in self.go("list", "-e", *self.given.build, "-f", _FIELDS, *self.given.packages).split("\0\n")[:-1]:
            path, folder, module, tests, error = line.split("\t", 4)
            if not folder:
                is_folder = path in self.given.packages and (self.cwd / path).is_dir()
                hint = f"the folder is ./{path}" if is_folder else "packages are as in: go test ./..."
                raise MeasurementError(f"{self.entry.each.place}: {printable(error)}", hint=hint)
            if tests:
                found.append(_Package(path, Path(folder), module, tests.split("/")[:-1]))
        return found

    def benchmarks(self, package: _Package) -> list[_Found]:
        """Return the benchmarks of a package; if it cannot be built or run, those in its source, with the reason."""
        try:
            command = (str(self._built(package.path)), "-test.run=^$", "-test.cpu=1")
            names = self._names(package, (*command, *self.given.program))
        except MeasurementError as error:
            place = f"{self.entry.each.place}: "
            problem = "\n".join(filter(None, (error.message.removeprefix(place), error.hint)))
            LOG.info(f"{place}{': '.join(dict.fromkeys((problem.splitlines()[0], problem.splitlines()[-1])))}")
            failing = ("go", "test", package.path)
            return [_Found(package, name, failing, problem) for name in package.names(self.given.bench)]
        pattern = {name: "/".join(map(exactly, name.split("/"))) for name in names}
        return [
            _Found(package, name, (*command, f"-test.bench={pattern[name]}", *self.given.program)) for name in names
        ]

    def _built(self, package: str) -> Path:
        store = self.entry.each.cwd.resolve() / STORE
        make_store(self.entry.each.cwd / STORE)  # which git ignores, and which may be a link
        build = self.given.build
        program = store / build_folder(self.entry, *build) / f"{quote(package, safe='')}.test"
        self.go("test", "-c", *build, f"-o={program}", package, problem=f"{package} could not be built")
        return program

    def _names(self, package: _Package, command: tuple[str, ...]) -> list[str]:
        """Run each benchmark for one iteration, and return their names. MeasurementError if the program never gets to them.

        After a panic, what follows it is run in another process.
        """
        said: list[str] = []
        begun: dict[str, None] = {}
        while True:
            over = "|".join((*filter(None, [self.given.skip]), *map(exactly, begun)))
            every = (*command, f"-test.bench={self.given.bench}", f"-test.skip={over}", "-test.benchtime=1x")
            environ = variables(self.entry, self.environ)
            done = ask(self.entry, (*every, "-test.v=test2json"), environ, cwd=package.folder)
            now = done.stdout.decode("utf-8", "backslashreplace").split(_MARK)[1:]
            said += now
            before = len(begun)
            begun |= dict.fromkeys(name.partition("/")[0] for name in map(_run, now) if name)
            if len(begun) == before or said[-1].startswith(_LAST):
                break
        if not begun and (done.status != 0 or not said):
            raise MeasurementError(f"{package.path} ran no benchmarks", hint=last_lines(done))
        return self._leaves(said)

    def _leaves(self, said: Sequence[str]) -> list[str]:
        """Return the names of what has run, but of groups; those that skip themselves are said."""
        names = [name for name in map(_run, said) if name]
        groups = {name[:end] for name in names for end, sign in enumerate(name) if sign == "/"}
        found: list[str] = []
        for part, following in pairwise((*said, "")):
            if (name := _run(part)) and name not in groups:
                if following.startswith(_SKIP):
                    why = printable(" ".join(part.split("\n", 2)[-1].split()))
                    LOG.info(f"{self.entry.each.place}: {printable(name)} is left out: it skips itself: {why}")
                else:
                    found.append(name)
            elif name and re.search(rf"{re.escape(name)} *\t *\d+[\t\n]", part):
                LOG.info(
                    f"{self.entry.each.place}: {printable(name)} is left out: the names of others begin with its name"
                )
        return found


def _run(part: str) -> str:
    """Return the name of the benchmark that begins in this part of the output, empty if none does."""
    return part.partition("\n")[0].removeprefix(_RUN) if part.startswith(_RUN) else ""


HARNESS = Go()
