"""What is particular to one framework stays in its own room."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cachegrind_bench

PACKAGE = Path(cachegrind_bench.__file__).parent
HARNESSES = [path.stem for path in (PACKAGE / "harness").glob("*.py") if "HARNESS = " in path.read_text()]


@pytest.mark.parametrize("folder", ["valgrind", "hermetic", "measure"])
def test_the_main_road_names_no_framework(folder: str) -> None:
    assert len(HARNESSES) == 9
    names = "|".join(name.replace("_", "[ _-]?") for name in HARNESSES if name != "go")
    for path in (PACKAGE / folder).rglob("*.py"):
        assert re.findall(rf"\b({names}|gotest)(?![a-z])", path.read_text(), re.IGNORECASE) == [], path
