"""What is the same in two builds: source files, executables and libraries, Python functions, wherever they are and lie.

Knows how compilers, linkers and package managers spell paths; must not know what anything costs. Swapping base and
candidate gives the same pairs, swapped.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import islice, takewhile
from operator import attrgetter
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from cachegrind_bench.compare.compilers import other_compilers
from cachegrind_bench.model.python_profile import PythonFunction
from cachegrind_bench.model.result import ObjectFile
from cachegrind_bench.model.symbols import UNKNOWN

T = TypeVar("T", bound="ObjectFile | PythonFunction")

# Directories whose name holds a hash or the place of an installation, and what stays the same of them.
_PLACES = (
    (re.compile(r"^/rustc/[0-9a-f]{40}/"), "/rustc/"),
    (re.compile(r"^.*/lib/rustlib/(?:rustc-)?src/rust/"), "/rustc/"),
    (re.compile(r"^.*/registry/src/[^/]+-[0-9a-f]{16}/"), "/registry/"),
    (re.compile(r"^.*/git/checkouts/([^/]+)-[0-9a-f]{16}/[0-9a-f]{7,}/"), r"/checkouts/\1/"),
    (re.compile(r"^/nix/store/[0-9a-z]{32}-"), "/nix/store/"),
)
# Python/bytecodes.c of CPython since 3.12 is what generated_cases.c.h names by #line, never a file that is compiled.
_INCLUDED = re.compile(
    r"(?:^|/)Python/bytecodes\.c$|\.(?:h|hh|hpp|hxx|h\+\+|inl|inc|ipp|tcc|tpp|def)$|(?:^|/)include/|^/rustc/|(?:^|/)registry/"
)
_LONGEST = 4096
_DEEPEST = 64  # components that are compared; beyond, paths count as equally alike
_SLASH = re.compile("/")
_MANY = 10_000  # pairs that are weighed one by one

_Pairs = dict[tuple[str, str], bool]  # of files; True where no other file was as alike
_Builds = Counter[tuple[str, str]]  # for how many files this directory of the base is that one of the candidate
_Rest = tuple[list[str], list[str]]


class Source(msgspec.Struct, frozen=True):
    """One source file of both builds, or of one: `base` and `candidate` are normalised, None on a side without it.

    `shown` has no build directory where the two sides show which that is.
    """

    shown: str
    base: str | None
    candidate: str | None


@lru_cache(maxsize=10_000)
def is_included(path: str) -> bool:
    """Return whether code of this file is in files of its users: a header, or a library of Rust."""
    return _INCLUDED.search(path) is not None


def pair_sources(base: Iterable[str], candidate: Iterable[str]) -> tuple[dict[str, Source], dict[str, Source]]:
    """Return the source of each file name of the base, and of the candidate, as they are spelled there.

    Equal paths are paired first, then those with the longest common end.
    """
    base_paths = {path: normalised(path) for path in set(base)}
    candidate_paths = {path: normalised(path) for path in set(candidate)}
    ours, theirs = set(base_paths.values()), set(candidate_paths.values())
    equal = ours & theirs
    rest = sorted(ours - equal - {UNKNOWN}), sorted(theirs - equal - {UNKNOWN})
    sure: _Pairs = {}
    found: _Pairs = {}
    _pair(*rest, 0, Counter(), sure)
    builds = Counter(_directories(*files) for files, is_sure in sure.items() if is_sure)
    _pair(*rest, 0, builds, found)
    pairs = dict(found.keys())
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
    return (
        {path: by_base[plain] for path, plain in base_paths.items()},
        {path: by_candidate[plain] for path, plain in candidate_paths.items()},
    )


def normalised(path: str) -> str:
    """Return the path without `.`, `..`, hashes and places of installation; one too long to be one as it is."""
    if len(path) > _LONGEST or path == UNKNOWN or not path:
        return path
    plain = posixpath.normpath(path)
    plain = f"/{plain.lstrip('/')}" if plain.startswith("//") else plain  # POSIX lets two slashes mean something
    for place, stays in _PLACES:
        plain = place.sub(stays, plain)
    return plain


def _pair(base: list[str], candidate: list[str], depth: int, builds: _Builds, found: _Pairs) -> _Rest:
    """Pair files whose last `depth` components are equal, the most alike first; return those that are left over."""
    if not base or not candidate:
        return base, candidate
    if depth and len(base) == len(candidate) == 1:
        found[base[0], candidate[0]] = True
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


def _settle(base: list[str], candidate: list[str], builds: _Builds, found: _Pairs) -> _Rest:
    """Pair files that are all equally alike: those that other files' directories speak for, then in their order."""
    if not base or not candidate:
        return base, candidate
    left, right = sorted(base), sorted(candidate)
    if builds and len(left) * len(right) <= _MANY:
        votes = {(a, b): builds[_directories(a, b)] for a in left for b in right}
        for a, b in sorted(filter(votes.__getitem__, votes), key=lambda pair: (-votes[pair], min(pair), max(pair))):
            if a in left and b in right:
                found[a, b] = False
                left.remove(a)
                right.remove(b)
    found |= dict.fromkeys(zip(left, right, strict=False), False)
    return left[len(right) :], right[len(left) :]


