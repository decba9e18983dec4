"""pytest in the measured process: collects one file of tests, and forks for each of its benchmarks.

Does as a worker of pytest-xdist does: options and import path come from the pytest that was called, and reports go back.
"""

from __future__ import annotations

import functools
import gc
import inspect
import json
import os
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Container, Generator
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

import _pytest.main
import _pytest.python
import pytest
from _pytest.config import Config

from cachegrind_bench.pytest_plugin import fixture
from cachegrind_bench.pytest_plugin.cpython.fresh_heap import take_free_memory
from cachegrind_bench.pytest_plugin.cpython.type_versions import remember_types
from cachegrind_bench.pytest_plugin.inner.forking import at_work, flush, fork_for_each, how_it_ended, read_next_order
from cachegrind_bench.pytest_plugin.inner.meter import Meter, deep, seed_all
from cachegrind_bench.startup import removal
from cachegrind_bench.startup.exchange import LEFT_BEHIND, Exchange, FileOrders, Report, read_order, write_report
from cachegrind_bench.startup.import_finder import replace_until_measured
from cachegrind_bench.startup.os_functions import Real

_MOST_ADDED = 1000
_NO_TIMES = "cg-bench takes no times, so benchmark.stats is None: make this assertion only without --cg-bench (if benchmark.stats: ...)"


def run_file(exchange: Exchange, number: int, meter: Meter, orders: FileOrders) -> str | None:
    """Collect a file and measure its benchmarks; return why that was not possible, None if it was."""
    tmp = os.environ["TMPDIR"]  # before any code of the project, which may name a folder of its own
    look_only_towards(orders["file"])
    own = [f"{before}{tmp}{after}" for before, after in orders["in_tmp"]]
    config = Config.fromdictargs(orders["options"], [*own, *orders["args"]])
    # By now conftest.py is there, and with it what types of its own there are.
    left = _unpickle(orders["pickled"], config)
    fixture.provide(config)
    fixture.stand_in(config, orders["stand_ins"], orders["spellings"])
    # Those of plugins that are blocked here; a name that is not known is a warning, and that may be an error.
    parser = config._parser  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    for name in orders["settings"]:
        if name not in parser._inidict:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            parser.addini(name, "for a plugin that is not loaded here")
    for line in orders["markers"]:
        config.addinivalue_line("markers", line)
    inner = Inner(config, exchange, number, meter, tmp, orders["shown"], left)
    config.pluginmanager.register(inner, "cg-bench-inner")
    try:
        status = config.hook.pytest_cmdline_main(config=config)
    finally:
        empty_folder(tmp)  # what pytest caches; the next file is to find nothing
    if inner.served:
        return None
    return inner.trouble or f"pytest ended with status {status} inside Valgrind before any test was run"


def _unpickle(pickled: dict[str, bytes], config: Config) -> dict[str, str]:
    """Set these options; return those for which that is not possible, with why."""
    left: dict[str, str] = {}
    for name, data in pickled.items():
        try:
            setattr(config.option, name, pickle.loads(data))  # noqa: S301 - both ends are ours, and one Python
        except Exception as error:  # noqa: BLE001 - code of the project's own
            left[name] = f"{type(error).__name__}: {error}"
    return left


def empty_folder(folder: str, keep: Container[str] = ()) -> None:
    """Empty a folder as far as that can be done: the next benchmark draws the same temporary names."""
    with suppress(OSError):
        removal.empty_folder(folder, keep)


