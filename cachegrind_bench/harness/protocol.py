"""What an adapter does for its harness, and the list of those that there are.

A harness is a framework that has benchmarks of its own, as pytest. Its adapter is a module of this folder with the name of
the harness (`_` for `-`), whose `HARNESS` is a `Harness`; a key of the same name in `config/schema.py` makes it known.
"""

from __future__ import annotations

import mmap
import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from cachegrind_bench import process
from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry
from cachegrind_bench.config.schema import HARNESSES
from cachegrind_bench.errors import MeasurementError, StoreError, UsageError
from cachegrind_bench.log import LOG
from cachegrind_bench.measure.named_files import NamedFiles, named
from cachegrind_bench.measure.plan import Settings
from cachegrind_bench.measure.run import native_failure
from cachegrind_bench.model.result import Benchmark
from cachegrind_bench.model.text import grouped, printable, shortened
from cachegrind_bench.store.durable import read_file
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.measure.session import ValgrindSetup

# Bytes kept of a program's list, and read of a project's file.
LISTING_BYTES = 1 << 24
_LISTING_MS = 600_000
_TAIL_BYTES, _SHOWN = 4096, 80
# Of a file in which code is looked for; a program with debug information may have some hundred million.
_MOST_CODE_BYTES = 1 << 31


class Batch(Settings, frozen=True, kw_only=True):
    """Benchmarks of one entry to measure together: how, with which variables, at most `jobs` at a time.

    With `fail_fast` none is begun after one that failed.
    """

    entry: Entry
    specs: Sequence[BenchmarkSpec]
    env: tuple[str, ...]
    jobs: int
    fail_fast: bool


class Harness(ABC):
    """One harness. Where `together` is set, one call of `measure` measures many benchmarks.

    Else each spec that `listed` returns is measured as any benchmark of a configuration: by its command, and what of that is
    counted (`region`, `toggles`, `loop`).
    """

    together: ClassVar[bool] = False
    none_hint: ClassVar[str] = ""  # what to say where it has none

    def build(self, entry: Entry) -> str | None:
        """Return the shell command that builds the benchmarks, where the entry has no `setup`."""
        del entry
        return None

    def detect(self, root: Path) -> Sequence[str]:
        """Return what the keys are to say in a project in this folder, nothing if it has no benchmarks of this harness."""
        del root
        return ()

    def started(self, command: Sequence[str], cwd: Path) -> Sequence[str]:
        """Return the command that a user's command in this folder starts, if that only names it, as `npm run` does."""
        del cwd
        return command

    def value(self, command: Sequence[str]) -> tuple[str, ...]:
        """Return what the key would say, for the command by which a user starts the benchmarks."""
        return tuple(command)

    @abstractmethod
    def listed(self, entry: Entry, environ: Mapping[str, str]) -> Sequence[BenchmarkSpec]:
        """Return what there is, made by `entry.spec`; what is left out is said, and why.

        MeasurementError if it cannot be listed.
        """

    def measure(
        self,
        batch: Batch,
        ready: ValgrindSetup,
        done: Callable[[Benchmark, bytes], object],
        skip: Callable[[str, str], object],
    ) -> Sequence[Benchmark]:
        """Measure all and return them; one that failed has a status that says so, one that was skipped is not among them.

        Each may be handed to `done` as soon as its score, or how it failed, is known, with what its program wrote.
        `skip` is called with the id of each that its own code skips, and why.
        """
        del batch, ready, done, skip
        raise NotImplementedError


def harness_of(name: str) -> Harness:
    """Return the adapter for a harness."""
    found: Harness = import_module(f"{__package__}.{name.replace('-', '_')}").HARNESS
    return found


def starts(command: Sequence[str], program: str) -> bool:
    """Return whether a command starts this program. UsageError if it names the program's path: the one on PATH is used."""
    folder, name = os.path.split(command[0])
    if name == program and folder:
        hint = f"as in: PATH={folder}:$PATH cg-bench run --harness … -- {program} …"
        raise UsageError(f"cg-bench uses the {program} that is on PATH, not {command[0]}", hint=hint)
    return name == program


def detected(root: Path) -> dict[str, Sequence[str]]:
    """Return the keys that stand for the benchmarks of a project, with their values."""
    found: dict[str, Sequence[str]] = {}
    for name in HARNESSES:
        with suppress(OSError):  # a folder goes away meanwhile
            values = [value for value in harness_of(name).detect(root) if value.isprintable()]  # in a configuration
            found |= {name: values} if values else {}
    return found


