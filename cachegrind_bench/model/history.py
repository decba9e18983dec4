"""What histories are made of: commits, releases, and runs of which only a few numbers count. Values only.

Everything else about a run stays in the record it was stored as.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cachegrind_bench.model.metrics import Counts
    from cachegrind_bench.model.result import Commit, Score, Status


class Point(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One benchmark in one run; `counts` and `score` are None unless its status is ok. `key` is that of comparability."""

    id: str
    key: str
    status: Status
    counts: Counts | None
    score: Score | None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One stored run: `uid` names its record, `created_at` is UTC, as 2026-01-31T12:00:00Z."""

    uid: str
    tool_version: str
    created_at: str
    commit: Commit | None
    env_key: str
    points: tuple[Point, ...]


class CommitNote(msgspec.Struct, frozen=True, kw_only=True):
    """A commit as git tells of it; `parents` has the first parent first, `committed_at` is UTC, with a Z."""

    sha: str
    parents: tuple[str, ...]
    committed_at: str
    author: str
    subject: str


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """A tag on the line of commits that is looked at."""

    name: str
    sha: str
