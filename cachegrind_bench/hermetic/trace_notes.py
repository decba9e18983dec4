"""What a supervised run depends on in the file system: each path as it was before the run first read it, to be checked later.

Knows paths and how to tell whether one is as it was; must not know system calls, nor what depends on a path. Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from cachegrind_bench.hermetic import files
from cachegrind_bench.hermetic.place import NOWHERE, Translation

# What was asked of a path. FILE: its bytes. LOOK: what stat says. LINK: the same of a link itself. A folder that was
# opened is noted as LIST: the names in it.
FILE, LOOK, LINK, LIST = "file", "look", "link", "list"

_MOST = 50_000
_IDENTITY = 3  # numbers that identify a file: device, inode, type
# A young file may be replaced while the run lasts (by another one compiling the same module), and one that the run
# replaces itself is mostly young (its preparation made it): both are read at once, while they are what the run saw.
_YOUNG_NS, _LONGEST_READ = 600_000_000_000, 64 << 20
_HARMLESS = frozenset((b"null", b"zero", b"full", b"random", b"urandom", b"tty", b"ptmx", b"console"))
_STANDARD = {b"/dev/stdin": b"/dev/fd/0", b"/dev/stdout": b"/dev/fd/1", b"/dev/stderr": b"/dev/fd/2"}
_OWN_PROC = (b"/proc/self/", b"/proc/thread-self/")
_FILES_IN_DEV = (b"/dev/shm/", b"/dev/mqueue/")  # programs share these, so what they read there counts

Note = tuple[str, str, files.Stamp]  # kind, value (of a file only if it was read at once), stamp


class Notes:
    """Collects notes until it has to give up: `incomplete` then says why."""

    def __init__(self, scratch: str, places: Translation = NOWHERE) -> None:
        self.incomplete: str | None = None
        self._places = places
        self._found: dict[tuple[str, bytes], Note] = {}
        raw = os.fsencode(scratch)
        self._scratch = tuple({raw + b"/", os.path.realpath(raw) + b"/"})
        # What was at a path before the run may have made it; None once it is known to have.
        self._made: dict[bytes, files.Stamp | None] = {}
        self._altered: set[bytes] = set()
        root = os.stat("/").st_dev
        self._unreal = {os.stat(place).st_dev for place in ("/proc", "/sys") if os.path.isdir(place)} - {root}

    def give_up(self, why: str) -> None:
        """Note that not everything the run depends on can be known; the first reason counts."""
        self.incomplete = self.incomplete or why

    def as_list(self) -> list[list[object]]:
        """Return kind, path, value and stamp of every input."""
        return [[note[0], path, *note[1:]] for (_kind, path), note in self._found.items()]

    def read(self, kind: str, path: bytes, thread: int) -> None:
        """Note that a path is about to be read in this way."""
        actual = self._actual(kind, path, thread)
        if actual is None:
            return
        if self.is_ours(actual):
            real = os.path.realpath(actual)
            if real == actual or self.is_ours(real):
                return
            actual = real
        known = (FILE, actual) in self._found
        if (kind, actual) in self._found or (known and (kind == LOOK or actual in self._altered)):
            return
        if actual in self._altered:
            real = os.path.realpath(actual)
            if real == actual:
                self.give_up(f"it reads {os.fsdecode(actual)}, which it has changed itself")
            else:  # a link that it made
                self.read(kind, real, thread)
        elif len(self._found) >= _MOST:
            self.give_up(f"it reads more than {_MOST:,} files")
        else:
            note = self._note(kind, actual)
            if note is not None:
                self._found[kind, actual] = note

    def make(self, path: bytes, *, anew: bool = False) -> None:
        """Note that what is at this path from now on, were it nothing, is the run's own work, if the call succeeds.

        Nothing says whether it does. It has where something else is there afterwards: another file, or with `anew`,
        for a file that is emptied, the same one with another stamp.
        """
        for name in self._names(path):
            if not self._is_made(name):
                self._made[name] = _identity(name, anew=anew)

    def alter(self, path: bytes) -> None:
        """Note that the run may change what is at this path."""
        self._altered.update(self._names(path))

    def is_ours(self, path: bytes) -> bool:
        """Return whether the run has made this path, or a folder that it is in."""
        if path.startswith(self._scratch):
            return True
        while self._made and len(path) > 1:
            if self._is_made(path):
                return True
            path = os.path.dirname(path)
        return False

    def _is_made(self, path: bytes) -> bool:
        before = self._made.get(path, ())
        if path not in self._made or before is None:
            return path in self._made
        if _identity(path, anew=len(before) > _IDENTITY) == before:
            return False  # the call has failed, or has yet to be executed
        self._made[path] = None
        return True

    def _names(self, path: bytes) -> tuple[bytes, ...]:
        """Return the names to remember a path by that is written to: as given, and without links in its folders."""
        path = path.removesuffix(b"/.")
        if path.startswith(self._scratch):
            return ()
        if len(self._made) + len(self._altered) >= 2 * _MOST:
            self.give_up(f"it writes more than {_MOST:,} files")
            return ()
        return path, os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))

    def _actual(self, kind: str, path: bytes, thread: int) -> bytes | None:
        """Return the path that this one means, None where it is part of the machine."""
        path = _STANDARD.get(path, path)
        if path.startswith(b"/dev/fd/"):
            path = b"/proc/self" + path[4:]
        for own in _OWN_PROC:
            if path.startswith(own):
                path = b"/proc/%d/" % thread + path[len(own) :]
        if path.startswith(b"/proc/"):
            real = self._places.real_bytes(os.path.realpath(path))
            return None if real.startswith(b"/proc/") else real
        if path.split(b"/")[1] in (b"proc", b"sys"):
            return None
        if path.startswith(b"/dev/") and not path.startswith(_FILES_IN_DEV):
            name = path[5:]
            if kind == FILE and name not in _HARMLESS and not name.startswith(b"pts/") and _is_device(path):
                self.give_up(f"it reads the device {os.fsdecode(path)}")
            return None
        return path

    def _note(self, kind: str, path: bytes) -> Note | None:
        try:
            status = os.stat(path, follow_symlinks=kind != LINK)
        except OSError as error:
            return (kind, files.reason(error), ())
        if status.st_dev in self._unreal:  # by a link, as /etc/mtab is one
            return None
        if kind != FILE:
            return (kind, files.look(path, follow=kind == LOOK), ())
        mark = files.stamp(status)
        if stat.S_ISDIR(status.st_mode):
            return (LIST, files.names(path), mark)
        if not stat.S_ISREG(status.st_mode):
            self.give_up(f"it reads {os.fsdecode(path)}, which is not a regular file")
            return None
        young = time.time_ns() - max(mark[3:]) < _YOUNG_NS and status.st_size <= _LONGEST_READ
        return (FILE, files.content(path) if young else "", mark)


def _identity(path: bytes, *, anew: bool) -> files.Stamp:
    """Return what distinguishes the file at this path from any other, empty if it does not exist; with `anew` its state as well."""
    try:
        status = os.stat(path, follow_symlinks=anew)
    except OSError:
        return ()
    found = (status.st_dev, status.st_ino, stat.S_IFMT(status.st_mode))
    # A folder's dates move with what comes and goes in it, whether or not it is the one that was there before.
    return found + files.stamp(status) if anew and stat.S_ISREG(status.st_mode) else found


def _is_device(path: bytes) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


class Input(NamedTuple):
    """One path that was read, and what it was.

    `stamp` is that of a file or folder with this value, empty if a stamp would not show every change.
    """

    kind: str
    path: str
    value: str
    stamp: tuple[int, ...] = ()


class Recording(NamedTuple):
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
    """Return whether a path is what it was. Files and folders are read only where their stamp differs."""
    if not item.stamp:
        return _value(item) == item.value
    stamp = files.stamp_of(item.path)
    if stamp == item.stamp:
        return True
    # Several results may depend on this file: it is read once for all, unless it has just been changed.
    settled = files.settled(stamp, time.time_ns())
    return (_value_by_stamp(item.kind, item.path, stamp) if settled else _value(item)) == item.value


def _settled(item: Input) -> Input | None:
    """Complete what was noted; None if the file is no longer what it was, and it was not read in time."""
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
