"""What the tests with a real Valgrind share: the command line as a user starts it, and ways to read what it left."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import importlib.metadata
import json
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import TOOLS, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent.parent
BEGIN, END = "<<<", ">>>"
LIMIT_S = 600  # JMH took 240 s on a slow machine


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finished:
    """How a `cg-bench` ended, what it said, and the result file it wrote, if any."""

    code: int
    stdout: str
    stderr: str
    result: dict[str, Any] | None

    @property
    def benchmark(self) -> dict[str, Any]:
        """Return the only benchmark of the result."""
        assert self.code == 0, self.stderr
        assert self.result is not None
        (benchmark,) = self.result["benchmarks"]
        return dict(benchmark)

    @property
    def counts(self) -> dict[str, int]:
        """Return the nine counts."""
        return dict(self.benchmark["counts"])

    @property
    def rows(self) -> list[list[Any]]:
        """Return every row of the profile, sorted, with its names written out."""
        assert self.result is not None
        strings = self.result["strings"]
        functions = self.benchmark["profile"]["functions"]
        return sorted([strings[file], strings[name], *counts] for file, name, *counts in functions)

    @property
    def said(self) -> str:
        """Return what the program wrote between its marks in its last execution."""
        assert self.code == 0, self.stderr
        return self.stderr.rpartition(BEGIN)[2].partition(END)[0].strip()


class CgBench:
    """Starts `cg-bench` in an empty working directory of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cwd = folder / "cwd"
        self.cwd.mkdir(exist_ok=True)
        self._number = 0

    def run(self, *command: str | Path, options: Sequence[str] = (), **how: Any) -> Finished:
        """Measure a command, with `-o` to a file outside the working directory."""
        self._number += 1
        output = self.folder / f"result{self._number}.json"
        output.unlink(missing_ok=True)
        words = ["run", "-o", str(output), *options, "--", *map(str, command)]
        return dataclasses.replace(self(*words, **how), result=_load(output))

    def __call__(
        self,
        *words: str,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        stdout: str = "pipe",
        before: Sequence[str] = (),
        prepare: Callable[[], None] | None = None,
    ) -> Finished:
        """Run `cg-bench` with these words; `before` is a program in front, `prepare` runs in the new process."""
        argv = [*before, *COMMAND, *words]

        def set_up() -> None:
            os.sched_setaffinity(0, cpus_of_worker())
            if prepare is not None:
                prepare()

        with _sink(stdout, self.folder) as (descriptor, read):
            done = subprocess.run(
                argv,
                cwd=cwd or self.cwd,
                env=environment(env or {}),
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=subprocess.PIPE,
                timeout=LIMIT_S,
                preexec_fn=set_up,
                check=False,
            )
        return Finished(code=done.returncode, stdout=read(), stderr=_text(done.stderr), result=None)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start `cg-bench` and return at once."""
        return subprocess.Popen(
            [*COMMAND, *words],
            cwd=self.cwd,
            env=environment({}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


COMMAND = (sys.executable, "-m", "cachegrind_bench")


def environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return our environment with these changes (None removes), and the checkout importable."""
    env = dict(os.environ)
    try:
        importlib.metadata.distribution("cachegrind-bench")
    except importlib.metadata.PackageNotFoundError:
        env.setdefault("PYTHONPATH", str(ROOT))
    for name, value in changes.items():
        env.pop(name, None)
        if value is not None:
            env[name] = value
    return env


def cpus_of_worker() -> set[int]:
    """Return CPUs for one xdist worker, such that the last, which a run is bound to, is not also the others'."""
    cpus = sorted(os.sched_getaffinity(0))
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    return set(cpus[: len(cpus) - int(worker.removeprefix("gw")) % len(cpus)])


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _load(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_bytes()) if path.exists() else None


@contextlib.contextmanager
def _sink(kind: str, folder: Path) -> Iterator[tuple[int, Callable[[], str]]]:
    """Give a descriptor of this kind to write to, and a function that returns what was written."""
    received = bytearray()
    if kind == "file":
        path = folder / "stdout"
        with path.open("wb") as file:
            yield file.fileno(), path.read_text
        return
    reader, writer = pty.openpty() if kind == "terminal" else os.pipe()

    def drain() -> None:
        with contextlib.suppress(OSError):  # a terminal that nobody has open any more
            while chunk := os.read(reader, 1 << 16):
                received.extend(chunk)

    thread = threading.Thread(target=drain, daemon=True)
    thread.start()

    def read() -> str:
        thread.join(10)
        return _text(bytes(received))

    try:
        yield writer, read
    finally:
        os.close(writer)
        thread.join(10)
        os.close(reader)


@pytest.fixture
def cg_bench(tmp_path: Path) -> CgBench:
    """Return the command line, ready to be started."""
    return CgBench(tmp_path)


@pytest.fixture
def files_left(cg_bench: CgBench) -> Callable[[], list[str]]:
    """Return a function that lists the working directory."""
    return lambda: sorted(os.listdir(cg_bench.cwd))


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one folder for all xdist workers, of the same name for each."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def once(shared_folder: Path) -> Callable[[str, Callable[[CgBench], Finished]], Finished]:
    """Return a function that measures once for all workers: the second to ask gets what the first one measured."""

    def once(name: str, measure: Callable[[CgBench], Finished]) -> Finished:
        path = shared_folder / f"{name}.json"
        with (shared_folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                return Finished(**json.loads(path.read_text()))
            folder = shared_folder / name
            folder.mkdir()
            finished = measure(CgBench(folder))
            path.write_text(json.dumps(dataclasses.asdict(finished)))
            return finished

    return once


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an empty project."""
    path = tmp_path / "project"
    path.mkdir()
    (path / "pytest.ini").write_text("[pytest]\n")
    return path


# --- Programs of other frameworks ----------------------------------------------------------------------------------------


@pytest.fixture
def google_benchmark(tmp_path: Path) -> Path:
    """Return a small program with Google Benchmark."""
    if not Path("/usr/include/benchmark/benchmark.h").exists():
        without("no libbenchmark-dev (`scripts/setup.sh test-slow` installs it)")
    program, source = tmp_path / "bench", ROOT / "tests" / "data" / "native" / "words_bench.cpp"
    subprocess.run(["g++", "-O2", "-g", source, "-lbenchmark", "-lpthread", "-o", program], check=True)
    return program


@pytest.fixture
def criterion() -> Path:
    """Return a small program with Criterion."""
    program = TOOLS / "criterion" / "words"
    if not program.exists():
        without("no benchmark with Criterion in .tools (`scripts/setup.sh test-slow` says why)")
    return program
