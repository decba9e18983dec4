"""The hooks of a pytest that measures: chooses benchmarks, has them run in measured processes, and reports as ever."""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.errors import CgBenchError
from cachegrind_bench.interruption import interrupt, is_postponed
from cachegrind_bench.model.result import Result, Status
from cachegrind_bench.pytest_plugin.fixture import uses_fixture
from cachegrind_bench.pytest_plugin.outer.options import Settings, settings
from cachegrind_bench.pytest_plugin.outer.report_relay import show

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

    from cachegrind_bench.measure.session import ValgrindSetup

_MARKERS = ("benchmark", "codspeed_benchmark")
_LOG_COLUMNS = 100
_NOTICE = pytest.StashKey[str]()


def keep_here(config: pytest.Config) -> None:
    """Do not let pytest-xdist distribute the tests, whatever its options say."""
    option = config.option
    if getattr(option, "numprocesses", None) or getattr(option, "tx", None) or getattr(option, "dist", "no") != "no":
        option.numprocesses, option.tx, option.dist = None, [], "no"
        config.stash[_NOTICE] = "-n does not distribute benchmarks: --cg-bench-jobs N measures N at a time"


def take_over(config: pytest.Config) -> None:
    """Let this pytest measure. pytest.UsageError where that is not possible."""
    from cachegrind_bench.hermetic.environment import fingerprint_values
    from cachegrind_bench.measure.session import valgrind_setup
    from cachegrind_bench.pytest_plugin.outer.serialize_options import remember_blocked
    from cachegrind_bench.store.durable import check_replaceable, check_writable

    if not sys.platform.startswith("linux"):
        raise pytest.UsageError(f"--cg-bench needs Linux, and this is {platform.system()}: run it in a container")
    if "CG_BENCH_PAD" in os.environ or "vgpreload" in os.environ.get("LD_PRELOAD", ""):
        raise pytest.UsageError(
            "--cg-bench starts Valgrind by itself, and this pytest is being measured already: call it without 'cg-bench run', "
            'or make it a suite, [[benchmark]] with pytest = "FOLDER" in cg-bench.toml'
        )
    try:
        chosen = settings(config)
        if chosen.compare is not None:
            from cachegrind_bench.pytest_plugin.outer.summary import check_base

            check_base(chosen.compare.path, chosen.output)
        if chosen.python_profile:
            from cachegrind_bench.pytest_plugin.outer.profiling import check

            check()
        if chosen.output is not None:
            check_replaceable(chosen.output)
            check_writable(chosen.output)
        ready = valgrind_setup(
            valgrind=chosen.valgrind,
            geometry=chosen.geometry,
            environ=chosen.environ,
            passed=fingerprint_values(chosen.request, chosen.environ),
        )
    except CgBenchError as error:
        raise _usage(error) from None
    _stop_coverage(config)
    if config.option.capture == "no":
        # Controller shows the rest.
        config.option.showcapture = "log" if config.option.showcapture in {"all", "log"} else "no"
    remember_blocked(config)
    for name in ("randomly", "pytest_randomly", "random_order"):
        if config.pluginmanager.hasplugin(name):
            config.pluginmanager.unregister(name=name)
    config.pluginmanager.register(Controller(config, chosen, ready), "cg-bench")


def _stop_coverage(config: pytest.Config) -> None:
    """Let pytest-cov neither write nor judge: what it would measure runs elsewhere."""
    plugin: Any = config.pluginmanager.getplugin("_cov")
    if plugin is not None:
        plugin._disabled = True  # noqa: SLF001 - what its own --no-cov sets
        with suppress(Exception):
            plugin.cov_controller.cov.stop()


def _usage(error: CgBenchError) -> pytest.UsageError:
    """Return the error as one of pytest's."""
    return pytest.UsageError("\n".join(part for part in (f"cg-bench: {error.message}", error.hint) if part))


def is_benchmark(item: pytest.Item) -> bool:
    """Return whether a test has the fixture or a marker."""
    return uses_fixture(item) or any(item.get_closest_marker(name) is not None for name in _MARKERS)


def selected(config: pytest.Config) -> frozenset[str] | None:
    """Return the ids of the nodes to measure; None for all."""
    path: str | None = config.option.cg_bench_select
    return None if path is None else frozenset(json.loads(Path(path).read_bytes()))


def write_list(session: pytest.Session) -> None:
    """Write what there is to measure."""
    from cachegrind_bench.pytest_plugin.outer.results import parameters_of, storable, tags_of

    found = [
        {"id": storable(item.nodeid), "parameters": parameters_of(item), "tags": tags_of(item)}
        for item in session.items
    ]
    Path(session.config.option.cg_bench_list).write_text(json.dumps(found), encoding="utf-8")


