"""A comparison as GitLab's code quality report: an entry for each benchmark that needs attention, for the merge request's page.

Format: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Mapping

from cachegrind_bench.model.text import shortened
from cachegrind_bench.render.comparison.github import LONGEST_MESSAGE, message
from cachegrind_bench.render.comparison.states import LOOKS
from cachegrind_bench.render.comparison.view import Row, View

_SEVERITIES = {"error": "major", "warning": "minor"}  # by the levels of annotations; what has others is left out
_COLUMNS = frozenset({"Δ score", "Δ Ir", "where"})
_NOWHERE = "cg-bench.toml", 1  # GitLab refuses an entry without a file and a line


def render(view: View, places: Mapping[str, str]) -> str:
    """Return the report as JSON, worst first.

    `places` are FILE:LINE of the configuration by benchmark, for those whose own file and line to blame are unknown.
    """
    entries = [_entry(row, view, places) for row in view.rows if LOOKS[row.state][2] in _SEVERITIES]
    return json.dumps(entries, indent=2) + "\n"


def _entry(row: Row, view: View, places: Mapping[str, str]) -> dict[str, object]:
    state = row.state.value
    # The same in each pipeline as long as the benchmark is in this state, whatever its numbers: by it GitLab knows what is new.
    fingerprint = hashlib.sha256(f"{state}\0{row.id}".encode("utf-8", "backslashreplace")).hexdigest()
    path, line = row.place or _configured(places.get(row.id, ""))
    return {
        "description": shortened(f"{state}: {row.id}: {message(row, view, _COLUMNS)}", LONGEST_MESSAGE),
        "check_name": f"cg-bench/{state.replace(' ', '-')}",
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[LOOKS[row.state][2] or ""],
        "location": {"path": path, "lines": {"begin": max(1, line)}},
    }


def _configured(place: str) -> tuple[str, int]:
    path, _, line = place.rpartition(":")
    inside = path and not posixpath.isabs(path) and not posixpath.normpath(path).startswith("..") and line.isdecimal()
    return (posixpath.normpath(path), int(line)) if inside else _NOWHERE
