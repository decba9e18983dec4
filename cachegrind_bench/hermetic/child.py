"""Fork the launcher's child, which seals itself and becomes the program, and read what it says before that.

Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import marshal
import os
import socket
from typing import TYPE_CHECKING, NamedTuple

from cachegrind_bench.hermetic.neighbours import Level, levels_of
from cachegrind_bench.hermetic.program import FAILED, READY, become

if TYPE_CHECKING:
    from collections.abc import Callable

    from cachegrind_bench.hermetic.execution import Execution

_ENDED = "the launcher's child ended before it could start the program"


class Child(NamedTuple):
    """The child just before its exec, and the link to it, which closes at the exec.

    `execution` has no `places` where it could not have them. `unsealed` has the reasons of the parts of the seal that could not be
    pinned. `base` covers /mnt, while files are at their constant paths. `failure` says why there will be no exec.
    """

    pid: int
    link: socket.socket
    execution: Execution
    unsealed: dict[str, str]
    levels: tuple[Level, ...] = ()
    base: int | None = None
    listener: int | None = None
    failure: str | None = None

    def exec_failure(self) -> str | None:
        """Return why the exec failed, None if it succeeded; to be called when the link can be read."""
        data = self.link.recv(1 << 12)
        self.link.close()
        return marshal.loads(data)[1] if data else None


def start_child(execution: Execution, *, pinned: bool, reap: Callable[[], object]) -> Child:
    """Fork the child. If it cannot have a mount namespace of its own, `reap` it and fork one that does without."""
    why = execution.keep_place
    while True:
        levels: tuple[Level, ...] = ()
        try:
            levels = levels_of(execution.places) if execution.places else ()
        except OSError as error:
            why = f"{error.filename or ''}: {error.strerror}".removeprefix(": ")
            execution = execution._replace(placed=None, places=())
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            become(execution, theirs, levels, pinned=pinned)
        theirs.close()
        data, descriptors, _, _ = socket.recv_fds(ours, 1 << 16, 2)
        kind, said = marshal.loads(data or marshal.dumps((FAILED, _ENDED)))
        if kind == FAILED:  # no such input file or working directory
            return Child(pid, ours, execution, {}, failure=said)
        if kind == READY:
            base = descriptors.pop(0) if execution.places else None
            unsealed = said if execution.places else {**said, "place": why}
            listener = descriptors[0] if descriptors else None
            return Child(pid, ours, execution, unsealed, levels, base, listener)
        reap()
        ours.close()
        why, execution = said, execution._replace(placed=None, places=())
