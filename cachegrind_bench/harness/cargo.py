"""What frameworks of Rust have in common: Cargo builds their programs, which list their benchmarks as a line for each."""

from __future__ import annotations

import os
import re
import shlex
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import msgspec

from cachegrind_bench.config.suggestions import quoted
from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.harness.protocol import Harness, check_version, code_of, listed_once, output_of, text_of
from cachegrind_bench.log import LOG
from cachegrind_bench.model.text import printable

if TYPE_CHECKING:
    from mmap import mmap

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry
    from cachegrind_bench.harness.engine.loop import Loop

_VERSION = re.compile(r"[#@ ](\d+\.\d+\.\S+)")  # in the id of a package
# Options of `cargo bench` that are followed by a value: of the words that are left, before -- as well, the first is a filter.
_WITH_VALUE = re.compile(
    "-[pjFZC]|--(package|exclude|jobs|bench|bin|example|test|features|target|target-dir|profile|message-format|manifest-path|config|color"
    "|lockfile-path)"
)
_OURS = ("--no-run", "--message-format", "--manifest-path")
_WORKSPACE = re.compile(rb"^ *\[workspace\b", re.MULTILINE)
_EXCLUDED = re.compile(rb"^ *exclude *= *\[([^]]*)", re.MULTILINE)
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


