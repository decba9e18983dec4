"""The files by which pytest and the measured process talk: orders for each file and benchmark, and what became of them.

Names have a constant length, and each order a file of its own: nothing that the measured process reads, or forks with,
depends on which other benchmarks were chosen.
"""

from __future__ import annotations

import json
import marshal
import os
import struct
from collections.abc import Callable
from typing import Any, Required, TypeAlias, TypedDict

from cachegrind_bench.startup.os_functions import Real

# Past the numbers whose objects CPython always has (up to 256, from 3.15 on 1024): all others take memory, so all do.
FIRST = 10_000
# In the place of the number of a file: the process waits until all orders are written, or is above the files.
WAITING, NO_FILE = -2, -1
# In the place of the number of a benchmark: the process is at none.
NO_BENCHMARK = -1
# The variable with the top of the user's checkout, where a worktree of another commit is measured.
CHECKOUT = "CG_BENCH_CHECKOUT"
# The one with what `hermetic.place.Checkout` is then made of, as JSON.
WORKTREE = "CG_BENCH_WORKTREE"
# The one with the folder of results that its commits share, for --cached.
RESULTS = "CG_BENCH_RESULTS"
# The one with a file that names what was checked out, which is dated before it is measured.
CHECKED_OUT = "CG_BENCH_CHECKED_OUT"
# The one with a file that has the number of iterations for each benchmark, where results are to compare with earlier ones.
ITERATIONS = "CG_BENCH_ITERATIONS"
# CPython 3.11 and later specialise code while it warms up: after five calls, and after ten, the same instructions were counted of
# twenty functions of real suites on CPython 3.11, 3.12 and 3.13 each; after three or four, two differed on 3.11.
WARM_UP = 5
# By the names of types, the names that are looked up in them. Not by their places: these depend on what was imported, and
# where tests are compiled that is more.
LookUps: TypeAlias = "dict[str, list[str]]"
# As what a report says which options could not be unpickled, and why.
LEFT_BEHIND = "cg_bench_left_behind"


class ImportOrders(TypedDict):
    """How the measured process imports pytest and its plugins."""

    sys_path: list[str]
    distributions: list[str]  # where the metadata is of those that have plugins
    blocked: list[str]  # plugins, by their names
    autoload: bool  # whether plugins are loaded without being named


class RootOrders(ImportOrders):
    """The orders for all files of tests."""

    warm_up: int  # how many calls
    batches: tuple[int, ...]  # how many calls to count in each try
    layouts: int  # memory layouts


class FileOrders(TypedDict):
    """The orders for one file of tests. Options are by the names of their values."""

    file: str
    args: list[str]  # of pytest
    # More of them: what comes before and after the folder for temporary files, which is known inside.
    in_tmp: list[tuple[str, str]]
    options: dict[str, Any]
    pickled: dict[str, bytes]  # other options
    shown: bytes  # options by which failures are shown, as JSON
    settings: list[str]  # names that ini-files may have
    markers: list[str]  # lines of the setting `markers`
    stand_ins: list[str]  # blocked plugins that a conftest.py is to find all the same
    spellings: dict[str, str]  # names of values, by how their options are written


class Ending(TypedDict, total=False):
    """How a process ended that did not report: both keys are there, or none."""

    status: int  # what waitpid says of it
    log: str  # where a signal killed it: what Valgrind said last


class Layout(TypedDict):
    """The calls that count in one memory layout."""

    pid: int  # of the process that called
    after: int  # the number of the last part that it had written before
    calls: int  # how many
    settled: bool  # whether the last ones agree


class Measured(TypedDict):
    """The counted calls of a benchmark, by memory layout, or its look-ups."""

    name: str  # by which its parts are kept
    look_ups: LookUps  # none under Valgrind
    layouts: list[Layout]  # none without Valgrind


class Report(Ending, total=False):
    """The report on a benchmark. Its process writes the report; if its process ended too early, the parent does, with an ending."""

    reports: Required[list[dict[str, Any]]]  # pytest's, one for each phase of the test; none if the test could not end
    text: str  # without reports: the traceback, and what was printed
    died: str  # why it has no reports, to follow "this benchmark"; with an ending, only if it was stopped for taking too long
    trouble: str  # why it was not run: put in place of a report that does not come
    exit: str  # what it called pytest.exit with
    wall_ms: int  # how long its test took
    meter: Measured | None  # None if nothing was