def _by_component(paths: list[str], depth: int) -> dict[str, list[str]]:
    """Group paths by the component before their last `depth` ones; those without one are a group of their own."""
    groups = defaultdict[str, list[str]](list)
    for path in paths:
        parts = path.rsplit("/", depth + 1)
        groups[parts[-depth - 1] + "/" if len(parts) > depth else ""].append(path)
    return groups


def _common_end(base: str, candidate: str) -> str:
    pairs = zip(reversed(base.split("/")), reversed(candidate.split("/")), strict=False)
    return "/".join(reversed([ours for ours, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]))


def _directories(base: str, candidate: str) -> tuple[str, str]:
    """Return what is before the common end: the directories in which the two were built."""
    end = len(_common_end(base, candidate))
    return base[: len(base) - end].rstrip("/"), candidate[: len(candidate) - end].rstrip("/")


def _without(path: str, directories: set[str]) -> str:
    for slash in islice(_SLASH.finditer(path, 1), _DEEPEST):
        if path[: slash.start()] in directories:
            return path[slash.end() :]
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


# libssl.so.3, libc-2.31.so, libgomp-a34b3233.so.1 (as in wheels), _json.cpython-311-x86_64-linux-gnu.so
_LIBRARY = re.compile(r"(?P<stem>.+?)(?:-\d[\d.]*|-[0-9a-f]{8}|\.cpython-[^.]*|\.abi3)?\.so(?:\.[\d.]+)?")


class ObjectChange(msgspec.Struct, frozen=True, kw_only=True):
    """An executable or library that differs: its build-ids, None on a side without it; `path` is rather the candidate's.

    `compilers` are those of only one side, of the base and of the candidate, with their options; where both sides know them.
    """

    path: str
    base: str | None
    candidate: str | None
    is_executable: bool
    compilers: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def changed_objects(base: Sequence[ObjectFile], candidate: Sequence[ObjectFile]) -> tuple[ObjectChange, ...]:
    """Match files of two builds across directories and versions; return those that changed, came or went, by path."""
    ours, theirs = (sorted(set(side), key=lambda item: (item.path, item.build_id)) for side in (base, candidate))
    pairs: list[tuple[ObjectFile | None, ObjectFile | None]] = []
    keys: list[Callable[[ObjectFile], object]] = [
        attrgetter("path"),
        attrgetter("build_id"),
        lambda item: stem(item.path),
    ]  # the surest first
    keys.append(lambda item: None if is_library(item.path) else "")
    for key in keys:
        pairs += _take(ours, theirs, key)
    pairs += [(item, None) for item in ours] + [(None, item) for item in theirs]
    changes = (_change(old, new) for old, new in pairs if old is None or new is None or old.build_id != new.build_id)
    return tuple(sorted(changes, key=lambda item: (item.path, item.base or "", item.candidate or "")))