class Controller:
    """The plugin while it measures."""

    def __init__(self, config: pytest.Config, chosen: Settings, ready: ValgrindSetup) -> None:
        self._config, self._settings, self._valgrind_setup = config, chosen, ready
        self._notices = [config.stash[_NOTICE]] if _NOTICE in config.stash else []
        self._result: Result | None = None
        self._comparison, self._regressed = "", False
        self._check: Callable[[], object] = bool  # whether pytest was to end

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep benchmarks only."""
        chosen = selected(config)
        others = [item for item in items if not is_benchmark(item) or not (chosen is None or item.nodeid in chosen)]
        if others:
            away = set(map(id, others))
            items[:] = [item for item in items if id(item) not in away]
            config.hook.pytest_deselected(items=others)
        if others and not items:
            self._notices.append(
                f"nothing was measured: none of the {len(others)} tests that were collected is a benchmark, with the fixture "
                "'benchmark' or marked @pytest.mark.benchmark; name the folder or the files they are in"
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Measure all benchmarks that were chosen."""
        from cachegrind_bench.pytest_plugin.outer.serialize_options import left_behind
        from cachegrind_bench.pytest_plugin.outer.session import run

        if session.config.option.cg_bench_list is not None and not session.testsfailed:
            write_list(session)
        if session.config.option.collectonly or not session.items:
            return None
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return None  # pytest itself says so
        self._notices += [
            f"the value of {name} could not be passed to the benchmarks, which see its default"
            for name in left_behind(session.config)
        ]
        chosen = self._settings
        try:
            with tidied_up() as self._check:
                self._result, bench = run(session, chosen, self._valgrind_setup)
                self._write(self._result)
                self._check()
                if chosen.python_profile:
                    from cachegrind_bench.pytest_plugin.outer.profiling import with_python_profiles

                    self._result = with_python_profiles(bench, self._result, self._progress)
                    self._write(self._result)
            if chosen.compare is not None:
                from cachegrind_bench.pytest_plugin.outer.summary import compared

                self._comparison, self._regressed = compared(
                    chosen.compare,
                    self._result,
                    self._config.rootpath,
                    profiled=chosen.python_profile,
                    width=self._width(),
                    colour=self._config.get_terminal_writer().hasmarkup,
                )
        except CgBenchError as error:
            raise _usage(error) from None
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _progress(self, text: str) -> None:
        terminal: Any = self._config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None:
            terminal.ensure_newline()
            terminal.write_line(f"cg-bench: {text}")

    def _width(self) -> int:
        return self._config.get_terminal_writer().fullwidth if sys.stdout.isatty() else _LOG_COLUMNS

    def _write(self, result: Result) -> None:
        from cachegrind_bench.model.codec import encode
        from cachegrind_bench.store.durable import write_atomic

        if self._settings.output is not None:
            write_atomic(self._settings.output, encode(result))

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep which options a benchmark did not get; with -s, show what it printed: inside it is captured, or it would cost."""
        from cachegrind_bench.pytest_plugin.inner.exchange import LEFT_BEHIND
        from cachegrind_bench.pytest_plugin.outer.serialize_options import as_written

        self._check()
        for name, why in getattr(report, LEFT_BEHIND, {}).items():
            file = report.nodeid.partition("::")[0]
            option = as_written(self._config, name)
            notice = (
                f"the value of {option} could not be passed to the benchmarks of {file}, which see its default ({why})"
            )
            if notice not in self._notices:
                self._notices.append(notice)
        if self._config.option.capture == "no" and report.when == "teardown":
            show(sys.stdout, report.capstdout)
            show(sys.stderr, report.capstderr)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """End in 1 where a benchmark regressed, or has no counts although its test passed."""
        unmeasured = self._result is not None and any(item.status is not Status.OK for item in self._result.benchmarks)
        if (unmeasured or self._regressed) and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        yield

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Show the counts, the comparison, and where the result is."""
        from cachegrind_bench.pytest_plugin.outer.summary import summary

        if self._result is None and not self._notices:
            return
        terminalreporter.section("cg-bench")
        lines = [f"cg-bench: {notice}" for notice in self._notices]
        if self._result is not None:
            lines += summary(self._result, self._settings.output, self._comparison, width=self._width())
        for line in lines:
            terminalreporter.write_line(line)


# Handlers that are pytest's own doing, or nobody's: those of a plugin stay.
_REPLACED = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}


@contextmanager
def tidied_up() -> Generator[Callable[[], None]]:
    """Let SIGTERM and SIGHUP interrupt this as Ctrl-C does, and end the process in their way when all is tidied up.

    What is yielded raises KeyboardInterrupt again: hooks of others may have caught the first one, and gone on.
    """
    received: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        if not is_postponed(number, frame):
            received.append(number)
            interrupt()

    def check() -> None:
        if received:
            raise KeyboardInterrupt

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: was for number, was in _REPLACED.items() if signal.getsignal(number) is was}
    for number in before:
        signal.signal(number, handler)
    try:
        yield check
    finally:
        for number, was in before.items():
            signal.signal(number, was)
        if received and received[0] != signal.SIGINT:
            with suppress(Exception):
                sys.stdout.flush()
            os.kill(os.getpid(), received[0])
