"""The plugin in a pytest of its own, without Valgrind."""

from __future__ import annotations

import pytest


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a folder for tests, in which no other plugin that has benchmarks is loaded."""
    pytester.makeini("[pytest]\naddopts = -p no:benchmark -p no:codspeed -p no:randomly\n")
    return pytester
