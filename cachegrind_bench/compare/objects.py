"""Which executables and libraries changed between two builds, by their build-ids.

Knows how libraries are named and versioned; must not know how they are found.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.model.result import ObjectFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# libssl.so.3, libc-2.31.so, libgomp-a34b3233.so.1 (as in wheels), _json.cpython-311-x86_64-linux-gnu.so
_LIBRARY = re.compile(r"(?P<stem>.+?)(?:-\d[\d.]*|-[0-9a-f]{8}|\.cpython-[^.]*|\.abi3)?\.so(?:\.[\d.]+)?")


class ObjectChange(msgspec.Struct, frozen=True, kw_only=True):
    """An executable or library that differs: its build-ids, None on the side that does not have it.

    `path` is the candidate's where it is there.
    """

    path: str
    base: str | None
    candidate: str | None
    is_executable: bool


def changed_objects(base: Sequence[ObjectFile], candidate: Sequence[ObjectFile]) -> tuple[ObjectChange, ...]:
    """Match files of two builds across directories and versions; return those that changed, came or went, by path."""
    changes = list[ObjectChange]()
    ours, theirs = set(base), set(candidate)
    for key in (_path, _build, _stem, _executable):
        left, right = _grouped(ours, key), _grouped(theirs, key)
        for group in left.keys() & right.keys():
            for old, new in zip(left[group], right[group], strict=False):
                ours.remove(old)
                theirs.remove(new)
                if old.build_id != new.build_id:
                    changes.append(_change(new.path, old.build_id, new.build_id))
    changes += [_change(item.path, item.build_id, None) for item in ours]
    changes += [_change(item.path, None, item.build_id) for item in theirs]
    return tuple(sorted(changes, key=lambda item: (item.path, item.base or "", item.candidate or "")))


def is_library(path: str) -> bool:
    """Tell whether this is the name of a shared library, or of the loader, rather than that of an executable."""
    return _LIBRARY.fullmatch(_name(path)) is not None


def _grouped(files: Iterable[ObjectFile], key: Callable[[ObjectFile], str | None]) -> dict[str, list[ObjectFile]]:
    found = defaultdict[str, list[ObjectFile]](list)
    for item in sorted(files, key=lambda item: (item.path, item.build_id)):
        group = key(item)
        if group is not None:
            found[group].append(item)
    return found


# By what two files may be the same one, the surest first.


def _path(item: ObjectFile) -> str:
    return item.path


def _build(item: ObjectFile) -> str:
    return item.build_id


def _stem(item: ObjectFile) -> str:
    name = _name(item.path)
    match = _LIBRARY.fullmatch(name)
    return name if match is None else f"{match['stem']}.so"


def _executable(item: ObjectFile) -> str | None:
    return None if is_library(item.path) else ""


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _change(path: str, base: str | None, candidate: str | None) -> ObjectChange:
    return ObjectChange(path=path, base=base, candidate=candidate, is_executable=not is_library(path))
