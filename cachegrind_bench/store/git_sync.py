"""Changes a branch of records with many writers at once: look, commit, compare and swap, and look again; over and over.

Knows how to win against other writers and how to see when that is hopeless; must not know what records are.
"""

from __future__ import annotations

import random
import shlex
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import TypeVar

import msgspec

from cachegrind_bench.errors import MeasurementError, StoreError
from cachegrind_bench.vcs.branches import AgainError, Branch, DoubtfulError, LockWatch, LostError, published
from cachegrind_bench.vcs.objects import Entry, Objects

Changes = Mapping[str, Entry | None]
T = TypeVar("T")

PATIENCE_S = 120.0

# Tries of what seldom mends itself, and of reading: nobody else can be in the way of that.
_FEW = 4
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 5.0
_CHANCE = random.SystemRandom()


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The records at one moment. `there` and `here` are what the branch ends with at the remote and in the repository.

    A change is a commit with these `parents`, whose tree is that of `base` with what is `carried` over from the other side.
    What is here is `outdated` if all of it was at the remote, which has begun the branch anew since.
    """

    there: str | None
    here: str | None
    parents: tuple[str, ...]
    base: Mapping[str, Entry]
    carried: Changes
    outdated: bool = False

    @property
    def entries(self) -> dict[str, Entry]:
        """All there is, by path; folders only where they are in `base`."""
        changed = {**self.base, **self.carried}
        return {path: entry for path, entry in changed.items() if entry is not None}


class Attempts:
    """Counts tries and waits between them, at random so that writers who met do not meet again."""

    def __init__(self, branch: Branch, patience: float, what: str, *, few: bool = False) -> None:
        self._branch, self._what, self._few = branch.name, f"the branch {branch.name} {what}", few
        self._waiting = branch.waiting.apart()
        self._since = time.monotonic()
        self._until = self._since + patience
        self._tried = self._doubts = 0

    def failed(self, error: AgainError, hint: str | None = None) -> None:
        """Wait before the next try; StoreError if there have been enough."""
        self._tried += 1
        self._doubts += isinstance(error, DoubtfulError) or self._few
        left = self._until - time.monotonic()
        if self._doubts >= _FEW or left <= 0:
            how = f"{self._tried} tries" if self._tried > 1 else "one try"
            hint = (
                hint or error.hint or "check that the remote can be reached and the branch written to, then try again"
            )
            raise StoreError(f"{self._what} after {how}: {error.message}", hint=hint) from error
        self._waiting.look(f"the branch {self._branch} ({error.message})", time.monotonic() - self._since)
        longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(self._tried, 10))
        time.sleep(min(left, _CHANCE.uniform(longest / 10, longest)))


class Sync(msgspec.Struct, frozen=True, kw_only=True):
    """A branch of records, here and at a remote; without a remote (None) what is here counts, with one what is there.

    What is only here, as from a time before there was a remote, counts as well, and is pushed with the next change. What was
    at the remote, and is not any more since somebody began the branch anew there, does not come back.
    """

    branch: Branch
    objects: Objects
    remote: str | None
    patience: float = PATIENCE_S

    def look(self) -> State:
        """Return the state now. StoreError if it cannot be found out."""
        attempts = Attempts(self.branch, self.patience, "cannot be read", few=True)
        while True:
            try:
                with git_errors():
                    return self._state()
            except AgainError as error:
                attempts.failed(error)

    def change(self, message: str, plan: Callable[[State], tuple[Changes, T]]) -> T:
        """Make a change, durably; `plan` returns it and our own result, and is called again after each lost race.

        StoreError if it cannot be made. Nothing to change makes no commit.
        """
        attempts = Attempts(self.branch, self.patience, "could not be written")
        lock = LockWatch(self.branch, min(LockWatch(self.branch).patience, self.patience / 2))
        pushed: list[tuple[str, T]] = []
        with git_errors():
            place = self.branch.checked_out()
            self.branch.tidy()
        if place is not None:
            raise StoreError(
                f"the branch {self.branch.name} is checked out in {place}, and its files would no longer fit it",
                hint="check out another branch there",
            )
        while True:
            hint: str | None = None
            try:
                with git_errors():
                    state = self._state()
                    for commit, result in pushed:  # the connection may have broken after it had worked
                        if state.there is not None and self.branch.is_ancestor(commit, state.there):
                            self._follow(state, commit)
                            return result
                    changes, result = plan(state)
                    new = self._commit(state, changes, message)
                    if new is None:
                        return result
                    pushed.append((new, result))
                    self._swap(state, new)
                    return result
            except AgainError as error:
                if isinstance(error, LostError):
                    pushed.pop()
                with git_errors():
                    path = lock.look()
                if lock.removed:  # what was in the way is gone, however long that took
                    continue
                if path is not None:
                    hint = f"if no git runs in that repository, remove {path}"
                attempts.failed(error, hint)

    def _state(self) -> State:
        here, there, shared, outdated = self.branch.tip(), None, None, False
        if self.remote is not None:
            shared = None if here is None else published(self.branch, self.remote, here)
            there = self.branch.fetch(self.remote)
        if here is None or there is None:
            tip = here or there
        elif self.branch.is_ancestor(here, there):
            tip = there
        elif self.branch.is_ancestor(there, here):
            tip = here
        elif shared is None or self.branch.is_ancestor(shared, there):
            return self._joined(here, there)
        elif shared == here:
            tip, outdated = there, True
        else:
            # What is here is in part the remote's former history, and in part was never there.
            name, old = (shlex.quote(name) for name in (self.branch.name, f"{self.branch.name}-old"))
            raise StoreError(
                f"the branch {self.branch.name} was started afresh at {self.remote}, and the local one continues the former one",
                hint=f"git branch -m {name} {old}; if you still need its records: cg-bench history sync --from git:{old} --to git:{name}",
            )
        base = {} if tip is None else self.objects.listing(tip)
        parents = () if tip is None else (tip,)
        return State(there=there, here=here, parents=parents, base=base, carried={}, outdated=outdated)

    def _joined(self, here: str, there: str) -> State:
        """Return the state of two histories that went apart: what either added, without what either removed."""
        common = self.branch.merge_base(here, there)
        before = {} if common is None else self.objects.listing(common)
        base, ours = self.objects.listing(there), self.objects.listing(here)
        carried: dict[str, Entry | None] = {
            path: entry
            for path, entry in ours.items()
            if not entry.is_folder and path not in base and path not in before
        }
        carried |= {
            path: None for path, entry in base.items() if not entry.is_folder and path in before and path not in ours
        }
        return State(there=there, here=here, parents=(there, here), base=base, carried=carried)

    def _commit(self, state: State, changes: Changes, message: str) -> str | None:
        """Return the commit to publish, which is what is here where nothing changes; None where there is nothing to do."""
        tip = next(iter(state.parents), None)
        if not changes and len(state.parents) < 2:
            return None if self.remote is None or tip == state.there else tip
        tree = self.objects.tree(state.base, {**state.carried, **changes})
        return self.objects.commit(tree, state.parents, message)

    def _swap(self, state: State, new: str) -> None:
        """Put the commit in its place. AgainError if another one came first."""
        if self.remote is None:
            self.branch.move(new, state.here)
            return
        self.branch.push(self.remote, new, state.there)
        tip = self.branch.listed(self.remote)
        if tip == new:
            self.branch.remember(self.remote, new)
        else:
            tip = self.branch.fetch(self.remote)
            if tip is None or not self.branch.is_ancestor(new, tip):
                raise AgainError(f"{self.remote} took the commit {new[:12]}, and then did not have it")
        self._follow(state, new)

    def _follow(self, state: State, new: str) -> None:
        """Let the branch here, if there is one, follow that of the remote."""
        if state.here in (None, new):
            return
        if state.outdated or self.branch.is_ancestor(state.here, new):
            with suppress(AgainError):  # the next writer does it
                self.branch.move(new, state.here)


@contextmanager
def git_errors() -> Generator[None]:
    """Turn what git says into a StoreError, but for what another try may mend."""
    try:
        yield
    except AgainError:
        raise
    except MeasurementError as error:
        raise StoreError(error.message, hint=error.hint) from error
