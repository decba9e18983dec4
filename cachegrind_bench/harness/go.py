"""Benchmarks of `go test`: `testing.B` calls functions of its own, and `time.Now`, where its timer starts and stops.

Only entries of functions are looked for: Valgrind cannot follow returns where goroutines take turns on one thread. It then
takes the return into a function for an entry, as after the garbage collector's statistics were read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.protocol import (
    Harness,
    Listed,
    at_most,
    build_folder,
    check_version,
    exactly,
    files_below,
    output_of,
    text_of,
)
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.model.text import printable
from cachegrind_bench.store.baselines import STORE, make_store
from cachegrind_bench.valgrind.options import Loop, Sections

if TYPE_CHECKING:
    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry

_FUNCTION = re.compile(rb"^func Benchmark", re.MULTILINE)
_TESTED = ("1.26",)
_LINE = re.compile(r"(?<!\S)(Benchmark\S*+)\s++\d++\s+[\d.]+ ns/op")
# Twice, as a benchmark with b.Loop has no first iteration that warms it up.
_LOOP = Loop(
    reported=r"^Benchmark\S*\s+(\d+)\s",
    words={number: (f"-test.benchtime={number}x", "-test.count=2") for number in (1, 10, 100, 1000)},
    native=("-test.benchtime=1x",),
    sections=Sections(
        begin=("before:testing.(*B).StartTimer", "before:testing.(*B).ResetTimer"),
        settle=("before:time.Now",),
        end=("before:testing.(*B).StopTimer",),
        reset=("before:testing.(*B).ResetTimer",),
        finish=("before:testing.(*B).runN.func1", "before:testing.(*B).runN.deferwrap1"),
        patterns=("before:time.Now", "before:testing.(*B).*r*"),
    ),
    clock=PINNED_CLOCK._replace(step_ns=1000),
)


class Go(Harness):
    """Each package becomes a program, whose benchmarks are known once each has run for one iteration."""

    def detect(self, root: Path) -> Sequence[str]:
        """Look for benchmarks in the tests of a module."""
        if not (root / "go.mod").is_file():
            return ()
        tests = (Path(path) for path in files_below(root) if path.endswith("_test.go"))
        return ("./...",) if any(_FUNCTION.search(text_of(path)) for path in tests) else ()

    def value(self, command: Sequence[str]) -> tuple[str, ...]:
        """Take `go test` with packages and options, of which those that choose benchmarks say nothing here, or packages."""
        words = command[2:] if tuple(command[:2]) == ("go", "test") else command
        return tuple(word for word in words if not word.startswith("-")) or (".",)

    def listed(
        self, entry: Entry, environ: Mapping[str, str], note: Callable[[str], object]
    ) -> Sequence[BenchmarkSpec]:
        """Build the packages that have tests, and run what they have."""
        version = _go(entry, environ, note, "env", "GOVERSION").strip().removeprefix("go")
        check_version(entry, "Go", version, _TESTED, note)
        found = Listed(entry)
        for package, directory, module in _packages(entry, environ, note):
            program = _built(entry, package, environ, note)
            folder = Path(directory)
            command = (str(program), "-test.run=^$", "-test.cpu=1")
            every = (*command, "-test.bench=.", "-test.benchtime=1x")
            text = output_of(entry, every, environ, note, f"{package} failed", cwd=folder)
            inside = package.removeprefix(module).strip("/")
            for name in at_most(entry, dict.fromkeys(_LINE.findall(text))):
                pattern = "/".join(map(exactly, name.split("/")))
                identity = printable(f"{inside}/{name}" if inside else name)
                found.append(entry.spec(identity, (*command, f"-test.bench={pattern}"), cwd=folder, loop=_LOOP))
        if not found:
            raise MeasurementError(f"{entry.each.place}: there are no benchmarks in {' '.join(entry.keys['go'])}")
        return found


def _go(entry: Entry, environ: Mapping[str, str], note: Callable[[str], object], *words: str) -> str:
    return output_of(entry, ("go", *words), environ, note, f"'go {words[0]}' failed", builds=True)


def _packages(entry: Entry, environ: Mapping[str, str], note: Callable[[str], object]) -> list[list[str]]:
    """Return the import path, the folder, and the path of the module, of each package that has tests."""
    fields = "{{.ImportPath}}\t{{.Dir}}\t{{with .Module}}{{.Path}}{{end}}"
    text = _go(
        entry,
        environ,
        note,
        "list",
        "-f",
        f"{{{{if or .TestGoFiles .XTestGoFiles}}}}{fields}{{{{end}}}}",
        *entry.keys["go"],
    )
    lines = [line.split("\t") for line in text.split("\n")]
    return [line for line in lines if len(line) == fields.count("\t") + 1]


def _built(entry: Entry, package: str, environ: Mapping[str, str], note: Callable[[str], object]) -> Path:
    store = entry.each.cwd.resolve() / STORE
    make_store(entry.each.cwd / STORE)  # which git ignores, and which may be a link
    program = store / build_folder(entry) / f"{quote(package, safe='')}.test"
    _go(entry, environ, note, "test", "-c", f"-o={program}", package)
    return program


HARNESS = Go()
