"""What frameworks of Rust have in common: Cargo builds their programs, which list their benchmarks as a line for each."""

from __future__ import annotations

import json
import mmap
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.protocol import Harness, listed_once, output_of
from cachegrind_bench.model.text import printable

if TYPE_CHECKING:
    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry
    from cachegrind_bench.valgrind.options import Loop

_LISTED = re.compile(r"(.+): bench(?:mark)?")


class Cargo(Harness):
    """Benchmarks of a framework that is called `title`. An id begins with the name of its bench target.

    `key` is that of the configuration, and `package` is a regular expression for the dependency.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    package: ClassVar[bytes]
    list_words: ClassVar[tuple[str, ...]] = ("--bench", "--list")
    list_env: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def loop(self, program: mmap.mmap) -> Loop | None:
        """Return how the iterations of this program are counted, None if it is not one of this framework."""

    @abstractmethod
    def words(self, name: str) -> tuple[str, ...]:
        """Return what has a program run this benchmark alone."""

    def detect(self, root: Path) -> str | None:
        """Look for the framework among the dependencies of a package or workspace."""
        dependency = re.compile(rb"^ *(%b\b|\[.*dependencies\.%b\])" % (self.package, self.package), re.MULTILINE)
        manifests = [root / "Cargo.toml", *sorted(root.glob("*/Cargo.toml")), *sorted(root.glob("*/*/Cargo.toml"))]
        texts = (path.read_bytes() for path in manifests if path.is_file())
        return "." if (root / "Cargo.toml").is_file() and any(map(dependency.search, texts)) else None

    def value(self, command: Sequence[str]) -> tuple[str, ...]:
        """Take `cargo bench` with options, or a folder."""
        return (".", *command[2:]) if tuple(command[:2]) == ("cargo", "bench") else tuple(command)

    def build(self, entry: Entry) -> str:
        """Return the command that builds all."""
        return " ".join(self._cargo(entry))

    def listed(
        self, entry: Entry, environ: Mapping[str, str], note: Callable[[str], object]
    ) -> Sequence[BenchmarkSpec]:
        """Ask Cargo for its programs, and those of this framework for what they have."""
        programs = self._programs(entry, environ, note)
        targets = Counter(program["target"]["name"] for program in programs)
        found: list[BenchmarkSpec] = []
        for program in programs:
            target, executable = program["target"]["name"], program["executable"]
            folder = Path(program["manifest_path"]).parent
            with open(executable, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                loop = self.loop(data)
                stripped = loop is None and data.find(b"\0.symtab\0") < 0
            if loop is None:
                why = "is stripped" if stripped else f"has no benchmarks of {self.title}"
                note(f"{entry.each.place}: the bench target {target} of {folder.name} is left out: it {why}")
                continue
            if loop.sections is None or not (loop.sections.begin and loop.sections.end):
                raise self._unseen(entry, f"{target} of {folder.name}")
            problem = f"{executable} did not list its benchmarks"
            words, variables = (executable, *self.list_words), {**environ, **self.list_env}
            text = output_of(entry, words, variables, note, problem, cwd=folder)
            group = f"{folder.name}/{target}" if targets[target] > 1 else target
            names = [match[1] for line in text.splitlines() if (match := _LISTED.fullmatch(line))]
            env = (*entry.each.env, f"CARGO_MANIFEST_DIR={folder}")
            for name in listed_once(entry, names, note):
                identity = printable(f"{group}/{name.removeprefix(f'{target}::')}")
                command = (executable, *self.words(name))
                found.append(entry.spec(identity, command, cwd=folder, env=env, loop=loop))
        if not found:
            raise MeasurementError(
                f"{entry.each.place}: Cargo built no benchmarks of {self.title} in {self._folder(entry)}",
                hint="they are programs of a [[bench]] table with harness = false",
            )
        return found

    def _unseen(self, entry: Entry, target: str) -> MeasurementError:
        """Return the error of a program without the functions that start and stop the framework's clock."""
        value = " ".join(entry.keys[self.key])
        return MeasurementError(
            f"{entry.each.place}: in the bench target {target} no function is left that starts and stops {self.title}'s clock: "
            "LTO has inlined it, or the program is stripped",
            hint=f'build it without LTO: {self.key} = "{value} --config profile.bench.lto=false" (or profile.bench.strip=false)',
        )

    def _folder(self, entry: Entry) -> Path:
        return entry.each.cwd / str(entry.keys[self.key][0])

    def _cargo(self, entry: Entry, *options: str) -> tuple[str, ...]:
        folder, *others = entry.keys[self.key]
        return ("cargo", "bench", "--no-run", f"--manifest-path={folder}/Cargo.toml", *options, *others)

    def _programs(
        self, entry: Entry, environ: Mapping[str, str], note: Callable[[str], object]
    ) -> list[dict[str, Any]]:
        """Return what Cargo says of its bench targets, in the order of their packages and names."""
        command = self._cargo(entry, "--message-format=json")
        text = output_of(entry, command, environ, note, "Cargo could not build the benchmarks", builds=True)
        messages = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
        programs = (item for item in messages if item.get("executable") and "bench" in item["target"]["kind"])
        return sorted(programs, key=lambda item: (item["manifest_path"], item["target"]["name"]))
