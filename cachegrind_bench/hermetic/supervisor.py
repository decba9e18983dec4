"""Answers system calls of the sealed program: random bytes, random devices, the clock; and notes forks and execs.

One supervisor serves one run, inside the launcher. It is no sandbox: a call it cannot answer goes on to the kernel.
Only the standard library, and little of it: its start-up is paid on every run.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import struct
from typing import NamedTuple

from cachegrind_bench.hermetic.kernel import CLONE_THREAD, Architecture, Trap

# linux/include/uapi/linux/seccomp.h: struct seccomp_notif, seccomp_notif_resp, seccomp_notif_addfd
_NOTIFICATION, _RESPONSE, _ADD_FD = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI"), struct.Struct("=QIIII")
_RECV, _SEND, _ID_VALID, _ADDFD = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_CONTINUE = 1
_AT_RANDOM = 25
_O_CLOEXEC = 0o2000000
# Only plain reading opens can be of a random device; the mask spares the supervisor all others.
_OPEN_MASK = 0o3 | 0o100 | 0o1000 | 0o200000  # access mode, O_CREAT, O_TRUNC, O_DIRECTORY
_DEVICES = (b"/dev/urandom\0", b"/dev/random\0")
# Large enough for any seeding; beyond it the file reads as zeros (a hole), so it never ends and never blocks.
_DEVICE_BYTES, _DEVICE_SIZE = 4 << 20, 1 << 44
_LONGEST_ANSWER = 1 << 20
_MOST_ARGUMENTS = 10_000


class Clock(NamedTuple):
    """A clock that starts at `epoch_ns` and moves by `step_ns` with every reading."""

    epoch_ns: int
    step_ns: int


class Image:
    """One program run by one process, from its start or exec on; `argv` as text with surrogate escapes."""

    __slots__ = ("argv", "forked", "forks", "parent", "path", "pid", "replaced")

    def __init__(  # noqa: PLR0913 - a record; dataclasses would triple the launcher's start-up
        self,
        pid: int,
        path: str,
        argv: list[str],
        parent: int,
        *,
        forked: bool,
        forks: int = 0,
        replaced: bool = False,
    ) -> None:
        self.pid = pid
        self.path = path
        self.argv = argv
        self.parent = parent
        self.forked = forked
        self.forks = forks
        self.replaced = replaced

    def __repr__(self) -> str:
        return f"Image({', '.join(f'{name}={value!r}' for name, value in self.as_dict().items())})"

    def as_dict(self) -> dict[str, object]:
        """Return the attributes by name."""
        return {name: getattr(self, name) for name in self.__slots__}


class _Process:
    """What the supervisor knows of one process id."""

    __slots__ = ("drawn", "forks", "image", "pending", "stream")

    def __init__(self, stream: bytes, image: Image) -> None:
        self.stream = stream
        self.image = image
        self.drawn = 0
        self.forks = 0
        self.pending: list[str] | None = None


def traps(table: Architecture, *, randomness: bool, clock: bool) -> list[Trap]:
    """Return the system calls to be notified of."""
    wanted = [
        Trap(table.calls[name]) for name in ("execve", "execveat", "clone3", "fork", "vfork") if name in table.calls
    ]
    wanted.append(Trap(table.calls["clone"], 0, CLONE_THREAD, 0))
    if randomness:
        wanted += [Trap(table.calls[name]) for name in ("getrandom", "getrlimit", "prlimit64")]
        if "open" in table.calls:
            wanted.append(Trap(table.calls["open"], 1, _OPEN_MASK, os.O_RDONLY))
        wanted.append(Trap(table.calls["openat"], 2, _OPEN_MASK, os.O_RDONLY))
    if clock:
        wanted += [Trap(table.calls[name]) for name in ("clock_gettime", "gettimeofday", "time") if name in table.calls]
    return wanted


class Supervisor:
    """Serves one listener until it is closed. `images` tells afterwards which programs ran."""

    def __init__(
        self,
        listener: int,
        table: Architecture,
        *,
        root: int,
        seed: bytes,
        tool: str | None,
        out: str,
        randomness: bool,
        clock: Clock | None,
    ) -> None:
        self.listener = listener
        self.images: list[Image] = []
        # Reasons, by part of the seal that turned out not to hold.
        self.failures: dict[str, str] = {}
        self._root = root
        self._seed = seed
        self._tool = tool
        self._out = out
        self._randomness = randomness
        self._aside = 0
        self._at_random_pinned = False
        self._clock = clock
        self._ticks = 0
        self._device: int | None = None
        self._device_failed = False
        self._processes: dict[int, _Process] = {}
        self._names = {number: name for name, number in table.calls.items()}
        self._buffer = bytearray(_NOTIFICATION.size)
        self._process(root)

    def serve_one(self) -> None:
        """Receive one notification and answer it. OSError(EBADF) and the like end the service."""
        self._buffer[:] = bytes(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self.listener, _RECV, self._buffer)
        except OSError as error:
            if error.errno in (errno.EINTR, errno.ENOENT):
                return
            raise
        ident, pid, _flags, number, _arch, _ip, *args = _NOTIFICATION.unpack(self._buffer)
        value, error_number, answered = 0, 0, False
        try:
            answered, value = self._answer(ident, self._names.get(number, ""), pid, args)
        except _AlreadySentError:
            return
        except _RefuseError as refusal:
            answered, error_number = True, refusal.number
        except OSError:
            answered = False
        flags = 0 if answered else _CONTINUE
        try:
            fcntl.ioctl(self.listener, _SEND, _RESPONSE.pack(ident, value, -error_number, flags))
        except OSError:
            pass  # the caller was killed, or interrupted and will ask again

    def _answer(self, ident: int, name: str, thread: int, args: list[int]) -> tuple[bool, int]:
        """Return (whether we answer instead of the kernel, the value)."""
        if name == "getrandom":
            return True, self._getrandom(ident, thread, args[0], args[1])
        if name in ("openat", "open"):
            self._open(
                ident, thread, args[1] if name == "openat" else args[0], args[2] if name == "openat" else args[1]
            )
        elif name in ("getrlimit", "prlimit64"):
            self._pin_at_random(ident, thread)
        elif name in ("execve", "execveat"):
            self._exec(thread, args[0] if name == "execve" else args[1], args[1] if name == "execve" else args[2])
        elif name in ("fork", "vfork", "clone"):
            self._fork(thread)
        elif name == "clone3":
            (flags,) = struct.unpack("=Q", _peek(thread, args[0], 8))
            if not flags & CLONE_THREAD:
                self._fork(thread)
        elif self._clock is not None:
            return True, self._tell_time(ident, thread, name, args, self._clock)
        return False, 0

    # Randomness

    def _getrandom(self, ident: int, thread: int, address: int, length: int) -> int:
        process = self._process(_group(thread))
        length = min(length, _LONGEST_ANSWER)
        data = hashlib.shake_128(process.stream + b"%d" % process.drawn).digest(length)
        process.drawn += 1
        self._poke(ident, thread, address, data)
        return length

    def _pin_at_random(self, ident: int, thread: int) -> None:
        """Overwrite the 16 AT_RANDOM bytes before Valgrind's tool image hands them to the program.

        The tool asks for resource limits before it builds the program's stack. The bytes are the same for every image,
        so doing it again at the program's own calls changes nothing.
        """
        if self._tool is None or os.path.basename(os.readlink(f"/proc/{thread}/exe")) != self._tool:
            return
        with open(f"/proc/{thread}/auxv", "rb") as file:
            auxv = file.read()
        for kind, address in struct.iter_unpack("=QQ", auxv[: len(auxv) // 16 * 16]):
            if kind == _AT_RANDOM:
                self._poke(ident, thread, address, hashlib.shake_128(self._seed + b"AT_RANDOM").digest(16))
                self._at_random_pinned = True

    def _open(self, ident: int, thread: int, address: int, flags: int) -> None:
        """Hand out a file of fixed bytes when a random device is opened."""
        start = _peek(thread, address, 13)
        if not start.startswith(_DEVICES) or self._device_failed:
            return
        try:
            if self._device is None:
                self._device = _device_file(self._seed)
            # Opened anew, so that every opener reads from the beginning.
            ours = os.open(f"/proc/self/fd/{self._device}", os.O_RDONLY)
            try:
                target = _O_CLOEXEC if flags & _O_CLOEXEC else 0
                request = bytearray(_ADD_FD.pack(ident, 0, ours, 0, target))  # mutable: else ioctl returns a copy
                number = fcntl.ioctl(self.listener, _ADDFD, request)
            finally:
                os.close(ours)
        except OSError as error:
            if error.errno != errno.ENOENT:
                self._device_failed = True
                self.failures["random_devices"] = error.strerror or str(error)
            return
        try:
            fcntl.ioctl(self.listener, _SEND, _RESPONSE.pack(ident, number, 0, 0))
        except OSError:
            pass
        raise _AlreadySentError

    # The clock

    def _tell_time(self, ident: int, thread: int, name: str, args: list[int], clock: Clock) -> int:
        self._ticks += 1
        since_start = self._ticks * clock.step_ns
        # Clocks other than the wall's count from somewhere in the past; an hour is as good as any.
        wall = name != "clock_gettime" or args[0] in (0, 5, 11)
        seconds, nanoseconds = divmod((clock.epoch_ns if wall else 3_600_000_000_000) + since_start, 1_000_000_000)
        if name == "time":
            if args[0]:
                self._poke(ident, thread, args[0], struct.pack("=q", seconds))
            return seconds
        address = args[1] if name == "clock_gettime" else args[0]
        if address:
            fraction = nanoseconds if name == "clock_gettime" else nanoseconds // 1000
            self._poke(ident, thread, address, struct.pack("=qq", seconds, fraction))
        return 0

    # Processes

    def _process(self, pid: int) -> _Process:
        """Return what is known of this process; at its first call, find out whose child it is."""
        known = self._processes.get(pid)
        if known is not None:
            return known
        parent = 0 if pid == self._root else _parent(pid)
        origin = self._processes.get(parent)
        if origin is None:
            stream, path, argv = self._seed, "", []
            if pid != self._root:  # its parent has ended already
                stream += b"/orphan"
        else:
            # The how manieth child it is makes its random bytes its own, and the same in every run.
            stream, path, argv = origin.stream + b"/%d" % origin.forks, origin.image.path, origin.image.argv
        image = Image(pid, path, argv, parent, forked=pid != self._root)
        self.images.append(image)
        process = _Process(stream, image)
        self._processes[pid] = process
        return process

    def _fork(self, thread: int) -> None:
        """Count a fork; first meet the earlier children, while it is still known which is which."""
        pid = _group(thread)
        process = self._process(pid)
        for child in _children(pid):
            if child not in self._processes:
                self._process(child)
        process.forks += 1
        process.image.forks += 1

    def _exec(self, thread: int, path_address: int, argv_address: int) -> None:
        pid = _group(thread)
        process = self._process(pid)
        if self._tool is None:
            # Native: nothing tells whether this exec will succeed (a search along PATH tries many): the last one counts.
            command = _strings(thread, argv_address)
            command[:1] = [os.fsdecode(_peek_string(thread, path_address))]
            self._note(process, command)
            return
        executing = os.path.basename(os.readlink(f"/proc/{thread}/exe"))
        if executing == self._tool:
            # Valgrind executes its launcher with its own options and then the program and its arguments.
            process.pending = _program(_strings(thread, argv_address))
            self._set_aside(pid, process.image)
        elif process.pending is not None:  # the launcher executes the tool: the exec before it succeeded
            self._replace(process, pid, process.pending)
        elif not process.image.argv:
            self._note(process, _program(_strings(thread, argv_address)))

    def _note(self, process: _Process, command: list[str]) -> None:
        """Note an exec: the first of the whole run surely succeeds, another one may."""
        if process.image.argv:
            process.pending = command
        else:
            process.image.argv = command
            process.image.path = _text(command)

    def _set_aside(self, pid: int, image: Image) -> None:
        """Rename this image's out files, which the next image of the process, numbering anew, would overwrite."""
        number = next(index for index, known in enumerate(self.images) if known is image)
        for name in os.listdir(self._out):
            if name == f"out.{pid}" or name.startswith(f"out.{pid}."):
                os.rename(f"{self._out}/{name}", f"{self._out}/image{number}.{self._aside}.{name}")
        self._aside += 1

    def finish(self) -> None:
        """Bring `images` and `failures` up to date when all processes have ended."""
        if self._tool is not None and self._randomness and not self._at_random_pinned:
            self.failures.setdefault("randomness", "Valgrind did not come by where AT_RANDOM can be set")
        for pid, process in self._processes.items():
            if self._tool is None and process.pending is not None:
                self._replace(process, pid, process.pending)

    def _replace(self, process: _Process, pid: int, command: list[str]) -> None:
        """Note that an exec has succeeded: a new image, whose random stream begins anew."""
        process.image.replaced = True
        process.image = Image(pid, _text(command), command, process.image.parent, forked=False)
        self.images.append(process.image)
        process.pending = None
        process.drawn = 0

    def _poke(self, ident: int, thread: int, address: int, data: bytes) -> None:
        """Write into the caller's memory, having made sure that it is still the caller."""
        try:
            memory = os.open(f"/proc/{thread}/mem", os.O_WRONLY)
        except PermissionError as error:
            for part in ("randomness", *(("clock",) if self._clock else ())):
                self.failures.setdefault(part, f"the program's memory cannot be written: {error.strerror}")
            raise
        try:
            fcntl.ioctl(self.listener, _ID_VALID, struct.pack("=Q", ident))
            try:
                os.pwrite(memory, data, address)
            except OSError as error:
                raise _RefuseError(errno.EFAULT) from error
        finally:
            os.close(memory)


