"""The pytest plugin: `pytest --cg-bench` measures benchmarks under Valgrind; without it they run once, as plain tests.

Every pytest of an environment imports this, so it has hooks only, and imports what it needs when it is asked for.
It is there before pytest could rewrite it, where it is loaded by its name: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

# As it was before any conftest.py; what measures is to find the same modules.
IMPORT_PATH: Sequence[str] = tuple(sys.path)

_OLDEST = (8, 1)
_MARKERS = (
    "benchmark: measure the whole test, or say how its benchmark fixture measures (cg-bench)",
    "codspeed_benchmark: measure the whole test (cg-bench)",
    "cg_bench(sizes, size, growth, predict): measure the test with several sizes of its input, and how its cost grows (cg-bench)",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the options of the group cg-bench."""
    from cachegrind_bench.pytest_plugin.outer.options import add_options

    add_options(parser)


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Let suites written for pytest-benchmark keep its hooks in their conftest.py."""
    from cachegrind_bench.pytest_plugin.fixture import add_missing_hooks

    add_missing_hooks(early_config.pluginmanager)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Keep the benchmarks in this process, before pytest-xdist takes them."""
    if _takes_over(config):
        if pytest.version_tuple[:2] < _OLDEST:
            needed = ".".join(map(str, _OLDEST))
            raise pytest.UsageError(f"--cg-bench needs pytest {needed} or newer, and this is {pytest.__version__}")
        from cachegrind_bench.pytest_plugin.outer.collection import keep_here

        keep_here(config)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Provide the benchmark fixture, unless another plugin's is wanted; with --cg-bench, take over."""
    from cachegrind_bench.pytest_plugin import fixture
    from cachegrind_bench.pytest_plugin.outer.options import check_files

    for line in _MARKERS:
        config.addinivalue_line("markers", line)
    manager = config.pluginmanager
    measuring = _takes_over(config)
    check_files(config, measuring=measuring)
    if manager.hasplugin(fixture.NAME) or (not measuring and any(map(_has_fixture, manager.get_plugins()))):
        return
    fixture.provide(config)
    target: str | None = config.getoption("cg_bench_list")
    if target is not None:
        from cachegrind_bench.pytest_plugin.outer.collection import Lister, prepare

        prepare(config)
        manager.register(Lister(target), "cg-bench")
    elif measuring:
        from cachegrind_bench.pytest_plugin.outer.controller import take_over

        take_over(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each size that a marker has."""
    if metafunc.definition.get_closest_marker("cg_bench") is not None:
        from cachegrind_bench.pytest_plugin.sizes import parametrize

        parametrize(metafunc)


def _takes_over(config: pytest.Config) -> bool:
    """Return whether benchmarks are to be measured, here or by the cg-bench that lists them."""
    return bool(config.getoption("cg_bench")) or config.getoption("cg_bench_list") is not None


def _has_fixture(plugin: object) -> bool:
    """Return whether another plugin has a fixture of this name: it goes first."""
    return hasattr(plugin, "benchmark") or hasattr(plugin, "codspeed_benchmark")
