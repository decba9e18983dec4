"""The names of findings: the same from report to report, as long as it is the same change. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from cachegrind_bench.history.values import Kind, State

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from cachegrind_bench.history.values import Finding


def identity(kind: Kind, benchmark: str, key: str, anchor: str) -> str:
    """Return 12 hex digits for a change that came with the commit `anchor`, or that has no such commit ("")."""
    text = json.dumps([kind.value, benchmark, key, anchor], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:12]


def known_identity(
    kind: Kind, benchmark: str, key: str, anchors: Iterable[str], previous: Collection[str] | None
) -> str:
    """Return the identity after the first of these commits, or one from the previous report that belongs to a later one.

    The first is where the change was measured first. If a commit before it is measured afterwards, it is another one:
    who knows the previous report finds the old name by the commit that was first then.
    """
    names = (identity(kind, benchmark, key, anchor) for anchor in anchors)
    own = next(names)
    if not previous or own in previous:
        return own
    return next((name for name in names if name in previous), own)


def told_before(findings: Iterable[Finding], renames: Mapping[str, str], anchors: Collection[str]) -> dict[str, bool]:
    """Return the identities of a previous report's findings, and whether they were confirmed then.

    Those of benchmarks that have another name now are found by that as well; `anchors` are the commits creep may begin with.
    """
    known: dict[str, bool] = {}
    for finding in findings:
        if finding.kind is Kind.UNSTABLE and finding.state is State.RECOVERED:
            continue  # it has one name for ever, and its return is news
        names = [finding.id]
        if finding.benchmark in renames:
            step = finding.kind in (Kind.REGRESSION, Kind.IMPROVEMENT)
            begins = finding.suspects[-1:] if step else ("", *anchors)
            names += [identity(finding.kind, renames[finding.benchmark], finding.key, begin) for begin in begins]
        for name in names:
            known[name] = known.get(name, False) or finding.confirmed
    return known
