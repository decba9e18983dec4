"""How long something may take, as it is written on a command line and in a configuration."""

from __future__ import annotations

import re

from cachegrind_bench.errors import UsageError

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(ms|s|m|min|h)?")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, None: 1000}


def milliseconds(text: str) -> int:
    """Read seconds, or a number with a unit (ms, s, min, h), as whole milliseconds; UsageError on anything else."""
    match = _DURATION.fullmatch(text.strip())
    found = round(float(match[1]) * _UNITS_MS[match[2]]) if match else 0
    if found <= 0:
        raise UsageError(f"{text!r} is not a time", hint="write seconds, as in 90, or 1.5min")
    return found
