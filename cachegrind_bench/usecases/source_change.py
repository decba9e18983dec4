"""What changed in the source between the commits of two results, and which of it explains their difference."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache, partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.compare.hunks import Blamed, Side, hunk_split
from cachegrind_bench.vcs.diff import hunks, text_at

if TYPE_CHECKING:
    from cachegrind_bench.compare.explain import Details
    from cachegrind_bench.compare.verdict import Comparison
    from cachegrind_bench.model.python_profile import PythonProfile
    from cachegrind_bench.vcs.git import Git


class SourceChange:
    """The change between the commits of a comparison, read once, and only if it is asked for."""

    def __init__(self, comparison: Comparison, git: Git, root: str) -> None:
        """`root` is the top of the work tree that `git` is in."""
        self._root = root
        sides = comparison.base.commit, comparison.candidate.commit
        # What was not committed is not known.
        known = [side.sha for side in sides if side is not None and not side.dirty]
        self._commits = known if len({*known}) == len(sides) else []
        self._hunks = cache(partial(hunks, git))
        self._text = cache(partial(text_at, git))

    def explained(self, details: Details, python: tuple[PythonProfile, PythonProfile] | None) -> Details:
        """Return details with the hunks of the change that explain them, where calls or functions of Python were recorded."""
        blamed, total = _blamed(details)
        if not (blamed and self._commits):
            return details
        old, new = self._commits
        gone, changed = self._hunks(new, old), self._hunks(old, new)
        if gone is None or changed is None:
            return details
        executed: list[Collection[tuple[str, int]]] = [
            {(function.file, function.line) for function in profile.functions} for profile in python or ()
        ] or [(), ()]
        base = Side(gone, partial(self._text, old), executed[0])
        candidate = Side(changed, partial(self._text, new), executed[1])
        return replace(details, hunks=hunk_split(base, candidate, blamed, total, root=self._root))


def _blamed(details: Details) -> tuple[list[Blamed], int]:
    """Return the functions that explain the difference, Python's if one of them is to blame, and the whole difference."""
    python = details.python
    if python is not None and python.chief is not None:
        found = ((row.function, row.blame) for row in (*python.rows, *python.rest))
        return [
            Blamed(item.file, item.line, item.name, ir) for item, ir in found if not item.name.startswith("<")
        ], python.total
    if details.calls is None:
        return [], 0
    return [
        Blamed(row.label.file, row.label.line, row.label.name, row.blame) for row in details.calls.rows
    ], details.calls.total
