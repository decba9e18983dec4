"""The folders next to the project, and above, where the program sees the project at its constant path.

There `../other` is a link to what is really next to the project. What the program makes there is moved to its real place when the
program has ended; nothing that was there is removed or replaced. Used inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import NamedTuple

from cachegrind_bench.hermetic.place import BASE, BESIDE, NAME, PROJECT, ROOT, RUN, Pair, Translation, is_below

_MOST = 10_000


class Level(NamedTuple):
    """A folder that the program sees in place of the `real` one, with links to what is there; other entries are cg-bench's `own`."""

    seen: str
    real: str
    links: frozenset[str]
    own: frozenset[str]


def levels_of(pairs: tuple[Pair, ...]) -> tuple[Level, ...]:
    """Return the folders above the project, as they are now. OSError if they cannot be listed."""
    own = {seen for _real, seen in pairs} | {BESIDE, ROOT}
    found = [Level(BASE, BASE, frozenset(), frozenset({NAME, *_listed(BASE)}))]
    for real in (real for real, seen in pairs if seen == PROJECT):
        parent = os.path.dirname(real)
        for seen, folder in ((ROOT, os.path.dirname(parent)), (BESIDE, parent)):
            names = frozenset(os.path.basename(path) for path in own if os.path.dirname(path) == seen)
            found.append(Level(seen, folder, frozenset(_listed(folder)) - names, names))
    return tuple(found)


def _listed(folder: str) -> list[str]:
    names = os.listdir(folder)
    if len(names) > _MOST:
        raise OSError(0, f"{folder} has more than {_MOST} entries")
    return names


def link(levels: tuple[Level, ...]) -> None:
    """Make the links, and let the program write only where it may in the real folder."""
    for level in levels:
        for name in sorted(level.links):
            os.symlink(os.path.join(level.real, name), f"{level.seen}/{name}")
        if not os.access(level.real, os.W_OK):
            os.chmod(level.seen, 0o555)  # noqa: S103 - as it is for the program in the real one


def settle(levels: tuple[Level, ...], base: int, places: Translation) -> tuple[bool, str]:
    """Move what the program has made to where it belongs, with `base` open in the program's mount namespace.

    Return whether there was anything, and why that is not enough: what was there was replaced, or cannot be written.
    """
    made: list[tuple[str, str]] = []
    for level in levels:
        folder = f"/proc/self/fd/{base}{level.seen.removeprefix(BASE)}"
        there = frozenset(os.listdir(folder))
        for name in sorted(level.links):
            path, real = f"{folder}/{name}", os.path.join(level.real, name)
            if name not in there or not os.path.islink(path) or os.readlink(path) != real:
                return False, f"the command replaces or removes {real}, outside of the project"
        made += [
            (f"{folder}/{name}", os.path.join(level.real, name)) for name in sorted(there - level.links - level.own)
        ]
    try:
        for path, real in made:
            _move(path, real, places)
    except OSError as error:
        return True, f"the command writes {error.filename2 or error.filename}, outside of the project: {error.strerror}"
    return bool(made), ""


def _move(path: str, real: str, places: Translation) -> None:
    import shutil  # few programs write there

    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        with suppress(FileExistsError):
            os.symlink(places.real(os.readlink(path)), real)
    elif stat.S_ISREG(mode):
        shutil.copy2(path, real)
    elif stat.S_ISDIR(mode):
        with suppress(FileExistsError):
            os.mkdir(real)
        for name in os.listdir(path):
            _move(f"{path}/{name}", f"{real}/{name}", places)
        shutil.copystat(path, real)


def is_crossing(thread: int, source: str, target: str, places: Translation) -> bool:
    """Return whether a process cannot move a file so only because of our mounts. OSError if a folder is not there."""
    root = f"/proc/{thread}/root"
    outside = os.readlink(root).rstrip("/")  # of a chroot, see `path_of`
    zones, devices = set[str](), set[int]()
    for path in (source, target):
        folder = os.open(root + os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
        try:
            seen = os.readlink(f"/proc/self/fd/{folder}").removeprefix(outside) or "/"
        finally:
            os.close(folder)
        zones.add(next((place for place in (PROJECT, RUN, ROOT) if is_below(seen, place)), ""))
        devices.add(os.stat(places.real(seen)).st_dev)
    return len(zones) > 1 and RUN not in zones and len(devices) == 1
