"""Reads and writes the supervised program's memory, and what /proc tells of its processes.

Knows Linux; must not know why. Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import errno
import os
import struct

_MOST_ARGUMENTS = 10_000
_THREADS, _STARTED = 17, 19  # places of num_threads and starttime (fields 20 and 22) behind the name in /proc/PID/stat


def executing(thread: int) -> str:
    """Return the base name of the file that a process executes."""
    return os.path.basename(os.readlink(f"/proc/{thread}/exe"))


def peek(thread: int, address: int, length: int) -> bytes:
    """Read up to `length` bytes of a process' memory; fewer where its mapping ends. OSError where nothing is."""
    if address >= 1 << 63:  # not the program's half, and more than an offset holds
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
    memory = os.open(f"/proc/{thread}/mem", os.O_RDONLY)
    try:
        return os.pread(memory, length, address)
    finally:
        os.close(memory)


def peek_string(thread: int, address: int) -> bytes:
    """Read a string, page by page as its end may be that of the mapping."""
    text = b""
    while len(text) < 1 << 16:
        length = 4096 - (address + len(text)) % 4096
        part, nul, _ = peek(thread, address + len(text), length).partition(b"\0")
        text += part
        if nul or not part:
            break
    return text


def strings(thread: int, address: int) -> list[str]:
    """Read a list of strings, such as the arguments of an exec."""
    found: list[str] = []
    while len(found) < _MOST_ARGUMENTS:
        (pointer,) = struct.unpack("=Q", peek(thread, address, 8))
        if not pointer:
            break
        found.append(os.fsdecode(peek_string(thread, pointer)))
        address += 8
    return found


def program_of(arguments: list[str]) -> list[str]:
    """Return the program and its arguments in the argument list of Valgrind: from the first that is no option."""
    for index, argument in enumerate(arguments):
        if index and not argument.startswith("-"):
            return arguments[index:]
    return []


def text_of(command: list[str]) -> str:
    """Return the program of a command as text."""
    return os.fsencode(command[0]).decode("utf-8", "backslashreplace") if command else ""


def _status_field(pid: int, name: bytes) -> int:
    with open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1])
    return 0


def group_of(thread: int) -> int:
    """Return the process that a thread belongs to."""
    return _status_field(thread, b"Tgid:")


def parent_of(pid: int) -> int:
    """Return the parent's id, 0 if the process has gone."""
    try:
        return _status_field(pid, b"PPid:")
    except OSError:
        return 0


def peak_memory_kb(pid: int) -> int:
    """Return the most memory that a process has had in use."""
    return _status_field(pid, b"VmHWM:")


def started(pid: int) -> str:
    """Return when a process started, in the kernel's words; empty if it has gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[_STARTED].decode()
    except (OSError, IndexError):
        return ""


def children_of(pid: int) -> list[int]:
    """Return the living children in the order of their birth (empty on kernels that do not tell)."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += [int(child) for child in file.read().split()]
    except OSError:
        pass
    return found


def descendants_of(pid: int) -> list[int]:
    """Return all living descendants, by one walk over /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                state, parent, threads = fields[0], fields[1], int(fields[_THREADS])
            except (OSError, ValueError, IndexError):
                continue
            # A process is a zombie, too, while threads outlive its first one (`pthread_exit` in `main`).
            if state != b"Z" or threads > 1:
                children.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    level = children.get(pid, [])
    while level:
        found += level
        level = [grandchild for child in level for grandchild in children.get(child, [])]
    return found
