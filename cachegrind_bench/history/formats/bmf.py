"""One run in the Bencher Metric Format, for `bencher run --adapter json`: {benchmark: {measure: {"value": number}}}.

Carries scores and counts; no commit, time or key, so nothing can be read back.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cachegrind_bench.model.history import Snapshot


def write(run: Snapshot) -> str:
    """Return the score and the nine counts of each benchmark that went well."""
    document = {
        point.id: {
            measure: {"value": value}
            for measure, value in {"score": point.score.value, **point.counts.as_dict()}.items()
        }
        for point in run.points
        if point.counts is not None and point.score is not None
    }
    return json.dumps(document, indent=2) + "\n"
