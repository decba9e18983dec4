"""Source files of two builds, paired although each was built in a directory of its own.

Knows how compilers and package managers spell paths. Swapping base and candidate gives the same pairs, swapped.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.model.symbols import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Directories whose name holds a hash or the place of an installation, and what stays the same of them.
_PLACES = (
    (re.compile(r"^/rustc/[0-9a-f]{40}/"), "/rustc/"),
    (re.compile(r"^.*/lib/rustlib/(?:rustc-)?src/rust/"), "/rustc/"),
    (re.compile(r"^.*/registry/src/[^/]+-[0-9a-f]{16}/"), "/registry/"),
    (re.compile(r"^.*/git/checkouts/([^/]+)-[0-9a-f]{16}/[0-9a-f]{7,}/"), r"/checkouts/\1/"),
    (re.compile(r"^/nix/store/[0-9a-z]{32}-"), "/nix/store/"),
)
_LONGEST = 4096
_DEEPEST = 64  # components that are compared; beyond, paths count as equally alike
_MANY = 10_000  # pairs that are weighed one by one

_Builds = Counter[tuple[str, str]]  # for how many files this directory of the base is that one of the candidate
_Rest = tuple[list[str], list[str]]


class Source(msgspec.Struct, frozen=True):
    """One source file of both builds, or of one: `base` and `candidate` are normalised, None where it is not there.

    `shown` has no build directory where the two sides tell what it is.
    """

    shown: str
    base: str | None
    candidate: str | None


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """The source of each file name, as it is spelled on either side."""

    base: Mapping[str, Source]
    candidate: Mapping[str, Source]


def pair_sources(base: Iterable[str], candidate: Iterable[str]) -> Sources:
    """Pair the file names of two builds: equal paths first, then those with the longest common end."""
    base_paths = {path: normalised(path) for path in set(base)}
    candidate_paths = {path: normalised(path) for path in set(candidate)}
    ours, theirs = set(base_paths.values()), set(candidate_paths.values())
    equal = ours & theirs
    rest = sorted(ours - equal - {UNKNOWN}), sorted(theirs - equal - {UNKNOWN})
    builds = Counter(_directories(*pair.files) for pair in _pairs(*rest, Counter()) if pair.sure)
    pairs = dict(pair.files for pair in _pairs(*rest, builds))
    base_builds, candidate_builds = {base for base, _ in builds}, {candidate for _, candidate in builds}
    sources = _distinct(
        [
            *(Source(path, path, path) for path in equal),
            *(Source(_common_end(*files), *files) for files in pairs.items()),
            *(Source(_without(path, base_builds), path, None) for path in ours - equal - pairs.keys()),
            *(Source(_without(path, candidate_builds), None, path) for path in theirs - equal - {*pairs.values()}),
        ]
    )
    by_base = {source.base: source for source in sources}
    by_candidate = {source.candidate: source for source in sources}
    return Sources(
        base={path: by_base[plain] for path, plain in base_paths.items()},
        candidate={path: by_candidate[plain] for path, plain in candidate_paths.items()},
    )


def normalised(path: str) -> str:
    """Return the path without `.`, `..`, hashes and places of installation; one too long to be one as it is."""
    if len(path) > _LONGEST:
        return path
    if path == UNKNOWN or not path:
        return path
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."} and not (part == ".." and path.startswith("/") and not parts):
            parts.append(part)
    plain = "/" * path.startswith("/") + "/".join(parts)
    for place, stays in _PLACES:
        plain = place.sub(stays, plain)
    return plain or path


class _Pair(msgspec.Struct, frozen=True):
    files: tuple[str, str]
    sure: bool  # no other file was as alike


def _pairs(base: list[str], candidate: list[str], builds: _Builds) -> list[_Pair]:
    found: list[_Pair] = []
    _pair(base, candidate, 0, builds, found)
    return found


def _pair(base: list[str], candidate: list[str], depth: int, builds: _Builds, found: list[_Pair]) -> _Rest:
    """Pair files whose last `depth` components are equal, the most alike first; return those that are left over."""
    if not base or not candidate:
        return base, candidate
    if depth and len(base) == len(candidate) == 1:
        found.append(_Pair((base[0], candidate[0]), sure=True))
        return [], []
    if depth == _DEEPEST:
        return _settle(base, candidate, builds, found)
    ours, theirs = _by_component(base, depth), _by_component(candidate, depth)
    rest_base, rest_candidate = list[str](), list[str]()
    for component in sorted({*ours, *theirs}):
        further = _pair(ours.get(component, []), theirs.get(component, []), depth + 1, builds, found)
        rest_base += further[0]
        rest_candidate += further[1]
    return _settle(rest_base, rest_candidate, builds, found) if depth else (rest_base, rest_candidate)


def _settle(base: list[str], candidate: list[str], builds: _Builds, found: list[_Pair]) -> _Rest:
    """Pair files that are all equally alike: those that other files' directories speak for, then in their order."""
    if not base or not candidate:
        return base, candidate
    left, right = sorted(base), sorted(candidate)
    if builds and len(left) * len(right) <= _MANY:
        votes = {(a, b): builds[_directories(a, b)] for a in left for b in right}
        for a, b in sorted(filter(votes.__getitem__, votes), key=lambda pair: (-votes[pair], min(pair), max(pair))):
            if a in left and b in right:
                found.append(_Pair((a, b), sure=False))
                left.remove(a)
                right.remove(b)
    found += (_Pair(files, sure=False) for files in zip(left, right, strict=False))
    return left[len(right) :], right[len(left) :]


def _by_component(paths: list[str], depth: int) -> dict[str, list[str]]:
    """Group paths by the component before their last `depth` ones; one that has none is a group of its own."""
    groups = defaultdict[str, list[str]](list)
    for path in paths:
        parts = path.rsplit("/", depth + 1)
        groups[parts[-depth - 1] + "/" if len(parts) > depth else ""].append(path)
    return groups


def _common_end(base: str, candidate: str) -> str:
    ends = list[str]()
    for ours, theirs in zip(reversed(base.split("/")), reversed(candidate.split("/")), strict=False):
        if ours != theirs:
            break
        ends.append(ours)
    return "/".join(reversed(ends))


def _directories(base: str, candidate: str) -> tuple[str, str]:
    """Return what stands before the common end: the directories in which the two were built."""
    end = len(_common_end(base, candidate))
    return base[: len(base) - end].rstrip("/"), candidate[: len(candidate) - end].rstrip("/")


def _without(path: str, directories: set[str]) -> str:
    at = path.find("/", 1)
    while at > 0:
        if path[:at] in directories:
            return path[at + 1 :]
        at = path.find("/", at + 1)
    return path


def _distinct(sources: list[Source]) -> list[Source]:
    """Show the whole path where two files would look the same; of two, the first in order, whichever side has it."""
    times = Counter(source.shown for source in sources)
    return [
        source
        if times[source.shown] == 1
        else replace(source, shown=min(path for path in (source.base, source.candidate) if path is not None))
        for source in sources
    ]
