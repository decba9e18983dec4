"""A mount namespace of the program's own, in which its files are at paths of constant text.

Ends with its processes, so nothing is left over. Runs inside the launcher's child: only the standard library, and
little of it.
"""

from __future__ import annotations

import os
import stat

from cachegrind_bench.hermetic import kernel
from cachegrind_bench.hermetic.place import BASE, BESIDE, PROJECT, ROOT, Pair

_MOST_ENTRIES, _MOST_BESIDE = 64, 1000


def mount_at(pairs: list[Pair]) -> None:
    """Have each folder seen at its constant path, too, by this process and its descendants. OSError where refused.

    After a failure the process may be in a namespace that is half made, and is good for nothing more.
    """
    uid, gid = os.geteuid(), os.getegid()
    if os.path.lexists(ROOT):
        raise OSError(0, f"{ROOT} exists")
    if uid == 0:
        kernel.unshare(kernel.NEW_MOUNTS)
    else:
        kernel.unshare(kernel.NEW_MOUNTS | kernel.NEW_USERS)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            _write(f"/proc/self/{name}", text)
    kernel.mount("none", "/", kernel.MS_PRIVATE | kernel.MS_REC)
    # What is in the way is covered, and put into the cover again.
    kept = [(name, os.lstat(f"{BASE}/{name}").st_mode, _hold(f"{BASE}/{name}")) for name in sorted(os.listdir(BASE))]
    if len(kept) > _MOST_ENTRIES:
        raise OSError(0, f"{BASE} has more than {_MOST_ENTRIES} entries")
    folders = [(seen, _hold(real, 0)) for real, seen in pairs]
    kernel.mount("tmpfs", BASE, kernel.MS_NOSUID | kernel.MS_NODEV, kind="tmpfs", data="mode=755,size=1m")
    for name, mode, held in kept:
        path = f"{BASE}/{name}"
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink("", dir_fd=held), path)
        else:
            _bind(held, path, folder=stat.S_ISDIR(mode))
    os.mkdir(ROOT)
    os.mkdir(BESIDE)
    for seen, held in folders:
        _bind(held, seen, folder=True)
    for real, seen in pairs:
        if seen == PROJECT:
            _link_beside(real)
    kernel.mount(
        "none",
        BASE,
        kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV,
    )


def _link_beside(project: str) -> None:
    """Let `../other` lead to what lies beside the project."""
    folder = os.path.dirname(project)
    try:
        names = os.listdir(folder)
    except PermissionError:
        return
    for name in names[:_MOST_BESIDE]:
        if not os.path.lexists(f"{BESIDE}/{name}"):
            os.symlink(f"{folder}/{name}", f"{BESIDE}/{name}")


def _hold(path: str, flags: int = os.O_NOFOLLOW) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC | flags)


def _bind(held: int, path: str, *, folder: bool) -> None:
    if folder:
        os.mkdir(path)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    kernel.mount(f"/proc/self/fd/{held}", path, kernel.MS_BIND | kernel.MS_REC)
    os.close(held)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
