"""The fixtures `benchmark`, `codspeed_benchmark` and `benchmark_weave`, as a plugin of pytest."""

from __future__ import annotations

from typing import NoReturn

import pytest

from cachegrind_bench.pytest_plugin.fixture import ENGINE, BenchmarkFixture, plainly


@pytest.fixture
def benchmark(request: pytest.FixtureRequest) -> BenchmarkFixture:
    """Measure a function: `benchmark(function, *args, **kwargs)` returns what it returns."""
    return BenchmarkFixture(request.node, request.config.stash.get(ENGINE, plainly))


@pytest.fixture
def codspeed_benchmark(benchmark: BenchmarkFixture) -> BenchmarkFixture:
    """Be `benchmark` under the name that pytest-codspeed has for it."""
    return benchmark


@pytest.fixture
def benchmark_weave(benchmark: BenchmarkFixture) -> NoReturn:
    """Say that weaving is not supported."""
    benchmark.weave()
