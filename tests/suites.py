"""Twenty benchmark functions of real packages, and the environments that have these, for each Python that is here.

`scripts/setup.sh test-slow` makes the environments (tests/tools/make-suite-venvs): with pytest, the usual plugins, and the
packages in their pure Python form. The files with the functions are in tests/data/suites.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.conftest import ROOT, TOOLS, without

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILES = ROOT / "tests" / "data" / "suites"
VERSIONS = ("3.11", "3.12", "3.13")
TWENTY = (
    "attrs-26.1.0/test_benchmarks.py::test_instantiate_no_defaults",
    "attrs-26.1.0/test_benchmarks.py::test_instantiate_with_defaults",
    "attrs-26.1.0/test_benchmarks.py::test_eq_equal",
    "attrs-26.1.0/test_benchmarks.py::test_eq_unequal",
    "attrs-26.1.0/test_benchmarks.py::test_hash",
    "attrs-26.1.0/test_benchmarks.py::test_asdict_atomic",
    "attrs-26.1.0/test_benchmarks.py::test_astuple_atomic",
    "propcache-0.5.4/test_benchmarks.py::test_under_cached_property_cache_hit",
    "propcache-0.5.4/test_benchmarks.py::test_cached_property_cache_hit",
    "propcache-0.5.4/test_benchmarks.py::test_under_cached_property_cache_miss",
    "propcache-0.5.4/test_benchmarks.py::test_cached_property_cache_miss",
    "pluggy-1.7.0/benchmark.py::test_hook_and_wrappers_speed[hooks=10-wrappers=10]",
    "pluggy-1.7.0/benchmark.py::test_hookimpl_with_default_speed[impl-default-10]",
    "pluggy-1.7.0/benchmark.py::test_call_hook[1-1-0]",
    "pluggy-1.7.0/benchmark.py::test_call_hook[5-5-1]",
    "pluggy-1.7.0/benchmark.py::test_varnames[plain_function]",
    "yarl-1.25.1/test_quoting_benchmarks.py::test_quote_query_string",
    "yarl-1.25.1/test_quoting_benchmarks.py::test_quoter_ascii",
    "yarl-1.25.1/test_quoting_benchmarks.py::test_quoter_pct",
    "yarl-1.25.1/test_quoting_benchmarks.py::test_unquoter_short",
)


def suite_python(version: str) -> Path:
    """Return the interpreter of the environment for this Python; end the test where there is none."""
    python = TOOLS / "suites" / version / "bin" / "python"
    if not python.exists():
        without(f"no Python {version} with real suites (`scripts/setup.sh test-slow` says why)")
    return python


@dataclass(frozen=True, slots=True)
class Suites:
    """A copy of the real suites in a folder of a test's own."""

    python: Path
    folder: Path

    @classmethod
    def copy(cls, python: Path, base: Path) -> Suites:
        """Make it; compiled files stay out."""
        folder = base / "suites"
        shutil.copytree(FILES, folder, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n", encoding="utf-8")
        return cls(python, folder)

    def pytest(self, *options: str, names: Sequence[str] = TWENTY) -> subprocess.CompletedProcess[str]:
        """Run pytest there; only the usual variables are set."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "CG_BENCH_REQUIRE_SEALED") if name in os.environ}
        argv = [str(self.python), "-W", "ignore", "-m", "pytest", "-p", "no:cacheprovider", *options, *names]
        return subprocess.run(argv, cwd=self.folder, env=kept, capture_output=True, text=True, check=False)

    def measure(self, *options: str, names: Sequence[str] = TWENTY) -> dict[str, Any]:
        """Measure these, and return the benchmarks of the result by their ids; beside them is the Valgrind's version."""
        output = self.folder.parent / "result.json"
        output.unlink(missing_ok=True)
        done = self.pytest("--cg-bench", "--cg-bench-jobs=1", f"--cg-bench-output={output}", *options, names=names)
        assert done.returncode == 0, done.stdout + done.stderr
        return {item["id"]: item for item in json.loads(output.read_bytes())["benchmarks"]}
