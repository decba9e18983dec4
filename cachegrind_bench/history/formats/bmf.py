"""One run in the Bencher Metric Format, for `bencher run --adapter json`: {benchmark: {measure: {"value": number}}}.

Carries scores and counts; no commit, time or key, so nothing can be read back. Bencher refuses a whole file for one name
that it does not take, so such benchmarks are left out.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cachegrind_bench.model.history import Snapshot

_LONGEST = 1024  # in bytes
# Bencher takes such a name for the id of a benchmark that it must have already.
_UUID = re.compile(
    r"\{?(?:urn:uuid:)?[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}\}?", re.ASCII | re.IGNORECASE
)


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The text of the file, and how many benchmarks that went well are not in it, as Bencher takes no such name."""

    text: str
    left_out: int


def write(run: Snapshot) -> Document:
    """Return the score and the nine counts of each benchmark that went well."""
    measures = {
        point.id: {
            measure: {"value": value}
            for measure, value in {"score": point.score.value, **point.counts.as_dict()}.items()
        }
        for point in run.points
        if point.counts is not None and point.score is not None
    }
    taken = {name: found for name, found in measures.items() if _takes(name)}
    return Document(text=json.dumps(taken, indent=2) + "\n", left_out=len(measures) - len(taken))


def _takes(name: str) -> bool:
    return 0 < len(name.encode()) <= _LONGEST and _UUID.fullmatch(name) is None
