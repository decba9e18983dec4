"""Answers system calls of the sealed program: random bytes and devices, the machine's state, the clock; notes forks, execs.

One supervisor serves one run, inside the launcher. It is no sandbox: a call it cannot answer goes on to the kernel.
Only the standard library, and little of it: its start-up is paid on every run.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from cachegrind_bench.hermetic.images import ProcessTable
from cachegrind_bench.hermetic.kernel import CLONE_THREAD
from cachegrind_bench.hermetic.substitutes import NAMES, part_of, substitute, sysinfo
from cachegrind_bench.hermetic.tracee import executing, peek
from cachegrind_bench.hermetic.traps import PLAIN_READING_MASK

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.calls import Architecture
    from cachegrind_bench.hermetic.images import Image
    from cachegrind_bench.hermetic.recorder import Recorder

# linux/include/uapi/linux/seccomp.h: struct seccomp_notif, seccomp_notif_resp, seccomp_notif_addfd
_NOTIFICATION, _RESPONSE, _ADD_FD = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI"), struct.Struct("=QIIII")
_RECV, _SEND, _ID_VALID, _ADDFD = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_CONTINUE = 1
_AT_RANDOM = 25
_O_CLOEXEC = 0o2000000
_LONGEST_NAME = max(map(len, NAMES))
_LONGEST_ANSWER = 1 << 20
_SINCE_BOOT_NS = 1_000_000_000  # where pinned clocks other than the wall's start


class Clock(NamedTuple):
    """A clock that starts at `epoch_ns` and moves by `step_ns` with every reading."""

    epoch_ns: int
    step_ns: int


class Supervisor:
    """Serves one listener until it is closed."""

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
        recorder: Recorder | None = None,
        forks_alike: bool = False,
    ) -> None:
        self.listener = listener
        # Reasons, by part of the seal that turned out not to hold.
        self.failures: dict[str, str] = {}
        self._seed = seed
        self._tool = tool
        self._randomness = randomness
        self._at_random_pinned = False
        self._clock = clock
        self._recorder = recorder
        self._files: dict[bytes, int] = {}
        self._failed: set[bytes] = set()
        self._names = {number: name for name, number in table.calls.items()}
        self._buffer = bytearray(_NOTIFICATION.size)
        self._processes = ProcessTable(root, seed=seed, tool=tool, out=out, forks_alike=forks_alike)

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
        except (OSError, struct.error):
            answered = False  # an address that cannot be read, or not far enough: the kernel says what it says
        flags = 0 if answered else _CONTINUE
        try:
            fcntl.ioctl(self.listener, _SEND, _RESPONSE.pack(ident, value, -error_number, flags))
        except OSError:
            pass  # the caller was killed, or interrupted and will ask again

    def _answer(self, ident: int, name: str, thread: int, args: list[int]) -> tuple[bool, int]:
        """Return (whether we answer instead of the kernel, the value)."""
        if self._recorder is not None and self._recorder.take(name, thread, args):
            return False, 0
        if name == "getrandom":
            return True, self._getrandom(ident, thread, args[0], args[1])
        if name in ("openat", "open"):
            path, flags = args[1:3] if name == "openat" else args[:2]
            if self._randomness and not flags & PLAIN_READING_MASK:  # while files are recorded, others come here, too
                self._open(ident, thread, path, flags)
        elif name == "sysinfo":
            process = self._processes.of_thread(thread)
            process.asked += 1
            self._poke(ident, thread, args[0], sysinfo(process.asked))
            return True, 0
        elif name in ("getrlimit", "prlimit64"):
            self._pin_at_random(ident, thread)
        elif self._clock is not None and name in ("clock_gettime", "gettimeofday", "time"):
            return True, self._tell_time(ident, thread, name, args, self._clock)
        else:
            self._follow(name, thread, args)
        return False, 0

    def _follow(self, name: str, thread: int, args: list[int]) -> None:
        """Note what the program becomes and starts."""
        if name in ("execve", "execveat"):
            path, arguments = args[:2] if name == "execve" else args[1:3]
            self._processes.execute(thread, path, arguments)
        elif name in ("fork", "vfork"):
            self._processes.fork(thread)
        elif name == "exit_group":
            self._processes.end(thread)
        elif name in ("clone", "clone3"):
            flags = args[0] if name == "clone" else struct.unpack("=Q", peek(thread, args[0], 8))[0]
            if flags & CLONE_THREAD:
                self._processes.start_thread(thread)
            else:
                self._processes.fork(thread)

    # Randomness

    def _getrandom(self, ident: int, thread: int, address: int, length: int) -> int:
        process = self._processes.of_thread(thread)
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
        if self._tool is None or executing(thread) != self._tool:
            return
        with open(f"/proc/{thread}/auxv", "rb") as file:
            auxv = file.read()
        for kind, address in struct.iter_unpack("=QQ", auxv[: len(auxv) // 16 * 16]):
            if kind == _AT_RANDOM:
                self._poke(ident, thread, address, hashlib.shake_128(self._seed + b"AT_RANDOM").digest(16))
                self._at_random_pinned = True

    def _open(self, ident: int, thread: int, address: int, flags: int) -> None:
        """Hand out a file of fixed bytes when a random device is opened, or one that tells of the machine's state."""
        name = b"".join(peek(thread, address, _LONGEST_NAME).partition(b"\0")[:2])
        if name not in NAMES or name in self._failed:
            return
        try:
            if name not in self._files:
                self._files[name] = substitute(name, self._seed)
            # Opened anew, so that every opener reads from the beginning.
            ours = os.open(f"/proc/self/fd/{self._files[name]}", os.O_RDONLY)
            try:
                target = _O_CLOEXEC if flags & _O_CLOEXEC else 0
                request = bytearray(_ADD_FD.pack(ident, 0, ours, 0, target))  # mutable: else ioctl returns a copy
                number = fcntl.ioctl(self.listener, _ADDFD, request)
            finally:
                os.close(ours)
        except OSError as error:
            if error.errno != errno.ENOENT:
                self._failed.add(name)
                self.failures[part_of(name)] = f"{os.fsdecode(name[:-1])}: {error.strerror or error}"
            return
        try:
            fcntl.ioctl(self.listener, _SEND, _RESPONSE.pack(ident, number, 0, 0))
        except OSError:
            pass
        raise _AlreadySentError

    # The clock

    def _tell_time(self, ident: int, thread: int, name: str, args: list[int], clock: Clock) -> int:
        process = self._processes.of_thread(thread)
        process.ticks += 1
        since_start = process.ticks * clock.step_ns
        # Both kinds of clocks lag behind the kernel's own, which judges deadlines: a wait for a time that was computed
        # from ours ends at once, on every machine, where one ahead of the kernel would last until that catches up.
        wall = name != "clock_gettime" or args[0] in (0, 5, 11)
        seconds, nanoseconds = divmod((clock.epoch_ns if wall else _SINCE_BOOT_NS) + since_start, 1_000_000_000)
        if name == "time":
            if args[0]:
                self._poke(ident, thread, args[0], struct.pack("=q", seconds))
            return seconds
        address = args[1] if name == "clock_gettime" else args[0]
        if address:
            fraction = nanoseconds if name == "clock_gettime" else nanoseconds // 1000
            self._poke(ident, thread, address, struct.pack("=qq", seconds, fraction))
        return 0

    def finish(self) -> list[Image]:
        """Return the programs that ran, and bring `failures` up to date, when all processes have ended."""
        if self._tool is not None and self._randomness and not self._at_random_pinned:
            self.failures.setdefault("randomness", "Valgrind did not come by where AT_RANDOM can be set")
        self._processes.finish()
        for image in self._processes.images:
            if image.foreign:
                why = f"{image.path} is a program of another architecture"
                if self._randomness:
                    self.failures.setdefault("randomness", why)
                if self._recorder is not None:
                    self._recorder.notes.give_up(why)
        return self._processes.images

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
                written = os.pwrite(memory, data, address)
            except (OSError, OverflowError) as error:  # nothing is there; nor beyond what an offset holds
                raise _RefuseError(errno.EFAULT) from error
            if written < len(data):
                raise _RefuseError(errno.EFAULT)
        finally:
            os.close(memory)


class _AlreadySentError(Exception):
    """The answer has gone out."""


class _RefuseError(Exception):
    """Answer with this error number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