class _AlreadySentError(Exception):
    """The answer has gone out."""


class _RefuseError(Exception):
    """Answer with this error number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _device_file(seed: bytes) -> int:
    """Make the file that stands for the random devices."""
    descriptor = os.memfd_create("random", os.MFD_CLOEXEC)
    data = hashlib.shake_128(seed + b"device").digest(_DEVICE_BYTES)
    os.write(descriptor, data)
    os.ftruncate(descriptor, _DEVICE_SIZE)
    return descriptor


def _peek(thread: int, address: int, length: int) -> bytes:
    memory = os.open(f"/proc/{thread}/mem", os.O_RDONLY)
    try:
        return os.pread(memory, length, address)
    finally:
        os.close(memory)


def _peek_string(thread: int, address: int) -> bytes:
    """Read a string, page by page as its end may be that of the mapping."""
    text = b""
    while len(text) < 1 << 16:
        length = 4096 - (address + len(text)) % 4096
        part, nul, _ = _peek(thread, address + len(text), length).partition(b"\0")
        text += part
        if nul or not part:
            break
    return text


def _strings(thread: int, address: int) -> list[str]:
    """Read a list of strings, such as the arguments of an exec."""
    found: list[str] = []
    while len(found) < _MOST_ARGUMENTS:
        (pointer,) = struct.unpack("=Q", _peek(thread, address, 8))
        if not pointer:
            break
        found.append(os.fsdecode(_peek_string(thread, pointer)))
        address += 8
    return found


def _program(arguments: list[str]) -> list[str]:
    """Return the program and its arguments in the argument list of Valgrind: from the first that is no option."""
    for index, argument in enumerate(arguments):
        if index and not argument.startswith("-"):
            return arguments[index:]
    return []


def _text(command: list[str]) -> str:
    """Return the program of a command as text."""
    return os.fsencode(command[0]).decode("utf-8", "backslashreplace") if command else ""


def _status_field(pid: int, name: bytes) -> int:
    with open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1])
    return 0


def _group(thread: int) -> int:
    """Return the process that a thread belongs to."""
    return _status_field(thread, b"Tgid:")


def _parent(pid: int) -> int:
    try:
        return _status_field(pid, b"PPid:")
    except OSError:
        return 0


def _children(pid: int) -> list[int]:
    """Return the living children in the order of their birth (empty on kernels that do not tell)."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += [int(child) for child in file.read().split()]
    except OSError:
        pass
    return found
