"""The functions of the operating system as they were before any test came to replace them.

As attributes of a class: what replaces the file system for a test also looks for such functions in modules.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from collections.abc import Callable


class Real:
    """What the measured process does its own work with."""

    fork = staticmethod(os.fork)
    waitpid = staticmethod(os.waitpid)
    getpid = staticmethod(os.getpid)
    leave = staticmethod(os._exit)
    open = staticmethod(cast("Callable[[str, str], BinaryIO]", open))  # of bytes only
    rename = staticmethod(os.rename)
    listdir = staticmethod(os.listdir)
    unlink = staticmethod(os.unlink)
    kill = staticmethod(os.kill)
    pipe = staticmethod(os.pipe)
    read = staticmethod(os.read)
    write = staticmethod(os.write)
    dup = staticmethod(os.dup)
    dup2 = staticmethod(os.dup2)
    close = staticmethod(os.close)
    pread = staticmethod(os.pread)
    stat = staticmethod(os.stat)
    memfd_create = staticmethod(os.memfd_create)

    @classmethod
    def own_process(cls) -> bytes:
        """Return the number of this process, to be kept: as a number, it takes memory or, in a new container, does not."""
        return cls.getpid().to_bytes(4, "little")
