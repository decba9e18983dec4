"""Changes a branch of records with many writers at once: fetch, commit, push; and from the beginning if another came first.

Must not know what records are.
"""

from __future__ import annotations

import random
import shlex
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cachegrind_bench.errors import MeasurementError, StoreError
from cachegrind_bench.vcs.branches import AgainError, Branch, DoubtfulError

if TYPE_CHECKING:
    from cachegrind_bench.vcs.objects import Objects

T = TypeVar("T")
Changes = Mapping[str, bytes | None]

PATIENCE_S = 120.0

# Tries of what another try seldom helps, and of reading: only a lock can be in the way of that.
_FEW = 4
_LOCKED = "cannot lock ref"
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 5.0
_CHANCE = random.SystemRandom()


class Attempts:
    """Counts tries and waits between them, at random so that writers who met do not meet again."""

    def __init__(self, branch: Branch, patience: float, what: str, *, few: bool = False) -> None:
        self._branch, self._what, self._few = branch.name, f"the branch {branch.name} {what}", few
        self._waiting = branch.waiting.apart()
        self._since = time.monotonic()
        self._until = self._since + patience
        self._tried = self._doubts = 0

    def failed(self, error: AgainError) -> None:
        """Wait before the next try; StoreError if there have been enough."""
        self._tried += 1
        self._doubts += isinstance(error, DoubtfulError) or (self._few and _LOCKED not in error.message)
        left = self._until - time.monotonic()
        if self._doubts >= _FEW or left <= 0:
            how = f"{self._tried} tries" if self._tried > 1 else "one try"
            hint = error.hint or "check that the remote can be reached and the branch written to, then try again"
            raise StoreError(f"{self._what} after {how}: {error.message}", hint=hint) from error
        self._waiting.look(f"the branch {self._branch} ({error.message})", time.monotonic() - self._since)
        longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(self._tried, 10))
        time.sleep(min(left, _CHANCE.uniform(longest / 10, longest)))


class Sync(msgspec.Struct, frozen=True, kw_only=True):
    """A branch of records. With a remote the branch there counts, without one (None) that in this repository.

    What is only here, as from a time before there was a remote, counts as well, and is pushed with the next change.
    """

    branch: Branch
    objects: Objects
    remote: str | None
    patience: float = PATIENCE_S

    def tip(self) -> str | None:
        """Return the commit the branch ends with; None if there is no branch. StoreError if it cannot be found out."""
        attempts = Attempts(self.branch, self.patience, "cannot be read", few=True)
        while True:
            try:
                with git_errors():
                    return self._tips()[0]
            except AgainError as error:
                attempts.failed(error)

    def change(self, message: str, plan: Callable[[str | None], tuple[Changes, T]]) -> T:
        """Make a change, durably; `plan` gets the tip, returns new contents (None: remove) and our own result.

        It is called again after each lost race. StoreError if the change cannot be made. Nothing to change makes no commit.
        """
        attempts = Attempts(self.branch, self.patience, "could not be written")
        made: tuple[str, T] | None = None
        if self.remote is None:
            self._check_not_checked_out()
        while True:
            try:
                with git_errors():
                    tip, there = self._tips()
                    # The connection may have broken after it had worked.
                    if made and there and self.branch.is_ancestor(made[0], there):
                        return made[1]
                    changes, result = plan(tip)
                    if not changes and tip == there:
                        return result
                    # Without changes, what is only here is pushed.
                    made = tip if tip and not changes else self.objects.commit(tip, changes, message), result
                    if self.remote is None:
                        self.branch.move(made[0], tip)
                    else:
                        self.branch.push(self.remote, made[0])
                    return result
            except AgainError as error:
                attempts.failed(error)

    def _tips(self) -> tuple[str | None, str | None]:
        """Return the commit the branch ends with, and the one where it counts, which may lack what is only here."""
        here = self.branch.tip()
        if self.remote is None:
            return here, here
        there = self.branch.fetch(self.remote)
        if here is None or there is None or self.branch.is_ancestor(here, there):
            return there or here, there
        if self.branch.is_ancestor(there, here):
            return here, there
        name, old = (shlex.quote(name) for name in (self.branch.name, f"{self.branch.name}-old"))
        raise StoreError(
            f"the branch {self.branch.name} here and that of {self.remote} went apart",
            hint=f"git branch -m {name} {old}; if you still need its records: cg-bench history sync --from git:{old} --to git:{name}",
        )

    def _check_not_checked_out(self) -> None:
        with git_errors():
            place = self.branch.checked_out()
        if place is not None:
            raise StoreError(
                f"the branch {self.branch.name} is checked out in {place}, and its files would no longer fit it",
                hint="check out another branch there",
            )


@contextmanager
def git_errors() -> Generator[None]:
    """Turn what git says into a StoreError, unless another try may help."""
    try:
        yield
    except AgainError:
        raise
    except MeasurementError as error:
        raise StoreError(error.message, hint=error.hint) from error
