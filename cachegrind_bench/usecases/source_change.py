"""What changed in the source between the commits of two results, and which of it explains their difference."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.compare.hunks import Blamed, Lines, Side, hunk_split, is_same_file
from cachegrind_bench.model.text import below
from cachegrind_bench.vcs.diff import hunks, is_build_file, is_source, moved_line, spans, text_at

if TYPE_CHECKING:
    from cachegrind_bench.compare.call_split import Label
    from cachegrind_bench.compare.explain import Details
    from cachegrind_bench.compare.lines import Ways
    from cachegrind_bench.compare.verdict import Comparison
    from cachegrind_bench.model.metrics import Profile
    from cachegrind_bench.model.python_profile import PythonProfile
    from cachegrind_bench.vcs.git import Git

_Key = tuple[str, str]  # file and name of a row of a profile


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
        self._spans = cache(partial(spans, git))

    def moves(self, path: str) -> Ways | None:
        """Return where lines of this file are in the other commit, both ways; None where that is not known."""
        if not self._commits:
            return None
        found, file = self._spans(*self._commits), below(path, self._root)
        if found is None:
            return None
        named = [name for name in found if is_same_file(file, name)]
        # Where nothing changed, each line is where it was: of a file of this repository.
        if len(named) > 1 or (not named and self._text(self._commits[1], file) is None):
            return None
        changed = [span for name in named for span in found[name]]
        back = [span.reverse for span in changed]
        return (lambda line: moved_line(line, changed)), (lambda line: moved_line(line, back))

    def explained(
        self, details: Details, profiles: tuple[Profile, Profile], python: tuple[PythonProfile, PythonProfile] | None
    ) -> Details:
        """Return details with the hunks of the change that explain them.

        That takes calls, functions of Python or lines, recorded on both sides.
        """
        if not self._commits:
            return details
        old, new = self._commits
        changed = self._hunks(old, new)
        built = sorted({hunk.file for hunk in changed or () if is_build_file(hunk.file)})
        only = bool(built) and not any(is_source(hunk.file) for hunk in changed or ())
        details = replace(details, build_files=tuple(built), only_build_files=only)
        recorded = all(profile.lines for profile in profiles)
        blamed, way, total = _blamed(details, _by_function(profiles[1]) if recorded else {})
        if not blamed:
            return details
        gone = self._hunks(new, old)
        if gone is None or changed is None:
            return details
        executed = [
            _executed(profile, None if python is None else python[side]) for side, profile in enumerate(profiles)
        ]
        base = Side(gone, partial(self._text, old), executed[0])
        candidate = Side(changed, partial(self._text, new), executed[1])
        return replace(details, hunks=hunk_split(base, candidate, blamed, total, way=way, root=self._root))


def _by_function(profile: Profile) -> dict[_Key, set[int]]:
    found: dict[_Key, set[int]] = defaultdict(set)
    for row in profile.lines:
        found[row.file, row.name].add(row.line)
    return found


def _executed(profile: Profile, python: PythonProfile | None) -> Lines:
    """Return the lines that were executed; of Python, where its functions begin."""
    found: dict[str, set[int]] = defaultdict(set)
    for row in profile.lines:
        found[row.file].add(row.line)
    for function in () if python is None else python.functions:
        found[function.file].add(function.line)
    return found


def _blamed(details: Details, lines: Mapping[_Key, Collection[int]]) -> tuple[list[Blamed], list[Blamed], int]:
    """Return the functions that explain the difference, those on the way to them, and the whole difference.

    They are Python's if one of these is to blame.
    """
    rows = () if details.by_file else (*details.rows, *details.rest)
    code = {key: row.candidate_keys for row in rows for key in row.candidate_keys}
    names = Counter(row.name for row in rows)
    code |= {("", row.name): row.candidate_keys for row in rows if names[row.name] == 1}

    def all_of(found: Collection[tuple[Label, int]]) -> list[Blamed]:
        keys = [code.get((label.file, label.name)) or code.get(("", label.name), ()) for label, _ in found]
        return [
            Blamed(label.file, label.line, label.name, ir, _joined(lines, rows))
            for (label, ir), rows in zip(found, keys, strict=True)
        ]

    python = details.python
    if python is not None and python.chief is not None:
        found = (
            (row.function, row.blame) for row in (*python.rows, *python.rest) if not row.function.name.startswith("<")
        )
        blamed = [Blamed(item.file, item.line, item.name, ir, {}) for item, ir in found]
        return blamed, all_of(() if details.python_calls is None else details.python_calls.way), python.total
    if details.calls is not None:
        blamed = all_of(details.calls.shares)
        return blamed, all_of(details.calls.way), details.calls.total
    # Those that matter: of all functions, each would be held against each hunk.
    shown = details.rows if lines and not details.by_file else ()
    blamed = [Blamed(row.file, 0, row.name, row.delta.Ir, _joined(lines, row.candidate_keys)) for row in shown]
    return blamed, [], details.total.Ir


def _joined(lines: Mapping[_Key, Collection[int]], keys: Collection[_Key]) -> Lines:
    """Return the lines of a function that consists of these rows, by file."""
    return {file: lines[file, name] for file, name in keys if (file, name) in lines}
