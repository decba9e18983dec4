"""A history in the formats of other tools, and back where a format carries enough: values in, text out."""

from __future__ import annotations

import re
from typing import BinaryIO

_LOOKED_AT = 1 << 20

# What the action keeps of itself: on its page, and as plain JSON under the path external-data-json-path.
_ACTION = re.compile(rb'\s*(?:\[|window\.|\{\s*"(?:lastUpdate|repoUrl|entries)"\s*:)')


def detect(stream: BinaryIO) -> str:
    """Return the format that a file begins like; the stream is at its beginning, and is left there."""
    start = stream.read(_LOOKED_AT).removeprefix(b"\xef\xbb\xbf")
    stream.seek(0)
    if _ACTION.match(start):
        return "github-action-benchmark"
    return "jsonl" if start.lstrip().startswith(b"{") else "csv"
