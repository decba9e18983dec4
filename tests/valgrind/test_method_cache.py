"""Look-ups that begin to share an entry of CPython's method cache are recognised, under a real Valgrind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects import Project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

# While it warms up, the second class gets a version by which the look-ups of both share an entry, or do not.
SUITE = """
from cachegrind_bench.pytest_plugin.cpython import type_versions

class First: first = 1
class Second: second = 2

def deep(kind):
    for _ in range(12):
        kind = type("Deep", (kind,), {})
    return kind

A, B = deep(First), deep(Second)
a, b, calls = A(), B(), 0

def arrange(share):
    first, second = (next(name for name in vars(kind) if name in ("first", "second")) for kind in (First, Second))
    entry = type_versions._entry(type_versions._version(A), id(first)) ^ (0 if share else 2048)
    type_versions._modified(B)
    type_versions._burn_to(type_versions._entry(entry, id(second)))
    b.second

def work():
    global calls
    calls += 1
    if calls == 8:
        arrange(share=SHARE)
    for _ in range(20):
        getattr(a, "first"), getattr(b, "second")
    for _ in range(150):  # small integers are not allocated, so it does not matter what the arrangement left on the heap
        for _ in range(200):
            pass

def test_look_up(benchmark): benchmark(work)
"""


def test_more_misses_of_the_method_cache_are_no_regression(tmp_path: Path) -> None:
    project, base = Project(tmp_path), tmp_path / "base.json"
    project.write(SUITE.replace("SHARE", "False"))
    assert project.run(f"--cg-bench-output={base}").returncode == 0

    project.write(SUITE.replace("SHARE", "True"))
    layout = project.run(f"--cg-bench-compare={base}")
    assert "unchanged (layout)" in layout.stdout
    assert "CPython's method cache, whose entries depend on addresses, missed more often" in layout.stdout
    assert layout.returncode == 0
