"""An interpreter that nobody has verified is left alone, and benchmarks are measured all the same."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.projects import Project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SUITE = """
import json, sys
from importlib.machinery import FileFinder
from cachegrind_bench.pytest_plugin.cpython import fresh_heap, type_versions
def test_alone(benchmark):
    assert not fresh_heap._kept and not hasattr(type_versions, "_look_up")
    assert FileFinder._fill_cache.__name__ == "_fill_cache"
    assert type(sys.path_importer_cache[json.__path__[0]]) is FileFinder and not sys.flags.no_site
    benchmark(json.dumps, list(range(300)))
def test_sorted(benchmark): benchmark(sorted, [3, 1, 2] * 100)
"""


def test_a_later_version_is_measured_without_its_internals_and_said_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, later = Project(tmp_path), tmp_path / "later"
    project.write(SUITE)
    later.mkdir()
    (later / "sitecustomize.py").write_text("import sys\nsys.implementation.version = (3, 99, 0, 'final', 0)\n")
    monkeypatch.setenv("PYTHONPATH", str(later))
    done = project.run()
    assert (done.returncode, done.stdout.count("CPython 3.99.0 is not among")) == (0, 1), done.stdout
    (project.folder / "cg-bench.toml").write_text('[[benchmark]]\npytest = "test_it.py"\n')
    words = [sys.executable, "-P", "-m", "cachegrind_bench", "run", "-k", "sorted", "-o", "-"]
    suite = subprocess.run(words, cwd=project.folder, capture_output=True, text=True, check=False)
    assert (suite.returncode, suite.stderr.count("CPython 3.99.0 is not among")) == (0, 1), suite.stderr
    (benchmark,) = json.loads(suite.stdout)["benchmarks"]
    assert benchmark["key_fields"]["internals"] == "untouched"