class Inner:
    """The hooks of this process, and of those that it forks."""

    def __init__(  # noqa: PLR0917 - all that holds for one file
        self,
        config: Config,
        exchange: Exchange,
        number: int,
        meter: Meter,
        tmp: str,
        shown: bytes,
        left: dict[str, str],
    ) -> None:
        self._config, self._exchange, self._number, self._meter = config, exchange, number, meter
        self._tmp, self._shown, self._left = tmp, shown, left
        self._kept: frozenset[str] = frozenset()
        self._reports: list[dict[str, Any]] = []
        self.served = False
        self.trouble = ""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why something could not be collected."""
        if report.failed:
            self.trouble += f"{report.longreprtext}\n"

    def pytest_internalerror(self, excrepr: object) -> None:
        """Keep what went wrong in pytest or a plugin."""
        self.trouble += f"{excrepr}\n"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Fork for each benchmark that was ordered."""
        if self.trouble:
            return True
        self.served = True
        self._kept = frozenset(os.listdir(self._tmp))  # a module may have made a folder when it was imported
        for item in session.items:
            make_room(item)
        remember_types()
        self._warm_translation()
        take_free_memory()
        gc.freeze()
        flush()
        fork_for_each(lambda index: self._benchmark(session, index), self._bury)
        at_work(self._exchange, self._number)
        return True

    def _warm_translation(self) -> None:
        """Do once what the process of each benchmark does besides its test, for it to inherit how Valgrind translated that."""
        folder = self._exchange.warming(self._number)
        Real.mkdir(folder)
        self._meter.warm_translation(folder)
        read_next_order(self._exchange.file(self._number))
        self._captured()
        empty_folder(self._tmp, self._kept)
        write_report(f"{folder}/done", {"reports": [{"when": "call", "duration": 0.5}], "wall_ms": 0, "meter": None})

    def _bury(self, index: int, pid: int, status: int) -> None:
        """Report for a benchmark whose process ended before it could."""
        path = self._exchange.report(self._number, index)
        if not os.path.exists(path):
            write_report(path, {"reports": [], "text": self._captured(), **how_it_ended(pid, status, self._meter.out)})
        empty_folder(self._tmp, self._kept)  # here and not in the next one's process, whose memory would show it

    def _benchmark(self, session: pytest.Session, index: int) -> None:
        """Run one benchmark, in a process of its own, and report."""
        nodeid = read_next_order(self._exchange.benchmark(self._number, index))
        if os.path.exists(self._exchange.stop):
            return
        self._meter.name = f"{self._number}.{index}"
        self._meter.take_look_ups = functools.partial(read_order, self._exchange.look_ups(self._number, index))
        at_work(self._exchange, self._number, index)
        item = next((item for item in session.items if item.nodeid == nodeid), None)
        if item is None:
            why = "was not found when its file was collected inside Valgrind: does its id vary?"
            write_report(self._exchange.report(self._number, index), {"reports": [], "died": why})
            return
        own = Real.own_process()
        try:
            done = self._run(item)
        except BaseException as error:  # noqa: BLE001 - the process ends here, and this is how it is reported
            done = self._death(item, error)
        if Real.own_process() == own:  # and not one that the benchmark has forked
            self._meter.keep_parts()
            empty_folder(self._tmp, self._kept)
            write_report(self._exchange.report(self._number, index), done)

    def _run(self, item: pytest.Item) -> Report:
        """Run this test, and return what became of it."""
        seed_all()  # a fork leaves random bytes of the process in the generator
        self._captured()  # what one that died before may have left
        self._config.stash[fixture.ENGINE] = self._meter.measure
        begun = time.monotonic_ns()
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        took = time.monotonic_ns() - begun
        for report in self._reports:
            if report["when"] == "call":
                report["duration"] = took / 1e9
        return {"reports": self._reports, "wall_ms": took // 1_000_000, "meter": self._meter.record}

    def _death(self, item: pytest.Item, error: BaseException) -> Report:
        """Return what to report of a test after which pytest itself ends, by this error."""
        parts = ["".join(traceback.format_exception(error))]
        parts += [f"Captured {name} {when}:\n{text}" for when, name, text in item._report_sections]  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        found: Report = {"reports": [], "text": "\n".join([*parts, self._captured()])}
        if isinstance(error, pytest.exit.Exception):
            return {**found, "died": f"called pytest.exit: {error}", "exit": str(error) or "pytest.exit"}
        return {**found, "died": f"ended pytest inside Valgrind by {type(error).__name__}"}

    def _captured(self) -> str:
        """Return, and forget, what was written since somebody asked last."""
        capture: Any = self._config.pluginmanager.getplugin("capturemanager")
        out, err = ("", "") if capture is None else capture.read_global_capture()
        return "\n".join(f"Captured {name}:\n{text}" for name, text in (("stdout", out), ("stderr", err)) if text)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Measure the whole test if it is marked so; one that was not measured fails."""
        if not fixture.uses_fixture(item):
            measure_whole_test(item, self._meter)
        item.runtest = functools.partial(deep, item.runtest)  # type: ignore[method-assign]
        try:
            yield
        except (AttributeError, TypeError) as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            if "'NoneType'" not in str(error) or ".stats" not in (at.line or ""):
                raise
            pytest.fail(f"{at.filename}:{at.lineno}: {_NO_TIMES}", pytrace=False)
        if self._meter.record is None:
            why = "what it measures raised an exception" if self._meter.begun else _why_not_called(item)
            pytest.fail(f"this benchmark measured nothing: {why}", pytrace=False)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        """Show a failure as it was asked for; nothing is counted any more."""
        if call.excinfo is not None:
            vars(self._config.option).update(json.loads(self._shown))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a report, as it goes over to the pytest that was called."""
        found: dict[str, Any] = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        if self._left:
            found[LEFT_BEHIND] = self._left
        self._reports.append(found)


def _why_not_called(item: pytest.Item) -> str:
    known: Any = getattr(item, "_fixtureinfo", None)
    used: Any = known and known.name2fixturedefs.get("benchmark")
    if not used or used[-1].func.__module__ == fixture.__name__ or "benchmark" in used[-1].argnames:
        return "its test never called the fixture"
    code = used[-1].func.__code__
    return (
        f"{code.co_filename}:{code.co_firstlineno} has a fixture 'benchmark' of its own, which hides that of cg-bench: install the "
        "plugin that it replaces, as pytest-benchmark or pytest-codspeed, or remove it"
    )


def make_room(item: pytest.Item) -> None:
    """Give an item room for what pytest, plugins and we will set in it.

    Else the memory of its attributes would be given back in the process of its benchmark, where another one's lies elsewhere.
    """
    attributes, more = vars(item), list[str]()
    size = sys.getsizeof(attributes)
    while sys.getsizeof(attributes) == size and len(more) < _MOST_ADDED:  # a larger one has room for as many again
        more.append(f"cg_bench_{len(more)}")
        attributes[more[-1]] = None
    for name in more:
        del attributes[name]


def measure_whole_test(item: pytest.Item, meter: Meter) -> None:
    """Put the measurement in the place of the test's function; async ones are measured inside of their event loop.

    What is subtracted is the call of an empty function with the same parameters, so that an empty test costs nothing.
    """
    original: Callable[..., Any] | None = getattr(item, "obj", None)
    if original is None:
        return
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def measured_async(**kwargs: Any) -> Any:
            __tracebackhide__ = True
            empty = _empty_like(original, tuple(kwargs))
            return await meter.measure_await(fixture.Work(call=original, arguments=lambda: ((), kwargs)), empty)

        item.obj = measured_async  # type: ignore[attr-defined]
    else:

        @functools.wraps(original)
        def measured(**kwargs: Any) -> Any:
            __tracebackhide__ = True
            empty = _empty_like(original, tuple(kwargs))
            return meter.measure(fixture.Work(call=original, arguments=lambda: ((), kwargs)), empty)

        item.obj = measured  # type: ignore[attr-defined]


def _empty_like(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """Return a function, or method, that takes what pytest gives this one, and does nothing."""
    owner = getattr(function, "__self__", None)
    method = owner is not None and hasattr(function, "__func__")
    word = "async def" if inspect.iscoroutinefunction(function) else "def"
    made: dict[str, Any] = {}
    parameters = ", ".join(("self", *names) if method else names)
    exec(f"{word} empty({parameters}):\n    pass\n", made)  # noqa: S102 - names of parameters only
    empty: Callable[..., Any] = made["empty"]
    return empty.__get__(owner) if method else empty


def look_only_towards(file: str) -> None:
    """From now on, pytest sees of each folder above this file only what leads to it: a new file next to it must not move counts.

    pytest lists folders, which executes code and takes memory for each entry.
    """
    path = Path(os.path.abspath(file))
    ways = {str(parent): child.name for child, parent in zip((path, *path.parents), path.parents, strict=False)}

    def narrow(whole: Callable[..., Any]) -> Callable[..., Any]:
        def scandir(path: Any, sort_key: Callable[[Any], Any] = attrgetter("name")) -> Any:
            name = ways.get(str(path))
            if name is None:
                return whole(path, sort_key)
            found = (_Entry(str(path), name) for name in {name, "__init__.py"})
            return sorted((entry for entry in found if os.path.lexists(entry.path)), key=sort_key)

        return scandir

    for module in (_pytest.main, _pytest.python):  # they have it since pytest 8.0
        replace_until_measured(module, "scandir", narrow)


class _Entry:
    """An entry of a folder, as pytest uses those of os.scandir, without looking at the others."""

    def __init__(self, folder: str, name: str) -> None:
        self.name, self.path = name, os.path.join(folder, name)

    def is_dir(self) -> bool:
        return os.path.isdir(self.path)

    def is_file(self) -> bool:
        return os.path.isfile(self.path)