class Trouble(Ending, total=False):
    """Why nothing more comes from a file of tests: its process says so in `text`, or the process above with an ending."""

    text: str
    at: int  # with an ending: the number of the benchmark at which it ended


class Exchange:
    """The files in one lane's folder. Files of tests and the benchmarks in each are numbered from FIRST."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.root = f"{path}/root"  # orders for all files of tests
        self.stop = f"{path}/stop"  # exists once no further benchmark is to begin
        self.current = f"{path}/now"  # the process at work, and the numbers of its file and its benchmark
        self.caches = f"{path}/caches"  # where Python looked for compiled modules before the first file of tests
        self.gate = f"{path}/gate"  # a FIFO: the measured process waits there until all orders are written

    def file(self, number: int) -> str:
        """The orders for a file of tests."""
        return f"{self.path}/file.{number:06}"

    def trouble(self, number: int) -> str:
        """Why nothing more comes from a file of tests."""
        return f"{self.path}/over.{number:06}"

    def warming(self, number: int) -> str:
        """A folder for what the process of a file writes and reads before it forks for the first benchmark."""
        return f"{self.path}/warming.{number:06}"

    def benchmark(self, number: int, index: int) -> str:
        """The orders for a benchmark: the id of its node."""
        return f"{self.path}/test.{number:06}.{index:06}"

    def look_ups(self, number: int, index: int) -> str:
        """What a benchmark looks up in types; read when it comes to that, as it may take more memory or less."""
        return f"{self.path}/look.{number:06}.{index:06}"

    def report(self, number: int, index: int) -> str:
        """What became of a benchmark."""
        return f"{self.path}/done.{number:06}.{index:06}"


# Of marshal: in later ones, what is written depends on whether equal values are one object, and values refer to others.
FORMAT = 2


def write_order(path: str, order: Any) -> None:
    """Write an order, where there is no file yet; ValueError for what is not a plain value."""
    with open(path, "xb") as file:
        marshal.dump(order, file, FORMAT)


def translated(value: Any, translate: Callable[[str], str]) -> Any:
    """Return an order or a report with all text in it translated but the keys of dictionaries."""
    plain: Any = value
    if isinstance(value, str):
        return translate(value)
    if isinstance(value, list | tuple):
        return type(plain)(translated(item, translate) for item in plain)
    if isinstance(value, dict):
        return {key: translated(item, translate) for key, item in plain.items()}
    return plain


def storable(text: str) -> str:
    """Return a text as result files have it: bytes of names that are not UTF-8 as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def read_order(path: str) -> Any:
    """Read an order. FileNotFoundError if it is not there."""
    with Real.open(path, "rb") as file:
        return marshal.load(file)


def is_plain(value: Any) -> bool:
    """Return whether this can be part of an order."""
    try:
        marshal.dumps(value, FORMAT)
    except ValueError:
        return False
    return True


def write_report(path: str, report: Any) -> None:
    """Write a report, so that it is there whole or not at all. What is not a plain value in it becomes text."""
    try:
        data = marshal.dumps(report, FORMAT)
    except ValueError:
        try:
            data = marshal.dumps(json.loads(json.dumps(report, default=repr)), FORMAT)
        except (ValueError, TypeError, RecursionError) as error:
            data = marshal.dumps({"reports": [], "died": f"reported what cannot be passed on: {error}"}, FORMAT)
    with Real.open(f"{path}.new", "wb") as file:
        file.write(data)
    Real.rename(f"{path}.new", path)


def write_current(path: str, *numbers: int) -> None:
    """Write numbers in a constant length, and in a constant way (marshal keeps book of objects that come twice)."""
    file = Real.open_number(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        Real.write(file, b"".join([number.to_bytes(4, "little", signed=True) for number in numbers]))
    finally:
        Real.close(file)


def read_current(path: str) -> tuple[int, ...] | None:
    """Read three numbers; None if they are not there, or not yet."""
    try:
        file = Real.open_number(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return struct.unpack("<3i", Real.read(file, 13))
    except (OSError, struct.error):
        return None
    finally:
        Real.close(file)