def _options(words: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the words in front of -- by the name of the option that they belong to, and others by themselves."""
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        yield name, [word, *([next(rest, "")] if _WITH_VALUE.fullmatch(name) and not equals else [])]


def _is_apart(manifest: Path, top: Path) -> bool:
    """Return whether Cargo builds this package, in a folder of the package or workspace `top`, only if it is called for it."""
    own, above = text_of(manifest), text_of(top)
    name = re.compile(rb"[\"'](\./)?%b/?[\"']" % re.escape(os.fsencode(manifest.parent.name)))
    named = any(name.search(left_out) for left_out in _EXCLUDED.findall(above))
    return not _WORKSPACE.search(above) or bool(_WORKSPACE.search(own)) or named


class Cargo(Harness):
    """Benchmarks of a framework that is called `title`. An id begins with the name of its bench target.

    `key` is that of the configuration, and `package` is a regular expression for the dependency. Of the framework's options,
    `choosing` choose benchmarks, and `without_value` and others `with_value` mean nothing where iterations are counted.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    package: ClassVar[bytes]
    tested: ClassVar[tuple[str, ...]]
    choosing: ClassVar[tuple[str, ...]]
    with_value: ClassVar[re.Pattern[str]]
    without_value: ClassVar[re.Pattern[str]]
    list_words: ClassVar[tuple[str, ...]] = ("--bench", "--list")
    list_env: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def loop(self, program: mmap | bytes) -> Loop | None:
        """Return how the iterations of this program are counted, None if it is not one of this framework."""

    def unfit(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return which of the listed names cannot be measured, and why."""
        del names
        return {}

    @property
    def unseen(self) -> str:
        """Why no clock was read in a program that has its functions."""
        return f"{self.title} ran no benchmark of this name, or the benchmark did not use the Bencher that it got"

    @abstractmethod
    def words(self, name: str) -> tuple[str, ...]:
        """Return what has a program run this benchmark alone."""

    def detect(self, root: Path) -> Sequence[str]:
        """Look for the framework among the dependencies of a package or workspace, else of packages right below that are not in it."""
        dependency = re.compile(rb"^ *(%b\b|\[.*dependencies\.%b\])" % (self.package, self.package), re.MULTILINE)
        top = root / "Cargo.toml"
        if not top.is_file():
            return ()
        beside, others = sorted(root.glob("*/Cargo.toml")), sorted(root.glob("*/*/Cargo.toml"))
        apart = [path for path in beside if _is_apart(path, top)]
        joint = [top, *(path for path in (*beside, *others) if path not in apart)]
        if any(dependency.search(text_of(path)) for path in joint):
            return (".",)
        return [path.parent.name for path in apart if dependency.search(text_of(path))]

    def value(self, command: Sequence[str]) -> tuple[str, ...]:
        """Take `cargo bench` with options, or a folder."""
        if Path(command[0]).name != "cargo":
            return tuple(command)
        if "bench" not in command:
            hint = f"as in: --harness {self.key} -- cargo bench --features fast"
            raise UsageError(f"--harness {self.key} does not know the command {shlex.join(command)}", hint=hint)
        at = command.index("bench")
        return (".", *command[1:at], *command[at + 1 :])

    def build(self, entry: Entry) -> str:
        """Return the command that builds all."""
        return shlex.join(self._cargo(entry))

    def listed(self, entry: Entry, environ: Mapping[str, str]) -> Sequence[BenchmarkSpec]:
        """Ask Cargo for its programs, and those of this framework for what they have."""
        chosen = self._chosen(entry)
        programs = self._programs(entry, environ)
        targets = Counter(program.target.name for program in programs)
        found: list[BenchmarkSpec] = []
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
                LOG.info(f"{entry.each.place}: the bench target {target} of {folder.name} is left out: it {why}")
                continue
            if not seen:
                raise MeasurementError(
                    f"{entry.each.place}: in the bench target {target} of {folder.name} no function has a name by which "
                    f"{self.title}'s clock is seen: {'it is stripped' if stripped else 'LTO has inlined them'}",
                    hint=hint if stripped else self._with(entry, "without LTO", "lto=false"),
                )
            problem = f"{executable} did not list its benchmarks"
            words, variables = (executable, *self.list_words, *chosen), {**environ, **self.list_env}
            text = output_of(entry, words, variables, problem, cwd=folder)
            group = f"{folder.name}/{target}" if targets[target] > 1 else target
            names = [match[1] for line in text.splitlines() if (match := _LISTED.fullmatch(line))]
            env = (*entry.each.env, f"CARGO_MANIFEST_DIR={folder}")
            unfit = self.unfit(names)
            for name, why in unfit.items():
                LOG.info(f"{entry.each.place}: {printable(name)} is left out: {why}")
            for name in listed_once(entry, (name for name in names if name not in unfit)):
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
        words = list(entry.keys[self.key])
        end = words.index("--") if "--" in words else len(words)
        words[end:end] = ["--config", f"profile.bench.{option}"]
        return f"build it {how}: {self.key} = {quoted(shlex.join(words))}"

    def _folder(self, entry: Entry) -> Path:
        return entry.each.cwd / str(entry.keys[self.key][0])

    def _cargo(self, entry: Entry, *options: str) -> tuple[str, ...]:
        folder, *words = entry.keys[self.key]
        words = words[: words.index("--")] if "--" in words else words
        toolchain = [word for word in words if word.startswith("+")]
        manifest, others = f"{folder}/Cargo.toml", list[str]()
        for name, value in _options(word for word in words if word not in toolchain):
            if name == "--manifest-path":
                manifest = value[-1].removeprefix(f"{name}=")
            elif name not in _OURS and name.startswith("-"):
                others += value
        return ("cargo", *toolchain, "bench", "--no-run", f"--manifest-path={manifest}", *options, *others)

    def _chosen(self, entry: Entry) -> tuple[str, ...]:
        """Return the words that choose benchmarks of a program. UsageError for an option of the framework that is not known."""
        words = list(entry.keys[self.key][1:])
        end = words.index("--") if "--" in words else len(words)
        found = [name for name, _ in _options(words[:end]) if not name.startswith(("-", "+"))]
        rest = iter(words[end + 1 :])
        for word in rest:
            name, equals, _ = word.partition("=")
            if self.with_value.fullmatch(name):
                value = [] if equals else [next(rest, "")]
                found += [word, *value] if name in self.choosing else []
            elif name in self.choosing or not name.startswith("-"):
                found.append(word)
            elif not self.without_value.fullmatch(name):
                raise UsageError(
                    f"{entry.each.place}: {self.title}'s option {name} is not known to cg-bench",
                    hint=f"of what follows --, filters, {', '.join(self.choosing)} choose benchmarks",
                )
        return tuple(found)

    def _programs(self, entry: Entry, environ: Mapping[str, str]) -> list[_Message]:
        """Return what Cargo says of its bench targets, in the order of their packages and names."""
        command = self._cargo(entry, "--message-format=json")
        text = output_of(entry, command, environ, "Cargo could not build the benchmarks", builds=True)
        messages: list[_Message] = []
        decoder = msgspec.json.Decoder(_Message)
        for line in text.splitlines():
            with suppress(msgspec.DecodeError):  # of another kind, or a macro wrote it
                messages.append(decoder.decode(line))
        used = {item.package_id for item in messages if item.target.name == self.key}
        for version in sorted({match[1] for match in map(_VERSION.search, used) if match}):
            check_version(entry, self.title, version, self.tested)
        programs = (item for item in messages if item.executable and "bench" in item.target.kind)
        return sorted(programs, key=lambda item: (item.manifest_path, item.target.name))
