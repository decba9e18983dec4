"""What is particular to one framework stays in its own room."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cachegrind_bench
from cachegrind_bench.config.schema import HARNESSES

PACKAGE = Path(cachegrind_bench.__file__).parent
NAMES = "|".join(name.replace("-", "[ _-]?") for name in HARNESSES if name != "go") + "|gotest"


def found(words: str, folder: str) -> list[str]:
    files = (path for path in (PACKAGE / folder).rglob("*") if path.suffix in {".py", ".c"})
    return [str(path) for path in files if re.search(rf"\b({words})(?![a-z])", path.read_text(), re.IGNORECASE)]


@pytest.mark.parametrize("folder", ["valgrind", "hermetic", "measure", "compare", "history", "store", "vcs", "ci"])
def test_the_main_road_names_no_framework(folder: str) -> None:
    assert found(NAMES, folder) == []


def test_every_harness_has_an_adapter() -> None:
    adapters = [path.stem for path in (PACKAGE / "harness").glob("*.py") if "HARNESS = " in path.read_text()]
    assert sorted(adapters) == sorted(name.replace("-", "_") for name in HARNESSES)


@pytest.mark.parametrize("folder", ["valgrind", "hermetic", "measure"])
def test_what_executes_once_knows_no_loops(folder: str) -> None:
    assert found("frameworks?|iterations?", folder) == []


def test_the_engine_of_loops_is_the_same_for_all_frameworks() -> None:
    assert found(NAMES, "harness/engine") == []
