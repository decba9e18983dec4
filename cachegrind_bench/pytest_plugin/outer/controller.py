"""The hooks of a pytest that measures: chooses benchmarks, has them run in measured processes, and reports as ever."""

from __future__ import annotations

import logging
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import convert
from msgspec.structs import replace

from cachegrind_bench._version import __version__
from cachegrind_bench.errors import CgBenchError
from cachegrind_bench.harness.pytest_session.request import Collected, Item, Python
from cachegrind_bench.harness.pytest_session.session import Relay, run
from cachegrind_bench.hermetic.environment import held_back
from cachegrind_bench.interruption import interrupt, is_postponed
from cachegrind_bench.log import heard_by
from cachegrind_bench.model.result import Result
from cachegrind_bench.model.text import counted
from cachegrind_bench.pytest_plugin.outer.collection import NOTICE, collected, keep_benchmarks, prepare, this_python
from cachegrind_bench.pytest_plugin.outer.options import Asked, settings
from cachegrind_bench.pytest_plugin.outer.report_relay import report, show, show_bytes
from cachegrind_bench.vcs.commits import commit_of
from cachegrind_bench.vcs.git import Git
from cachegrind_bench.waiting import Waiting

if TYPE_CHECKING:
    from pathlib import Path

    from _pytest.terminal import TerminalReporter

    from cachegrind_bench.harness.pytest_session.results import Costs
    from cachegrind_bench.measure.session import ValgrindSetup
    from cachegrind_bench.startup.exchange import Report

_LOG_COLUMNS = 100
_MOST_VERBOSE = 3  # -vvv


def take_over(config: pytest.Config) -> None:
    """Let this pytest measure. pytest.UsageError where that is not possible."""
    from cachegrind_bench.hermetic.environment import fingerprint_values
    from cachegrind_bench.measure.session import valgrind_setup
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
        if chosen.settings.python_profile:
            from cachegrind_bench.harness.pytest_session.profiling import check

            check(convert(this_python(), Python), "--cg-bench-python-profile")
        if chosen.output is not None:
            check_replaceable(chosen.output)
            check_writable(chosen.output)
        ready = valgrind_setup(
            valgrind=chosen.valgrind,
            geometry=chosen.geometry,
            environ=chosen.settings.environ,
            passed=fingerprint_values(chosen.settings.request, chosen.settings.environ),
        )
    except CgBenchError as error:
        raise _usage(error) from None
    if config.option.capture == "no":
        # Controller shows the rest.
        config.option.showcapture = "log" if config.option.showcapture in {"all", "log"} else "no"
    prepare(config)
    config.pluginmanager.register(Controller(config, chosen, ready), "cg-bench")


def _usage(error: CgBenchError) -> pytest.UsageError:
    """Return the error as one of pytest's."""
    return pytest.UsageError("\n".join(part for part in (f"cg-bench: {error.message}", error.hint) if part))


class _Relay(Relay):
    """Hands what becomes of benchmarks to pytest, as if their tests had run here."""

    def __init__(self, session: pytest.Session, hidden: Sequence[str]) -> None:
        self._session, self._hidden = session, hidden
        self._items = {item.nodeid: item for item in session.items}

    def report(self, item: Item, found: Report, costs: Costs) -> None:
        """Report to pytest."""
        del costs
        report(self._items[item.nodeid], found, self._hidden)

    def stopped(self) -> bool:
        """Return whether pytest is to end."""
        return bool(self._session.shouldfail or self._session.shouldstop)

    def echo(self, chunk: bytes) -> None:
        """With -s, show what the measured processes write."""
        if self._session.config.option.capture == "no":
            show_bytes(sys.stderr, chunk)
            sys.stderr.flush()


class Controller:
    """The plugin while it measures."""

    def __init__(self, config: pytest.Config, chosen: Asked, ready: ValgrindSetup) -> None:
        self._config, self._asked, self._valgrind_setup = config, chosen, ready
        self._notices = [config.stash[NOTICE]] if NOTICE in config.stash else []
        self._result: Result | None = None
        self._written: Path | None = None
        self._comparison, self._regressed = "", False
        self._check: Callable[[], object] = bool  # whether pytest was to end

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep benchmarks only."""
        others = keep_benchmarks(config, items)
        if not items and not others:
            self._notices.append(
                "nothing was measured: pytest found no tests; files that are not called test_*.py or *_test.py have to be named"
            )
        elif not items:
            self._notices.append(
                f"nothing was measured: none of the {others} tests that were collected is a benchmark, with the fixture "
                "'benchmark' or marked @pytest.mark.benchmark; name the folder or the files they are in"
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Measure all benchmarks that were chosen."""
        from cachegrind_bench.pytest_plugin.outer.serialize_options import left_behind

        if session.config.option.collectonly or not session.items:
            return None
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return None  # pytest itself says so
        self._notices += [
            f"the value of {name} could not be passed to the benchmarks, which see its default"
            for name in left_behind(session.config)
        ]
        chosen = self._asked
        how = chosen.settings
        level = logging.DEBUG if self._config.option.verbose >= _MOST_VERBOSE else logging.INFO
        try:
            with tidied_up() as self._check, heard_by(self._progress, level):
                created_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                found = convert(collected(session.config, session.items), Collected)
                self._notices += filter(None, [found.python.unverified])
                relay = _Relay(session, held_back(how.environ, how.request))
                benchmarks, bench = run(found, how, self._valgrind_setup, relay)
                if not benchmarks and not relay.stopped():
                    self._notices.append(f"nothing was measured: {counted(len(found.items), 'benchmark')} skipped")
                self._result = Result(
                    tool_version=__version__,
                    created_at=created_at,
                    commit=commit_of(Git(bench.place.cwd, how.environ, Waiting())),
                    env=self._valgrind_setup.environment,
                    benchmarks=tuple(benchmarks),
                )
                self._write(self._result)
                self._check()
                if how.python_profile:
                    from cachegrind_bench.harness.pytest_session.profiling import with_python_profiles

                    profiled = with_python_profiles(bench, benchmarks, self._progress)
                    self._result = replace(self._result, benchmarks=tuple(profiled))
                    self._write(self._result)
            if chosen.compare is not None:
                from cachegrind_bench.pytest_plugin.outer.summary import compared

                self._comparison, self._regressed = compared(
                    chosen.compare,
                    self._result,
                    self._config.rootpath,
                    profiled=how.python_profile,
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
        from cachegrind_bench.usecases.saving import left_if_unwritten

        if self._asked.output is not None:
            with left_if_unwritten(self._config.rootpath, result):
                write_atomic(self._asked.output, encode(result), in_place=True)
            self._written = self._asked.output

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep which options a benchmark did not get; with -s, show what it printed: inside it is captured, or it would cost."""
        from cachegrind_bench.pytest_plugin.outer.serialize_options import as_written
        from cachegrind_bench.startup.exchange import LEFT_BEHIND

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
        """End in 1 where a benchmark regressed, or has no counts although its test passed; in 5 where all were skipped."""
        unmeasured = self._result is not None and self._result.failed
        if (unmeasured or self._regressed) and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif self._result is not None and not self._result.benchmarks and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
        yield

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Show the counts, the comparison, and where the result is."""
        from cachegrind_bench.pytest_plugin.outer.summary import summary

        if self._result is None and not self._notices:
            return
        terminalreporter.section("cg-bench")
        lines = [f"cg-bench: {notice}" for notice in self._notices]
        if self._result is not None:
            where = self._written, self._comparison, self._config.rootpath
            lines += summary(self._result, *where, width=self._width())
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
