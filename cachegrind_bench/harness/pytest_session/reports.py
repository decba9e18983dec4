"""Reads what processes that execute tests have written."""

from __future__ import annotations

import marshal
import os
from typing import Any

from cachegrind_bench.errors import MeasurementError

_MOST_BYTES = 1 << 29  # of a report, which has what a test printed up to three times, once for each of its phases
_TOO_LONG = f"has a report of more than {_MOST_BYTES >> 20} MiB, with all that it printed"


def read_report(path: str) -> Any:
    """Read a report; None if it has not come yet. MeasurementError if it is damaged."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > _MOST_BYTES:
                return {"reports": [], "died": _TOO_LONG}
            return marshal.load(file)
    except FileNotFoundError:
        return None
    except (EOFError, ValueError, TypeError) as error:
        raise MeasurementError(f"cannot read {path}, which the measured process wrote: {error}") from error
