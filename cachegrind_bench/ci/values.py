"""What GitHub tells us of, as plain values, and that it did not."""

from __future__ import annotations

import msgspec

from cachegrind_bench.errors import UsageError

# Whose the token of a job is, as comments name their author.
JOB_BOT = "github-actions[bot]"


class ApiError(UsageError):
    """GitHub did not do what it was asked; `status` is that of HTTP, 0 if it was not reached."""

    def __init__(self, message: str, *, status: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class OpenPull(msgspec.Struct, frozen=True, kw_only=True):
    """An open pull request, as it is now."""

    number: int
    head_sha: str
    head_repository: str | None


class Comment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment under a pull request or issue."""

    id: int
    author: str
    body: str


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact that can still be fetched. `branch` and `sha` are those of its run; `own` tells whether that was of this repository."""

    id: int
    name: str
    size: int
    branch: str | None
    sha: str | None
    own: bool
    created_at: str

    @property
    def age(self) -> tuple[str, int]:
        """What orders artifacts by age, the oldest first: ids do not, as several makers give them out."""
        return self.created_at, self.id


class Issue(msgspec.Struct, frozen=True, kw_only=True):
    """An issue."""

    number: int
    author: str
    title: str
    body: str
    open: bool
