"""The hooks of pytest-benchmark, by name: a conftest.py that has them must load where that plugin is absent or blocked."""

# ruff: noqa: D103, PLR0917 - the names say it, and the arguments are pytest-benchmark's

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.config import PytestPluginManager


def add_missing(manager: PytestPluginManager) -> None:
    """Make these hooks known, unless they are."""
    known = getattr(manager.hook, "pytest_benchmark_update_json", None)
    if known is None or not known.has_spec():
        manager.add_hookspecs(sys.modules[__name__])


@pytest.hookspec(firstresult=True)
def pytest_benchmark_scale_unit(config: Any, unit: Any, benchmarks: Any, best: Any, worst: Any, sort: Any) -> Any: ...


@pytest.hookspec(firstresult=True)
def pytest_benchmark_generate_machine_info(config: Any) -> Any: ...


def pytest_benchmark_update_machine_info(config: Any, machine_info: Any) -> None: ...


@pytest.hookspec(firstresult=True)
def pytest_benchmark_generate_commit_info(config: Any) -> Any: ...


def pytest_benchmark_update_commit_info(config: Any, commit_info: Any) -> None: ...


@pytest.hookspec(firstresult=True)
def pytest_benchmark_group_stats(config: Any, benchmarks: Any, group_by: Any) -> Any: ...


@pytest.hookspec(firstresult=True)
def pytest_benchmark_generate_json(
    config: Any, benchmarks: Any, include_data: Any, machine_info: Any, commit_info: Any
) -> Any: ...


def pytest_benchmark_update_json(config: Any, benchmarks: Any, output_json: Any) -> None: ...


def pytest_benchmark_compare_machine_info(
    config: Any, benchmarksession: Any, machine_info: Any, compared_benchmark: Any
) -> None: ...
