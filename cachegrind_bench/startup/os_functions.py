"""The functions of the operating system as they were before any test came to replace them.

As attributes of a class: what replaces the file system for a test also looks for such functions in modules.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

# How a process ends that returns nothing, and one that returns 0: Valgrind itself may end in 1.
_FAILED, _FIRST = 255, 2


class Real:
    """What the measured process does its own work with."""

    fork = staticmethod(os.fork)
    waitpid = staticmethod(os.waitpid)
    getpid = staticmethod(os.getpid)
    leave = staticmethod(os._exit)
    setpgid = staticmethod(os.setpgid)
    open = staticmethod(cast("Callable[[str | int, str], BinaryIO]", open))  # of bytes only
    mkdir = staticmethod(os.mkdir)
    rename = staticmethod(os.rename)
    listdir = staticmethod(os.listdir)
    unlink = staticmethod(os.unlink)
    scandir = staticmethod(cast("Callable[[str], Iterator[os.DirEntry[str]]]", os.scandir))
    rmdir = staticmethod(os.rmdir)
    chmod = staticmethod(os.chmod)
    lstat = staticmethod(os.lstat)
    kill = staticmethod(os.kill)
    pipe = staticmethod(os.pipe)
    open_number = staticmethod(os.open)
    read = staticmethod(os.read)
    write = staticmethod(os.write)
    close = staticmethod(os.close)
    stat = staticmethod(os.stat)

    @classmethod
    def own_process(cls) -> bytes:
        """Return the number of this process, to be kept: as a number, it takes memory or, in a new container, does not."""
        return cls.getpid().to_bytes(4, "little")

    @classmethod
    def elsewhere(cls, tell: Callable[[], int]) -> int | None:
        """Call this in another process, and return the small number that it returned; None if it could not return one.

        Or if that was not seen: a test may have SIGCHLD ignored, or a handler of its own bury whatever ends.
        """
        pid = cls.fork()
        if not pid:
            code = _FAILED
            try:
                code = tell() + _FIRST
            finally:
                cls.leave(code)
        try:
            code = os.waitstatus_to_exitcode(cls.waitpid(pid, 0)[1])
        except ChildProcessError:
            return None
        return code - _FIRST if _FIRST <= code < _FAILED else None
