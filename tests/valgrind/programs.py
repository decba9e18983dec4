"""The programs of the real pairs: built anew in any folder, with a planted change of any size in one known function.

Knows the sources in tests/data/pairs and how to build them; knows nothing of measuring or comparing.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, TOOLS, without

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SOURCES = ROOT / "tests" / "data" / "pairs"
# The system's, as its sources and headers come by apt; a version manager's would need others.
PYTHON = "/usr/bin/python3"
WITHOUT_SITE = "-S"  # nothing here needs `site`, which costs a fifth of the time


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What to measure: a command, and the variables it needs."""

    command: tuple[str, ...]
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of program: where a change is planted, and how many turns of its loop make which share of the score."""

    name: str
    function: str  # the one that grows
    turns: Mapping[
        str, int
    ]  # by the intended share in percent; `test_planted` holds what they really come to against it
    path_counts: bool  # each character more in the path of the program costs it many instructions


C = Kind(name="c", function="hash", turns={"0.1": 2, "1": 22, "10": 220}, path_counts=False)
RUST = Kind(
    name="rust", function="orders::group_by", turns={"0.1": 6000, "1": 60_000, "10": 600_000}, path_counts=False
)
JSON = Kind(name="json", function="ascii_escape_unicode", turns={"0.1": 24, "1": 243, "10": 2430}, path_counts=True)
SCRIPT = Kind(
    name="script", function="_PyEval_EvalFrameDefault", turns={"0.1": 100, "1": 850, "10": 8300}, path_counts=True
)
KINDS = (C, RUST, JSON, SCRIPT)


def build(kind: Kind, folder: Path, turns: int = 0) -> Built:
    """Build this program in a new folder, with that many turns of the planted loop."""
    folder.mkdir(parents=True)
    return {"c": _c, "rust": _rust, "json": _json, "script": _script}[kind.name](folder, turns)


def _c(folder: Path, turns: int) -> Built:
    source = _write(folder / "words.c", "#define PLANTED 0", f"#define PLANTED {turns}")
    return Built(command=(_compile("gcc", "-O2", "-g", source, to=folder / "words"),))


def _rust(folder: Path, turns: int) -> Built:
    source = _write(folder / "orders.rs", "PLANTED: u32 = 0;", f"PLANTED: u32 = {turns};")
    return Built(command=(_compile("rustc", "-O", "-g", source, to=folder / "orders"),))


def _script(folder: Path, turns: int) -> Built:
    _require_python()
    return Built(command=(PYTHON, WITHOUT_SITE, _write(folder / "swaps.py", "PLANTED = 0", f"PLANTED = {turns}")))


def _json(folder: Path, turns: int) -> Built:
    original, flags = json_sources()
    modules = folder / "modules"
    modules.mkdir()
    source = _write(folder / "_json.c", JSON_FUNCTION, JSON_PLANTED % turns, original=original)
    _compile("gcc", "-O2", *flags, source, to=modules / "_json.so")
    script = shutil.copy(SOURCES / "documents.py", folder)
    return Built(command=(PYTHON, WITHOUT_SITE, str(script)), variables={"PYTHONPATH": str(modules)})


def json_sources() -> tuple[Path, tuple[str, ...]]:
    """Return the `_json.c` of the system's Python, and options of the compiler that make an extension of it."""
    version = _require_python()
    original = TOOLS / f"cpython-{version}" / "_json.c"
    headers = f"/usr/include/python{version.rpartition('.')[0]}"
    if not original.exists():
        without(f"no _json.c of Python {version} in .tools (`scripts/setup.sh test-slow` says why)")
    if not os.path.exists(f"{headers}/internal/pycore_ceval.h"):
        without(f"no {headers} (`scripts/setup.sh test-slow` installs python3-dev)")
    flags = ("-g", "-fPIC", "-shared", "-DPy_BUILD_CORE_MODULE")
    return original, (*flags, f"-I{headers}", f"-I{headers}/internal", f"-I{original.parent}")


JSON_FUNCTION = """
static PyObject *
ascii_escape_unicode(PyObject *pystr)
{
"""

# As in words.c.
JSON_PLANTED = """
__attribute__((noinline)) static PyObject *
ascii_escape_unicode(PyObject *pystr)
{
    int turns = %d;
    __asm__ volatile("" : "+r"(turns));
    for (; turns > 0; turns--) __asm__ volatile("");
"""


def _require_python() -> str:
    """Return the version of the system's Python."""
    if shutil.which(PYTHON) is None:
        without(f"no {PYTHON}")
    code = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
    return subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _write(path: Path, old: str, new: str, *, original: Path | None = None) -> str:
    """Write a source with this one place replaced."""
    text = (original or SOURCES / path.name).read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path.name} does not have this once: {old}"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return str(path)


def _compile(compiler: str, *words: str, to: Path) -> str:
    """Compile; sources are given by their whole path, so that it is in the debug information."""
    # A rustup shim without a toolchain is found on PATH and does not run.
    if (
        shutil.which(compiler) is None
        or subprocess.run([compiler, "--version"], capture_output=True, check=False).returncode
    ):
        without(f"no {compiler} that runs (`scripts/setup.sh test-slow` installs it)")
    done = subprocess.run([compiler, *words, "-o", str(to)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(f"{compiler} failed:\n{done.stderr}", pytrace=False)
    return str(to)
