"""The last moments before the program: the launcher's child seals itself and executes.

Runs inside the launcher's child: only the standard library, and little of it.
"""

from __future__ import annotations

import marshal
import os
import resource
import signal
import socket
from typing import TYPE_CHECKING, Any

from cachegrind_bench.hermetic import calls, kernel
from cachegrind_bench.hermetic.mounts import mount_at
from cachegrind_bench.hermetic.scheduling import become_program
from cachegrind_bench.hermetic.syscall_filter import traps

if TYPE_CHECKING:
    from collections.abc import Callable

_STACK_BYTES, _OPEN_FILES = 8 << 20, 1024


def become(orders: dict[str, Any], link: socket.socket, *, pinned: bool) -> None:
    """Seal this process and execute the program; never returns. Failures go back over the link."""
    seal: dict[str, str] = {}
    try:
        signal.set_wakeup_fd(-1)
        # All of them: what nohup or a shell's `&` left ignored would stay so, and Python asks for each at its start.
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        if orders["places"]:
            _take_place(orders, link)
        kernel.die_with_parent(signal.SIGKILL)
        os.setsid()
        stdin = os.open(orders["stdin"] or os.devnull, os.O_RDONLY)
        os.dup2(stdin, 0)
        os.close(stdin)
        if orders["stdout"]:
            os.dup2(os.open(orders["stdout"], os.O_WRONLY | os.O_NOCTTY), 1)
        os.chdir(orders["cwd"])
        _seal("cpu", seal, lambda: os.sched_setaffinity(0, {orders["cpu"]}), wanted=orders["cpu"] is not None)
        _seal("scheduling", seal, lambda: become_program(pinned=pinned and "cpu" not in seal), wanted=True)
        _seal("aslr", seal, kernel.disable_aslr, wanted=orders["aslr"])
        _seal("limits", seal, _set_limits, wanted=True)
        listener = _install(orders, seal)
        socket.send_fds(link, [marshal.dumps(seal)], [] if listener is None else [listener])
        if listener is not None:
            os.close(listener)
        os.execve(orders["argv"][0], orders["argv"], orders["env"])
    except OSError as error:
        try:
            link.sendall(marshal.dumps([error.errno, _reason(error, orders)]))
        finally:
            os._exit(127)
    except BaseException as error:  # noqa: BLE001 - a child must not run on as a second launcher
        try:
            link.sendall(marshal.dumps([0, repr(error)]))
        finally:
            os._exit(127)


def _take_place(orders: dict[str, Any], link: socket.socket) -> None:
    """Have the program see its files at constant paths; or say why not and end, as this process is of no more use."""
    try:
        mount_at(orders["places"])
    except OSError as error:
        link.sendall(marshal.dumps(error.strerror or str(error)))
        os._exit(127)
    orders |= orders["placed"]


def _reason(error: OSError, orders: dict[str, Any]) -> str:
    """Return what went wrong, naming the file unless it is the program itself."""
    text = error.strerror or str(error)
    if error.filename == orders["cwd"]:
        return f"the working directory {error.filename} cannot be entered: {text}"
    return text if error.filename in (None, orders["argv"][0]) else f"{error.filename}: {text}"


def _seal(part: str, seal: dict[str, str], action: Callable[[], object], *, wanted: bool) -> None:
    """Do one part of the sealing; note why it failed."""
    if not wanted:
        return
    try:
        action()
    except OSError as error:
        seal[part] = error.strerror or str(error)
    except ValueError as error:
        seal[part] = str(error)


def _set_limits() -> None:
    """Fix the soft limits that programs look at; hard limits stay."""
    for name, wanted in (
        (resource.RLIMIT_CORE, 0),  # first, as it never fails: a core file would land in the working directory
        (resource.RLIMIT_STACK, _STACK_BYTES),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
    ):
        _soft, hard = resource.getrlimit(name)
        resource.setrlimit(name, (wanted, hard))


def _install(orders: dict[str, Any], seal: dict[str, str]) -> int | None:
    """Install the seccomp filter, or note why randomness cannot be pinned."""
    table = calls.architecture()
    if table is None:
        seal["randomness"] = f"no table of system calls for {os.uname().machine}"
        return None
    try:
        clock = orders["clock"] is not None
        wanted = traps(table, randomness=orders["randomness"], clock=clock, files=orders["record"])
        return kernel.install_filter(table, wanted)
    except OSError as error:
        seal["randomness"] = error.strerror or str(error)
        return None
