"""The hooks of a pytest that measures: chooses benchmarks, has them run in measured processes, and reports as ever."""

from __future__ import annotations

import platform
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.errors import CgBenchError
from cachegrind_bench.model.result import Status
from cachegrind_bench.pytest_plugin.fixture import uses_fixture
from cachegrind_bench.pytest_plugin.options import settings
from cachegrind_bench.pytest_plugin.report_relay import show

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from _pytest.terminal import TerminalReporter

    from cachegrind_bench.measure.session import Laboratory
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.pytest_plugin.comparing import Compared
    from cachegrind_bench.pytest_plugin.options import Settings

_MARKERS = ("benchmark", "codspeed_benchmark")


NOTICE = pytest.StashKey[str]()


def keep_here(config: pytest.Config) -> None:
    """Do not let pytest-xdist distribute the tests, whatever it was told."""
    option = config.option
    if getattr(option, "numprocesses", None) or getattr(option, "tx", None) or getattr(option, "dist", "no") != "no":
        option.numprocesses, option.tx, option.dist = None, [], "no"
        config.stash[NOTICE] = "-n does not distribute benchmarks: --cg-bench-jobs N measures N at a time"


def take_over(config: pytest.Config) -> None:
    """Let this pytest measure. pytest.UsageError where that is not possible."""
    from cachegrind_bench.hermetic.environment import fingerprint_values
    from cachegrind_bench.measure.session import laboratory
    from cachegrind_bench.pytest_plugin.comparing import check_base
    from cachegrind_bench.pytest_plugin.neutral import remember_blocked
    from cachegrind_bench.store.durable import check_replaceable, check_writable

    if not sys.platform.startswith("linux"):
        raise pytest.UsageError(f"--cg-bench needs Linux, and this is {platform.system()}: run it in a container")
    try:
        chosen = settings(config)
        if chosen.compare is not None:
            check_base(chosen)
        if chosen.python_profile:
            from cachegrind_bench.pytest_plugin import profiling

            profiling.check()
        if chosen.output is not None:
            check_replaceable(chosen.output)
            check_writable(chosen.output)
        ready = laboratory(
            valgrind=chosen.valgrind,
            geometry=chosen.geometry,
            environ=chosen.environ,
            passed=fingerprint_values(chosen.request, chosen.environ),
        )
    except CgBenchError as error:
        raise usage(error) from None
    stop_coverage(config)
    if config.option.capture == "no":
        # Controller shows the rest.
        config.option.showcapture = "log" if config.option.showcapture in {"all", "log"} else "no"
    remember_blocked(config)
    for name in ("randomly", "pytest_randomly", "random_order"):
        if config.pluginmanager.hasplugin(name):
            config.pluginmanager.unregister(name=name)
    controller = Controller(config, chosen, ready)
    config.pluginmanager.register(controller, "cg-bench")


def stop_coverage(config: pytest.Config) -> None:
    """Let pytest-cov neither write nor judge: what it would measure runs elsewhere."""
    plugin: Any = config.pluginmanager.getplugin("_cov")
    if plugin is not None:
        plugin._disabled = True  # noqa: SLF001 - what its own --no-cov sets
        with suppress(Exception):
            plugin.cov_controller.cov.stop()


def usage(error: CgBenchError) -> pytest.UsageError:
    """Return the error as pytest tells it."""
    return pytest.UsageError("\n".join(part for part in (f"cg-bench: {error.message}", error.hint) if part))


def is_benchmark(item: pytest.Item) -> bool:
    """Tell whether a test has the fixture or a marker."""
    return uses_fixture(item) or any(item.get_closest_marker(name) is not None for name in _MARKERS)


class Controller:
    """The plugin while it measures."""

    def __init__(self, config: pytest.Config, chosen: Settings, ready: Laboratory) -> None:
        self._config, self._settings, self._laboratory = config, chosen, ready
        self._notices = [config.stash[NOTICE]] if NOTICE in config.stash else []
        self._result: Result | None = None
        self._compared: Compared | None = None
        self._check: Callable[[], object] = bool  # whether pytest was to end

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep benchmarks only."""
        others = [item for item in items if not is_benchmark(item)]
        if others:
            items[:] = [item for item in items if is_benchmark(item)]
            config.hook.pytest_deselected(items=others)
        if others and not items:
            self._notices.append(
                f"nothing was measured: none of the {len(others)} tests that were collected is a benchmark, with the fixture "
                "'benchmark' or marked @pytest.mark.benchmark; name the folder or the files they are in"
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Measure all benchmarks that were chosen."""
        from cachegrind_bench.pytest_plugin.handover import left_behind
        from cachegrind_bench.pytest_plugin.running import run
        from cachegrind_bench.pytest_plugin.signals import tidied_up

        if session.config.option.collectonly or not session.items:
            return None
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return None  # pytest itself says so
        self._notices += [
            f"the value of {name} could not be handed over to the benchmarks, which see its default"
            for name in left_behind(session.config)
        ]
        try:
            with tidied_up() as self._check:
                self._result = run(session, self._settings, self._laboratory)
                self._write()
                self._check()
                if self._settings.python_profile:
                    self._profile(session)
                    self._write()
            if self._settings.compare is not None:
                from cachegrind_bench.pytest_plugin.comparing import compared

                self._compared = compared(self._settings, self._result)
        except CgBenchError as error:
            raise usage(error) from None
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _profile(self, session: pytest.Session) -> None:
        from cachegrind_bench.pytest_plugin.profiling import with_python_profiles

        assert self._result is not None  # noqa: S101 - it was measured
        terminal: Any = self._config.pluginmanager.getplugin("terminalreporter")

        def progress(text: str) -> None:
            if terminal is not None:
                terminal.ensure_newline()
                terminal.write_line(f"cg-bench: {text}")

        self._result = with_python_profiles(session, self._result, self._settings, self._laboratory, progress)

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep which options a benchmark did not get; with -s, show what it printed: inside it is captured, or it would cost."""
        from cachegrind_bench.pytest_plugin.handover import as_written
        from cachegrind_bench.pytest_plugin.neutral import LEFT_BEHIND

        self._check()
        for name, why in getattr(report, LEFT_BEHIND, {}).items():
            file = report.nodeid.partition("::")[0]
            option = as_written(self._config, name)
            notice = f"the value of {option} could not be handed over to the benchmarks of {file}, which see its default ({why})"
            if notice not in self._notices:
                self._notices.append(notice)
        if self._config.option.capture == "no" and report.when == "teardown":
            show(sys.stdout, report.capstdout)
            show(sys.stderr, report.capstderr)

    def _write(self) -> None:
        from cachegrind_bench.model.codec import encode
        from cachegrind_bench.store.durable import write_atomic

        if self._result is not None and self._settings.output is not None:
            write_atomic(self._settings.output, encode(self._result))

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """End in 1 where a benchmark regressed, or has no counts although its test passed."""
        unmeasured = self._result is not None and any(item.status is not Status.OK for item in self._result.benchmarks)
        regressed = self._compared is not None and self._compared.failing
        if (unmeasured or regressed) and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        yield

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Show the counts, the comparison, and where the result is."""
        from cachegrind_bench.pytest_plugin.summary import summary

        if self._result is None and not self._notices:
            return
        terminalreporter.section("cg-bench")
        for notice in self._notices:
            terminalreporter.write_line(f"cg-bench: {notice}")
        if self._result is not None:
            for line in summary(self._result, self._settings, self._compared):
                terminalreporter.write_line(line)