def entry_of(name: str, command: Sequence[str], cwd: Path) -> Entry:
    """Return what stands for the benchmarks that this command runs. UsageError for what is not a harness."""
    if name not in HARNESSES:
        raise UsageError(f"--harness {name!r} is not known", hint=f"it is one of {', '.join(HARNESSES)}")
    each = BenchmarkSpec(id="", command=(), cwd=cwd, parameters={}, place=f"--harness {name}")
    harness = harness_of(name)
    return Entry(harness=name, keys={name: harness.value(harness.started(command, cwd))}, each=each)


class _Watched:
    """A program that is waited for: it is said how long already, and the last line that it wrote."""

    def __init__(self, what: str) -> None:
        self._what, self._waiting, self._tail = what, Waiting(), b""

    def take(self, chunk: bytes) -> None:
        """Take what it writes."""
        self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def look(self, seconds: float) -> None:
        """Take note of how long it has run."""
        said = self._tail.decode("utf-8", "replace").strip().splitlines()
        last = said[-1].strip("\x16 \t") if said else ""  # go test marks its lines
        self._waiting.look(self._what, seconds, shortened(last, _SHOWN))


def expanded(
    entries: Sequence[Entry],
    environ: Mapping[str, str],
    known: Collection[BenchmarkSpec],
) -> list[BenchmarkSpec]:
    """Return the benchmarks of these entries, built and listed. MeasurementError if that fails, UsageError for an id that is taken.

    Each build that begins is said, and what is left out.
    """
    taken = {spec.id: spec.place for spec in known}
    found: list[BenchmarkSpec] = []
    files, built = NamedFiles(), set[object]()
    for entry in entries:
        harness, each = harness_of(entry.harness), entry.each
        build = each.setup or harness.build(entry)
        same = build, each.cwd, each.env
        if build is not None and same not in built:
            built.add(same)
            LOG.info(f"setup: {build}")
            run = _Watched(build)
            if failure := native_failure(build, variables(entry, environ), each.cwd, run.look, run.take):
                raise MeasurementError(f"{each.place}: its setup failed with {failure[0]}: {build}", hint=failure[1])
        listed = harness.listed(entry, environ)
        if not listed:
            LOG.info(f"{each.place}: {entry.harness} lists no benchmarks{harness.none_hint}")
        for spec in listed:
            if spec.id in taken:
                raise UsageError(
                    f"{each.place}: {entry.harness} lists a benchmark {spec.id!r}, an id taken at {taken[spec.id]}",
                    hint='give the table an id of its own: id = "NAME" makes NAME/… of all that it lists',
                )
            taken[spec.id] = each.place
            found.append(spec)
        if len(entries) > 1:
            files.note(each.place, {path for spec in listed for path in named(spec.cwd, spec.command)})
    for place, path in files.overwritten().items():
        raise MeasurementError(
            f"{place}: another table built {path} anew, with other contents",
            hint='let each build files of its own, with Cargo by env = ["CARGO_TARGET_DIR=target/NAME"]',
        )
    return found


def ask(
    entry: Entry,
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    cwd: Path | None = None,
    builds: bool = False,
) -> process.Completed:
    """Run a command that says what benchmarks there are, in the entry's folder or another. MeasurementError if it never ends.

    It has ten minutes, or the table's time-out if that is more, and one that `builds` as long as it takes.
    """
    place, folder = entry.each.place, cwd or entry.each.cwd
    if "/" in command[0] and os.path.isdir(folder) and not os.path.lexists(folder / command[0]):
        hint = "build it; with a 'setup' in its table that does, 'ab' can measure other commits, too"
        raise MeasurementError(f"{place}: there is no program {command[0]}", hint=hint)
    seconds = None if builds else max(entry.each.timeout_ms or 0, _LISTING_MS) / 1000
    run = _Watched(shortened(" ".join(command), _SHOWN) if builds else command[0])
    done = process.run(
        command,
        env=environ,
        cwd=folder,
        timeout=seconds,
        echo=run.take,
        waiting=run.look,
        keep_output_limit=LISTING_BYTES,
        guarded=True,
    )
    if done.timed_out:
        hint = "a longer 'timeout' in its table gives it more"
        raise MeasurementError(f"{place}: {command[0]} did not list its benchmarks in {seconds:g} s", hint=hint)
    if len(done.stdout) >= LISTING_BYTES and not builds:
        raise MeasurementError(f"{place}: {command[0]} prints more than {grouped(LISTING_BYTES)} bytes as its list")
    return done


