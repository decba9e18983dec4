"""What frameworks of Rust have in common: Cargo builds their programs, which list their benchmarks as a line for each."""

from __future__ import annotations

import re
import shlex
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import msgspec

from cachegrind_bench.config.suggestions import quoted
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.protocol import Harness, Listed, check_version, code_of, listed_once, output_of, text_of
from cachegrind_bench.model.text import printable

if TYPE_CHECKING:
    from mmap import mmap

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry
    from cachegrind_bench.valgrind.options import Loop

_VERSION = re.compile(r"[#@ ](\d+\.\d+\.\S+)")  # in the id of a package
_LISTED = re.compile(r"(.+): bench(?:mark)?")


class _Target(msgspec.Struct, frozen=True):
    name: str
    kind: Sequence[str]


class _Message(msgspec.Struct, frozen=True, kw_only=True):
    """What Cargo says of a target that it built."""

    target: _Target
    package_id: str = ""
    manifest_path: str = ""
    executable: str | None = None


class Cargo(Harness):
    """Benchmarks of a framework that is called `title`. An id begins with the name of its bench target.

    `key` is that of the configuration, and `package` is a regular expression for the dependency.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    package: ClassVar[bytes]
    tested: ClassVar[tuple[str, ...]]
    list_words: ClassVar[tuple[str, ...]] = ("--bench", "--list")
    list_env: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def loop(self, program: mmap | bytes) -> Loop | None:
        """Return how the iterations of this program are counted, None if it is not one of this framework."""

    @abstractmethod
    def words(self, name: str) -> tuple[str, ...]:
        """Return what has a program run this benchmark alone."""

    def detect(self, root: Path) -> Sequence[str]:
        """Look for the framework among the dependencies of a package or workspace."""
        dependency = re.compile(rb"^ *(%b\b|\[.*dependencies\.%b\])" % (self.package, self.package), re.MULTILINE)
        manifests = [root / "Cargo.toml", *sorted(root.glob("*/Cargo.toml")), *sorted(root.glob("*/*/Cargo.toml"))]
        texts = map(text_of, manifests)
        return (".",) if (root / "Cargo.toml").is_file() and any(map(dependency.search, texts)) else ()

    def value(self, command: Sequence[str]) -> tuple[str, ...]:
        """Take `cargo bench` with options, or a folder."""
        return (".", *command[2:]) if tuple(command[:2]) == ("cargo", "bench") else tuple(command)

    def build(self, entry: Entry) -> str:
        """Return the command that builds all."""
        return shlex.join(self._cargo(entry))

    def listed(
        self, entry: Entry, environ: Mapping[str, str], note: Callable[[str], object]
    ) -> Sequence[BenchmarkSpec]:
        """Ask Cargo for its programs, and those of this framework for what they have."""
        programs = self._programs(entry, environ, note)
        targets = Counter(program.target.name for program in programs)
        found = Listed(entry)
        hint = "they are programs of a [[bench]] table with harness = false"
        for program in programs:
            target, executable = program.target.name, str(program.executable)
            folder = Path(program.manifest_path).parent
            with code_of(Path(executable)) as data:
                if not data:
                    raise MeasurementError(f"{entry.each.place}: cannot read {printable(executable)}")
                loop = self.loop(data)
                seen = loop is not None and loop.sections is not None and loop.sections.begin and loop.sections.end
                stripped = not seen and data.find(b"\0.symtab\0") < 0
            if stripped:
                hint = self._with(entry, "without stripping it", "strip=false")
            if loop is None:
                why = (
                    f"is stripped, so {self.title} is not seen in it"
                    if stripped
                    else f"has no benchmarks of {self.title}"
                )
                note(f"{entry.each.place}: the bench target {target} of {folder.name} is left out: it {why}")
                continue
            if not seen:
                raise MeasurementError(
                    f"{entry.each.place}: in the bench target {target} of {folder.name} no function has a name by which "
                    f"{self.title}'s clock is seen: {'it is stripped' if stripped else 'LTO has inlined them'}",
                    hint=hint if stripped else self._with(entry, "without LTO", "lto=false"),
                )
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
                hint=hint,
            )
        return found

    def _with(self, entry: Entry, how: str, option: str) -> str:
        """Return advice to build with another option of the profile."""
        value = shlex.join((*entry.keys[self.key], "--config", f"profile.bench.{option}"))
        return f"build it {how}: {self.key} = {quoted(value)}"

    def _folder(self, entry: Entry) -> Path:
        return entry.each.cwd / str(entry.keys[self.key][0])

    def _cargo(self, entry: Entry, *options: str) -> tuple[str, ...]:
        folder, *others = entry.keys[self.key]
        return ("cargo", "bench", "--no-run", f"--manifest-path={folder}/Cargo.toml", *options, *others)

    def _programs(self, entry: Entry, environ: Mapping[str, str], note: Callable[[str], object]) -> list[_Message]:
        """Return what Cargo says of its bench targets, in the order of their packages and names."""
        command = self._cargo(entry, "--message-format=json")
        text = output_of(entry, command, environ, note, "Cargo could not build the benchmarks", builds=True)
        messages: list[_Message] = []
        decoder = msgspec.json.Decoder(_Message)
        for line in text.splitlines():
            with suppress(msgspec.DecodeError, RecursionError):  # of another kind, or a macro wrote it
                messages.append(decoder.decode(line))
        used = {item.package_id for item in messages if item.target.name == self.key}
        for version in sorted({match[1] for match in map(_VERSION.search, used) if match}):
            check_version(entry, self.title, version, self.tested, note)
        programs = (item for item in messages if item.executable and "bench" in item.target.kind)
        return sorted(programs, key=lambda item: (item.manifest_path, item.target.name))
