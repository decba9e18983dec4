"""The last moments before the program: the launcher's child seals itself and executes.

A mount namespace of its own, in which its files are at paths of constant text, ends with its processes: nothing is left. Runs inside the launcher's child: only the standard library, and little of it.
"""

from __future__ import annotations

import marshal
import os
import resource
import signal
import socket
import stat
from collections.abc import Callable

from cachegrind_bench.hermetic import kernel
from cachegrind_bench.hermetic.execution import Execution, Placed
from cachegrind_bench.hermetic.neighbours import Level, link
from cachegrind_bench.hermetic.place import BASE, BESIDE, ROOT, Pair
from cachegrind_bench.hermetic.scheduling import become_program
from cachegrind_bench.hermetic.syscall_filter import install_filter, traps

_STACK_BYTES, _OPEN_FILES = 8 << 20, 1024
_MOST_ENTRIES = 64
# What the child says first of each message: constant paths are refused, it is ready for the exec, or that has failed.
REFUSED, READY, FAILED = "refused", "ready", "failed"


def become(execution: Execution, ours: socket.socket, levels: tuple[Level, ...], *, pinned: bool) -> None:
    """Seal this process and execute the program; never returns. Failures go back over the socket.

    With its first message go the folder that covers /mnt, if the execution has `places`, and the listener, if there is one.
    """
    unsealed: dict[str, str] = {}
    sent: list[int] = []
    command = execution.placed or Placed(execution.argv, execution.variables, execution.cwd)
    try:
        signal.set_wakeup_fd(-1)
        # All of them: what nohup or a shell's `&` left ignored would stay so, and Python asks for each at its start.
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        if execution.places:
            try:
                sent.append(_mount_at(execution.places, levels))
            except OSError as error:  # say why and end, as this process is of no more use
                ours.sendall(marshal.dumps((REFUSED, error.strerror or str(error))))
                os._exit(127)
        kernel.end_with_parent()
        os.setsid()
        stdin = os.open(execution.stdin or os.devnull, os.O_RDONLY)
        os.dup2(stdin, 0)
        os.close(stdin)
        if execution.stdout:
            os.dup2(os.open(execution.stdout, os.O_WRONLY | os.O_NOCTTY), 1)
        os.chdir(command.cwd)
        if execution.sealed:
            _pin(execution, unsealed, pinned=pinned)
            listener = _install(execution, unsealed)
            sent += [] if listener is None else [listener]
        socket.send_fds(ours, [marshal.dumps((READY, unsealed))], sent)
        for descriptor in sent:
            os.close(descriptor)
        os.execve(command.argv[0], command.argv, command.variables)
    except BaseException as error:  # noqa: BLE001 - a child must not run on as a second launcher
        try:
            why = _reason(error, command) if isinstance(error, OSError) else repr(error)
            ours.sendall(marshal.dumps((FAILED, why)))
        finally:
            os._exit(127)


def _reason(error: OSError, command: Placed) -> str:
    """Return what went wrong, naming the file unless it is the program itself."""
    text = error.strerror or str(error)
    if error.filename == command.cwd:
        return f"the working directory {error.filename} cannot be entered: {text}"
    return text if error.filename in (None, command.argv[0]) else f"{error.filename}: {text}"


def _pin(execution: Execution, unsealed: dict[str, str], *, pinned: bool) -> None:
    """Fix what differs from run to run: the CPU, who runs next on it, addresses, limits."""
    if (cpu := execution.cpu) is not None:
        _seal("cpu", unsealed, lambda: os.sched_setaffinity(0, {cpu}))
    _seal("scheduling", unsealed, lambda: become_program(pinned=pinned and "cpu" not in unsealed))
    if execution.aslr_off:
        _seal("aslr", unsealed, kernel.disable_aslr)
    _seal("limits", unsealed, _set_limits)


def _seal(part: str, unsealed: dict[str, str], action: Callable[[], object]) -> None:
    try:
        action()
    except (OSError, ValueError) as error:
        unsealed[part] = getattr(error, "strerror", None) or str(error)


def _set_limits() -> None:
    """Fix the soft limits that programs look at; hard limits stay."""
    for name, wanted in (
        (resource.RLIMIT_CORE, 0),  # first, as it never fails: a core file would land in the working directory
        (resource.RLIMIT_STACK, _STACK_BYTES),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
    ):
        _soft, hard = resource.getrlimit(name)
        resource.setrlimit(name, (wanted, hard))


def _install(execution: Execution, unsealed: dict[str, str]) -> int | None:
    table = kernel.architecture()
    if table is None:
        unsealed["randomness"] = f"no table of system calls for {os.uname().machine}"
        return None
    followed = traps(
        table, clock=execution.clock is not None, files=execution.record_files, moves=bool(execution.places)
    )
    try:
        return install_filter(table, followed)
    except OSError as error:
        unsealed["randomness"] = error.strerror or str(error)
        return None


def _mount_at(pairs: tuple[Pair, ...], levels: tuple[Level, ...]) -> int:
    """Have each folder seen at its constant path, too, by this process and its descendants; return what covers /mnt. OSError where refused.

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
            with open(f"/proc/self/{name}", "wb", buffering=0) as file:
                file.write(text.encode())
    kernel.mount("none", "/", kernel.MS_PRIVATE | kernel.MS_REC)
    # What is in the way is covered, and put into the cover again.
    kept = [(name, os.lstat(f"{BASE}/{name}").st_mode, _hold(f"{BASE}/{name}")) for name in sorted(os.listdir(BASE))]
    if len(kept) > _MOST_ENTRIES:
        raise OSError(0, f"{BASE} has more than {_MOST_ENTRIES} entries")
    folders = [(seen, _hold(real, 0)) for real, seen in pairs]
    kernel.mount("tmpfs", BASE, kernel.MS_NOSUID | kernel.MS_NODEV, kind="tmpfs", data="mode=755")
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
    link(levels)
    return _hold(BASE)


def _hold(path: str, flags: int = os.O_NOFOLLOW) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC | flags)


def _bind(held: int, path: str, *, folder: bool) -> None:
    if folder:
        os.mkdir(path)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    kernel.mount(f"/proc/self/fd/{held}", path, kernel.MS_BIND | kernel.MS_REC)
    os.close(held)
