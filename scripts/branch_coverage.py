"""Branch coverage alone: `coverage report --fail-under` adds lines and branches up, and lines are many and easy."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(report: str, required: str) -> int:
    """Read the report of `coverage json`, print one line, and return 1 when too few branches were taken."""
    totals = json.loads(Path(report).read_text(encoding="utf-8"))["totals"]
    covered, branches = totals["covered_branches"], totals["num_branches"]
    percent = 100 * covered / branches if branches else 100.0
    enough = percent >= float(required)
    print(f"branches of the pure layers: {covered} of {branches}, {percent:.1f} % ({required} % required)")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