def output_of(
    entry: Entry,
    command: Sequence[str],
    environ: Mapping[str, str],
    problem: str,
    *,
    cwd: Path | None = None,
    builds: bool = False,
) -> str:
    """Return what a command that is asked writes, with the variables of its table. MeasurementError with this problem if it fails."""
    done = ask(entry, command, variables(entry, environ), cwd=cwd, builds=builds)
    if done.status != 0:
        raise MeasurementError(f"{entry.each.place}: {problem}", hint=last_lines(done))
    return done.stdout.decode("utf-8", "backslashreplace")


def variables(entry: Entry, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables of a command that lists or builds: all that there are, and those of the table."""
    return {**environ, **dict(item.split("=", 1) for item in entry.each.env if "=" in item)}


def last_lines(done: process.Completed, number: int = 40) -> str:
    """Return the last lines of a program's output in printable characters, or how it ended if it wrote nothing."""
    text = (done.stdout + done.stderr).decode("utf-8", "backslashreplace")
    return (
        "\n".join(printable(line) for line in text.splitlines()[-number:])
        or f"it wrote nothing, and ended with {done.end}"
    )


def check_version(entry: Entry, title: str, version: str, tested: Collection[str]) -> None:
    """Note that this version of a framework is not among those that were tested, which are given by their first numbers."""
    if version and not any(f"{version}.".startswith(f"{item}.") for item in tested):
        shown = (
            f"{entry.each.place}: {title} {printable(version)} is not a version that was tested ({', '.join(tested)})"
        )
        LOG.info(f"{shown}: what cannot be counted is an error, but look at the first counts")


def listed_once(entry: Entry, names: Iterable[str]) -> list[str]:
    """Return the names that a framework lists once; each that is listed twice is said."""
    found: list[str] = []
    for name, times in Counter(names).items():
        if times == 1:
            found.append(name)
        else:
            LOG.info(f"{entry.each.place}: {printable(name)} is left out: it is listed twice")
    return found


def found_programs(root: Path, patterns: Sequence[str], code: re.Pattern[bytes]) -> list[str]:
    """Return the programs with such names that are built in this project, in the first folder that has some, and have this in them."""
    places = ("build*/**/", "cmake-build*/**/", "out/**/", "")
    paths = (path for place in places for pattern in patterns for path in sorted(root.glob(f"{place}{pattern}")))
    own = (path for path in paths if "_deps" not in path.parts)  # where CMake builds what it has fetched
    programs = (path for path in own if path.is_file() and os.access(path, os.X_OK | os.R_OK))
    found = (str(path.relative_to(root)) for path in programs if _has(path, code))
    names = list(dict.fromkeys(name if "/" in name else f"./{name}" for name in found))
    return [name for name in names if name.partition("/")[0] == names[0].partition("/")[0]]


def _has(program: Path, code: re.Pattern[bytes]) -> bool:
    with code_of(program) as data:
        return code.search(data) is not None


@contextmanager
def code_of(program: Path) -> Generator[mmap.mmap | bytes]:
    """Map a program, to look into it; empty if it is not a file that can be one."""
    with ExitStack() as stack:
        data: mmap.mmap | bytes = b""
        with suppress(OSError, ValueError):  # the last for a path that cannot be one
            file = stack.enter_context(program.open("rb"))
            if 0 < os.fstat(file.fileno()).st_size <= _MOST_CODE_BYTES:
                data = stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        yield data


def text_of(path: Path) -> bytes:
    """Return a file of a project; empty if it cannot be read, or is larger than any that people write."""
    with suppress(OSError, StoreError):
        return read_file(path, LISTING_BYTES)
    return b""


def build_folder(entry: Entry, *options: str) -> str:
    """Return the name of the folder for what a harness builds, another one for each environment and `options`.

    All tables build before the first benchmark is measured: one must not write over what another one has built. All names
    have one length, as the program's path is in its memory.
    """
    return f"{entry.harness}-{sha256(repr((entry.each.env, options)).encode()).hexdigest()[:8]}"


def files_below(root: Path) -> Iterator[str]:
    """Yield the paths of the files below a project's folder, but not of hidden ones and of packages of JavaScript."""
    folders = [str(root)]  # no recursion: they may be nested deeper than Python's stack is
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield entry.path
                elif entry.name != "node_modules" and not entry.name.startswith("."):
                    folders.append(entry.path)


# Not ] and }: without the opening one they stand for themselves, and POSIX knows them only so.
_SIGNS, _ESCAPED = re.compile(r"[.^$*+?()\[{|\\]"), r"\\\g<0>"


def exactly(name: str) -> str:
    """Return a regular expression that only this name matches, in the notation that all engines have in common."""
    return f"^{_SIGNS.sub(_ESCAPED, name)}$"
