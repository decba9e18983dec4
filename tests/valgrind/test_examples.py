"""The examples that are scripts measure, and print what their pages show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.usefixtures("valgrind_path")
def test_the_cache_sweep_counts_and_times_each_size() -> None:
    script = str(EXAMPLES / "cache-sweep" / "sweep.py")
    options = "--starts", "1", "--largest", "2000"
    done = subprocess.run([sys.executable, script, *options], check=True, capture_output=True, text=True)
    rows = re.findall(
        r"^\| ([\d,]+) \| (\w+) \| [\d.]+ \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", done.stdout, re.MULTILINE
    )
    assert [row[:2] for row in rows] == [(size, way) for size in ("1,000", "2,000") for way in ("linear", "random")]
    assert all(float(score) > float(Ir) > 4 for *_, score, _, Ir in rows)
    assert "Pearson of estimate and time" in done.stdout
