"""Remembers what of a branch here has been at a remote, also after the remote has begun it anew.

Knows which refs tell it; must not know what the branch holds, nor what is done about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.vcs.branches import AgainError
from cachegrind_bench.vcs.git import failure, try_git

if TYPE_CHECKING:
    from cachegrind_bench.vcs.branches import Branch


def published(branch: Branch, remote: str, here: str) -> str | None:
    """Return the newest commit of the branch, which ends with `here`, that is known to have been at the remote, or None.

    To be asked before a fetch, which replaces what is known of the remote; the answer is kept in a ref, as it would be lost.
    """
    own, last, theirs = (
        f"refs/{folder}/{remote}/{branch.name}" for folder in ("cg-bench/published", "cg-bench/remotes", "remotes")
    )
    tips = _tips(branch, (own, last, theirs))
    if tips.get(own) == here:
        return here
    # An older answer may know more than the remote's last state, or be of a branch that was here before this one.
    known = [tips[ref] for ref in (own, last, theirs) if ref in tips]
    if theirs in tips:  # what the user's own fetches saw in former times
        known += _words(branch, "merge-base", "--fork-point", theirs, here)
    best: str | None = None
    for tip in dict.fromkeys(known):
        common = branch.merge_base(here, tip)
        if common is not None and (best is None or branch.is_ancestor(best, common)):
            best = common
    if best is not None and best != tips.get(own):
        done = try_git(("update-ref", own, best), branch.repository, branch.environ)
        if done.status != 0:
            raise AgainError(failure(done, "update-ref", branch.repository))
    return best


def _tips(branch: Branch, refs: tuple[str, ...]) -> dict[str, str]:
    """Return the commits that those of the refs lead to that are there."""
    words = _words(branch, "for-each-ref", "--format=%(refname) %(objectname)", *refs)
    found = dict(zip(words[::2], words[1::2], strict=True))
    return {ref: found[ref] for ref in refs if ref in found}


def _words(branch: Branch, *arguments: str) -> list[str]:
    """Return what git answers, nothing if its answer is no."""
    done = try_git(arguments, branch.repository, branch.environ)
    if done.status not in (0, 1):
        raise MeasurementError(failure(done, arguments[0], branch.repository))
    return done.stdout.decode("utf-8", "surrogateescape").split()
