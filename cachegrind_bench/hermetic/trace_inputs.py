"""What an execution has read, as values: the inputs of its result, each with what it was, to be checked later.

Knows how to tell whether a path is as it was; must not know what depends on it, nor where inputs are stored.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.hermetic import files
from cachegrind_bench.hermetic.trace_notes import FILE, LINK, LIST, LOOK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

KINDS = (FILE, LOOK, LINK, LIST)


class Input(msgspec.Struct, frozen=True, order=True):
    """One path that was read, and what it was.

    `stamp` is that of a file or folder with this value, empty if a stamp would not tell of every change.
    """

    kind: str
    path: str
    value: str
    stamp: tuple[int, ...] = ()


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of an execution; `incomplete` says why it may depend on more than these."""

    inputs: tuple[Input, ...]
    incomplete: str | None = None


def recording(incomplete: str | None, notes: Sequence[tuple[str, bytes, str, tuple[int, ...]]]) -> Recording:
    """Return what the launcher has noted, with the hashes of files that it left to be read.

    To be called right after the execution, before anybody cleans up.
    """
    if incomplete is not None:
        return Recording(inputs=(), incomplete=incomplete)
    inputs: dict[tuple[str, str], Input] = {}
    opened = {os.fsdecode(path) for kind, path, *_rest in notes if kind == FILE}
    for kind, raw, value, stamp in notes:
        path = os.fsdecode(raw)
        # The date of a file that is read as well does not matter; where a link leads does.
        if path in opened and (kind == LOOK or (kind == LINK and not value.startswith("-> "))):
            continue
        found = _settled(Input(kind, path, value, tuple(stamp)))
        if found is None:
            return Recording(inputs=(), incomplete=f"it reads {path}, which changed meanwhile")
        inputs[kind, path] = found
    return Recording(inputs=tuple(sorted(inputs.values())))


def merged(recordings: Iterable[Recording]) -> Recording:
    """Return what several executions of one program have read between them."""
    inputs: dict[tuple[str, str], Input] = {}
    for one in recordings:
        if one.incomplete is not None:
            return one
        for item in one.inputs:
            before = inputs.setdefault((item.kind, item.path), item)
            if before.value != item.value:
                why = f"it reads {item.path}, which changed between its executions"
                return Recording(inputs=(), incomplete=why)
    return Recording(inputs=tuple(sorted(inputs.values())))


def is_unchanged(item: Input) -> bool:
    """Tell whether a path is what it was. Files and folders are read only where their stamp differs."""
    if not item.stamp:
        return _value(item) == item.value
    stamp = files.stamp_of(item.path)
    if stamp == item.stamp:
        return True
    # Several results may depend on this file: it is read once for all, unless it has just been changed.
    settled = files.settled(stamp, time.time_ns())
    return (_value_by_stamp(item.kind, item.path, stamp) if settled else _value(item)) == item.value


def _settled(item: Input) -> Input | None:
    """Complete what was noted; None if the file is no longer what it was, and nobody has read it in time."""
    if not item.stamp:  # it is not there, or was only looked at
        return item
    now_ns = time.time_ns()
    stamp = files.stamp_of(item.path)
    settled = files.settled(stamp, now_ns)
    if item.value:
        # Changed or not since, this is what the execution has seen.
        still = settled and stamp == item.stamp and _value(item) == item.value
        return Input(item.kind, item.path, item.value, stamp if still else ())
    if stamp != item.stamp:
        return None
    value = _value_by_stamp(item.kind, item.path, stamp) if settled else _value(item)
    if files.stamp_of(item.path) != stamp:
        return None
    return Input(item.kind, item.path, value, stamp if settled else ())


@lru_cache(maxsize=1 << 16)
def _value_by_stamp(kind: str, path: str, stamp: tuple[int, ...]) -> str:  # noqa: ARG001 - the stamp is part of the key
    return _value(Input(kind, path, ""))


def _value(item: Input) -> str:
    if item.kind == FILE:
        return files.content(item.path)
    if item.kind == LIST:
        return files.names(item.path)
    return files.look(item.path, follow=item.kind == LOOK)
