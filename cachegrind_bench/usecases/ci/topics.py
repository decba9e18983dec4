"""What the issue of a finding says."""

from __future__ import annotations

import re

from cachegrind_bench.ci.posts import Topic
from cachegrind_bench.history.values import Finding, Kind, State
from cachegrind_bench.model.text import plain, shortened
from cachegrind_bench.render.markdown import escape
from cachegrind_bench.render.trend import words

_MOST_SUSPECTS = 20
_LONGEST_NAME = 200
_LONGEST_REASON = 500
_WORTH = frozenset({Kind.REGRESSION, Kind.CREEP})
_ALIVE = frozenset({State.NEW, State.OPEN})


def topic(finding: Finding) -> Topic:
    """Return the issue of a finding."""
    alive = finding.state in _ALIVE
    # A title is text, yet @name in it would still call somebody.
    title = plain(f"{finding.benchmark}{words.size(finding)}: {finding.kind.value}").replace("@", "@\u200b")
    return Topic(
        finding=finding.id,
        title=shortened(title, _LONGEST_NAME),
        text=_text(finding, alive=alive),
        alive=alive,
        worth=alive and finding.confirmed and finding.kind in _WORTH,
    )


def _text(finding: Finding, *, alive: bool) -> str:
    blame = words.blame(finding, _MOST_SUSPECTS)
    story = ", ".join(map(escape, (words.kind(finding), words.story(finding), blame.words)))
    lines = [
        f"**{escape(shortened(plain(finding.benchmark), _LONGEST_NAME))}**: {story}",
        "",
        # A commit's id by itself becomes a link.
        *(f"- {sha}" for sha in blame.commits if re.fullmatch(r"[0-9a-f]{40,64}", sha)),
        *([f"- and {blame.more} more"] if blame.more else []),
    ]
    if blame.bisectable and alive:
        lines += ["", f"`cg-bench bisect {finding.id}` narrows them down."]
    if finding.recovered_sha is not None:
        lines += ["", f"{words.ended(finding).capitalize()} {finding.recovered_sha[:64]}."]
    if finding.reason is not None:
        lines += ["", f"Accepted: {escape(shortened(plain(finding.reason), _LONGEST_REASON))}"]
    return "\n".join(lines)