def is_library(path: str) -> bool:
    """Return whether this is the name of a shared library, or of the loader, rather than that of an executable."""
    return _LIBRARY.fullmatch(path.rpartition("/")[2]) is not None


def stem(path: str) -> str:
    """Return the name of an executable, or that of a library without its version."""
    name = path.rpartition("/")[2]
    match = _LIBRARY.fullmatch(name)
    return name if match is None else f"{match['stem']}.so"


def _change(old: ObjectFile | None, new: ObjectFile | None) -> ObjectChange:
    path = new.path if new else old.path if old else ""
    return ObjectChange(
        path=path,
        base=old.build_id if old else None,
        candidate=new.build_id if new else None,
        is_executable=not is_library(path),
        compilers=other_compilers(old.compilers, new.compilers) if old and new else ((), ()),
    )


_OF_A_FOLDER = frozenset({"__init__.py", "__main__.py"})  # names that say nothing without the folder's


def pair_functions(base: Sequence[PythonFunction], candidate: Sequence[PythonFunction]) -> tuple[list[int], list[int]]:
    """Return a number for each function of the base, and of the candidate; those that are one function have the same.

    Functions of equal file and name are paired, then of what is left those of one name whose paths end alike. The longest
    common end goes first, and only where it is one file on each side; last come names that are left in one file on each
    side. Several of one name in one file (a property's getter and setter, lambdas) are paired in the order of their lines.
    """
    before, after = (
        {function: index for index, function in enumerate(dict.fromkeys(side))} for side in (base, candidate)
    )
    ours, theirs = (sorted(side, key=attrgetter("line")) for side in (before, after))
    pairs = [*_take(ours, theirs, lambda item: item), *_take(ours, theirs, attrgetter("file", "name"))]
    longest = max((item.file.count("/") + 1 for item in ours), default=0)
    for parts in range(min(longest, _DEEPEST), 0, -1):
        pairs += _take(ours, theirs, partial(_end, parts=parts), file=attrgetter("file"))
    # Any file has its `<module>`, and many a `<lambda>`.
    pairs += _take(ours, theirs, lambda it: None if it.name.startswith("<") else it.name, file=attrgetter("file"))
    numbers = {new: before[old] for old, new in pairs}
    return (
        [before[function] for function in base],
        [numbers.get(function, len(before) + after[function]) for function in candidate],
    )


def _end(function: PythonFunction, *, parts: int) -> object:
    """Return the name and the last parts of the path; None if it has fewer, or they say too little."""
    path = function.file.rsplit("/", parts)
    if len(path) < parts or (parts == 1 and path[-1] in _OF_A_FOLDER):
        return None
    return tuple(path[-parts:]), function.name


def _take(
    ours: list[T], theirs: list[T], key: Callable[[T], object], *, file: Callable[[T], str] | None = None
) -> list[tuple[T, T]]:
    """Take what has the same key (None for none) off both lists, pair by pair in their order.

    With `file`, only where all that has a key on one side is of one file.
    """
    left, right = _by_key(ours, key), _by_key(theirs, key)
    pairs: list[tuple[T, T]] = []
    for name in left.keys() & right.keys():
        if file is None or all(len(set(map(file, group))) == 1 for group in (left[name], right[name])):
            pairs += zip(left[name], right[name], strict=False)
    for side, taken in ((ours, {old for old, _ in pairs}), (theirs, {new for _, new in pairs})):
        side[:] = [item for item in side if item not in taken]
    return pairs


def _by_key(items: Iterable[T], key: Callable[[T], object]) -> dict[object, list[T]]:
    found = defaultdict[object, list[T]](list)
    for item in items:
        name = key(item)
        if name is not None:
            found[name].append(item)
    return found
