"""Finds the Pythons that can be profiled by function: `each_python` runs a test on 3.12 and 3.13.

`CG_BENCH_PYTHONS` names interpreters, with colons between; then come pyenv's versions, what is on PATH, and the one that
`scripts/setup.sh test-slow` gets where there is no other.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import TOOLS, without

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSIONS = ("3.12", "3.13")
FETCHED = TOOLS / "python-3.13" / "usr" / "bin" / "python3.13"
# Read before `_clean_environment` empties it.
_NAMED = os.environ.get("CG_BENCH_PYTHONS", "")
_PROBE = (
    "import sys, sysconfig; print('%d.%d' % sys.version_info[:2], sysconfig.get_config_var('PY_HAVE_PERF_TRAMPOLINE'))"
)


def _candidates() -> Iterator[Path]:
    yield from (Path(name) for name in _NAMED.split(os.pathsep) if name)
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    if root.is_dir():
        yield from (root / name / "bin" / "python" for name in sorted(os.listdir(root)) if re.match(r"3\.1[2-9]", name))
    for name in (*(f"python{version}" for version in VERSIONS), "python3"):
        found = shutil.which(name)
        if found is not None:
            yield Path(found)
    yield FETCHED


@cache
def pythons() -> dict[str, Path]:
    """Return an interpreter with perf trampolines for each version that is here."""
    found: dict[str, Path] = {}
    for path in _candidates():
        if not os.access(path, os.X_OK):
            continue
        try:
            told = subprocess.run([path, "-c", _PROBE], capture_output=True, text=True, check=False)
        except OSError:  # its loader is missing: the checkout was moved
            continue
        version, _, trampolines = told.stdout.strip().partition(" ")
        if told.returncode == 0 and trampolines == "1" and version in VERSIONS:
            found.setdefault(version, path)
    return found


def python_of(version: str) -> Path:
    """Return the interpreter of this version, or skip the test; in CI it fails if there is no other version either."""
    if not pythons():
        without(
            "no CPython 3.12 or 3.13 with perf trampolines (`scripts/setup.sh test-slow` gets one, or says why not)"
        )
    if version not in pythons():
        pytest.skip(f"no CPython {version} with perf trampolines (CG_BENCH_PYTHONS, pyenv or PATH)")
    return pythons()[version]


def any_python() -> Path:
    """Return the interpreter of the oldest version that is here."""
    return python_of(next((version for version in VERSIONS if version in pythons()), VERSIONS[0]))


@pytest.fixture(scope="session", params=VERSIONS)
def each_python(request: pytest.FixtureRequest) -> Path:
    """Return one Python after the other."""
    return python_of(request.param)


if __name__ == "__main__":
    raise SystemExit(0 if pythons() else 1)  # asked by scripts/setup.sh
