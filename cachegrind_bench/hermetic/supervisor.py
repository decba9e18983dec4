"""Answers system calls of the sealed program: random bytes and devices, the machine's state, the clock; notes forks, execs.

One supervisor serves one run, inside the launcher. It is not a sandbox: a call it cannot answer goes on to the kernel.
Only the standard library, and little of it: its start-up is paid on every run.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from cachegrind_bench.hermetic import fake_proc
from cachegrind_bench.hermetic.clock import CALLS, PinnedTime, pinned_time
from cachegrind_bench.hermetic.file_trace import MOVES, start_of
from cachegrind_bench.hermetic.files import stamp_of
from cachegrind_bench.hermetic.images import ProcessTable
from cachegrind_bench.hermetic.kernel import CLONE_THREAD, Architecture
from cachegrind_bench.hermetic.listings import Listings
from cachegrind_bench.hermetic.neighbours import is_crossing
from cachegrind_bench.hermetic.place import Translation, rewritten
from cachegrind_bench.hermetic.process_memory import (
    executing,
    path_of,
    peak_memory_kb,
    peek,
    peek_string,
)
from cachegrind_bench.hermetic.syscall_filter import AFFINITY, PLAIN_READING_MASK
from cachegrind_bench.hermetic.waits import TIMEOUTS, TIMERS, Waits

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.execution import Execution, Image
    from cachegrind_bench.hermetic.file_trace import Recorder
    from cachegrind_bench.hermetic.scheduling import Scheduling

# linux/include/uapi/linux/seccomp.h: struct seccomp_notif, seccomp_notif_resp, seccomp_notif_addfd
_NOTIFICATION, _RESPONSE, _ADD_FD = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI"), struct.Struct("=QIIII")
_RECV, _SEND, _ID_VALID, _ADDFD = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_CONTINUE = 1
_AT_RANDOM = 25
_O_CLOEXEC = 0o2000000
_CACHE = fake_proc.CACHE.encode() + b"\0"
_LONGEST_NAME = max(map(len, (*fake_proc.NAMES, fake_proc.MAPS, _CACHE)))
_LONGEST_PATH = 4096
_LONGEST_ANSWER = 1 << 20
_INT = 0xFFFFFFFF
_MASK_BYTES = 8  # of a set of CPUs; the kernel's is longer where more than 64 are possible


class Supervisor:
    """Serves one listener until it is closed."""

    def __init__(
        self,
        listener: int,
        table: Architecture,
        execution: Execution,
        *,
        root: int,
        scheduling: Scheduling,
        recorder: Recorder | None,
    ) -> None:
        self.listener = listener
        self._execution = execution
        self._places = Translation(execution.places)
        checkout = execution.checkout
        # In files of Python's.
        self._replaced = execution.places if checkout is None else checkout.replacements(execution.places)
        # Reasons, by part of the seal that turned out not to hold.
        self.failures: dict[str, str] = {}
        self.unfit = ""  # see Report
        self._at_random_pinned = False
        self._time = None if execution.clock is None else pinned_time(execution.clock, execution.out)
        self.waits: Waits | None = None
        self._recorder = recorder
        self._scheduling = scheduling
        self._files: dict[bytes, int] = {}
        self._failed: set[bytes] = set()
        self._stamps: dict[bytes, tuple[int, ...]] = {}
        # The names that libraries were found by, and by their paths those of all that there are, once these are known.
        self.libraries: set[bytes] = set()
        self._libraries_by_path: dict[bytes, bytes] = {}
        self._names = {number: name for name, number in table.calls.items()}
        self._buffer = bytearray(_NOTIFICATION.size)
        self._listings = Listings(table, execution.scratch, backwards=execution.elsewhere == fake_proc.DIRECTORIES)
        if self._time is not None:
            self.waits = Waits(listener, self._time, numbers=self._names, poke=self._poke, send=self._reply)
        self._processes = ProcessTable(root, execution)

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
        if self.waits:
            self.waits.end_due()
        try:
            answered, value = self._answer(ident, self._names.get(number, ""), pid, args)
        except _AlreadySentError:
            return
        except _RefuseError as refusal:
            answered, error_number = True, refusal.number
        except (OSError, struct.error):
            answered = False  # an address that cannot be read, or not far enough: the kernel says what it says
        self._reply(ident, value=value, error=error_number, go_on=not answered)

    def _reply(self, ident: int, *, value: int = 0, error: int = 0, go_on: bool = False) -> None:
        """Answer, or have the kernel `go_on`."""
        with suppress(OSError):  # the caller was killed, or interrupted and will ask again
            _ioctl(self.listener, _SEND, _RESPONSE.pack(ident, value, -error, _CONTINUE if go_on else 0))

    def _answer(self, ident: int, name: str, thread: int, args: list[int]) -> tuple[bool, int]:
        """Return (whether we answer instead of the kernel, the value)."""
        answered = False
        if self._recorder is not None and self._recorder.take(name, thread, args):
            return False, 0
        if name == "getrandom":
            return True, self._getrandom(ident, thread, args[0], args[1])
        if name in ("openat", "open"):
            path, flags = args[1:3] if name == "openat" else args[:2]
            if not flags & PLAIN_READING_MASK:  # while files are recorded, others come here, too
                self._open(ident, thread, path, flags)
        elif name == "getdents64":
            return self._list(ident, thread, *args[:3])
        elif name == "sysinfo":
            process = self._processes.of_thread(thread)
            process.asked += 1  # each asking takes a second, as some wait for it
            seconds = process.asked if self._time is None else self._time.uptime_ns(process) // 1_000_000_000
            self._poke(ident, thread, args[0], fake_proc.sysinfo(seconds))
            return True, 0
        elif name in ("getrlimit", "prlimit64"):
            self._pin_at_random(ident, thread)
        elif name in AFFINITY:
            return self._number_cpu(ident, thread, name, args)
        elif self._time is not None and name in CALLS:
            return self._tell_time(ident, thread, name, args, self._time)
        elif self.waits is not None and (name in TIMERS or name in TIMEOUTS):
            answered = self._wait(self.waits, ident, name, thread, args)
        else:
            self._follow(name, thread, args)
        return answered, 0

    def _follow(self, name: str, thread: int, args: list[int]) -> None:
        if name == "clone" and args[0] & CLONE_THREAD:
            self._processes.start_thread(thread)
            return
        with self._scheduling.lowered():  # this looks at other processes in /proc, some of which may be gone
            if name in ("execve", "execveat"):
                path, arguments = args[:2] if name == "execve" else args[1:3]
                self._processes.execute(thread, path, arguments)
            elif name in ("fork", "vfork"):
                self._fork(thread)
            elif name == "exit_group":
                self._processes.end(thread)
            elif name in MOVES and self._places.pairs:
                self._follow_move(thread, args, MOVES[name])
            elif name in ("clone", "clone3"):
                flags = args[0] if name == "clone" else struct.unpack("=Q", peek(thread, args[0], 8))[0]
                if flags & CLONE_THREAD:
                    self._processes.start_thread(thread)
                else:
                    self._fork(thread)

    def _follow_move(self, thread: int, args: list[int], places: tuple[int | None, int, int | None, int]) -> None:
        found: list[str] = []
        for folder, place in (places[:2], places[2:]):
            path = peek_string(thread, args[place])
            whole = path if path.startswith(b"/") else start_of(thread, args, folder) + b"/" + path
            found.append(os.path.normpath(os.fsdecode(whole)))
        source, target = found
        if is_crossing(thread, source, target, self._places):
            real = self._places.real(target)
            self.unfit = f"the command moves or links a file to {real}, out of the project or into it"

    def _fork(self, thread: int) -> None:
        process = self._processes.fork(thread)
        if self._time is not None:
            self._time.forked(process)

    def _wait(self, waits: Waits, ident: int, name: str, thread: int, args: list[int]) -> bool:
        """Return whether we answer instead of the kernel."""
        if name == "setitimer" and args[0] & _INT and self._time is not None and self._time.ignores_cpu_timers:
            return True
        process = self._processes.of_thread(thread)
        if name in TIMERS:
            waits.note_timer(name, thread, args, process)
        elif waits.hold(ident, thread, name, args, process):
            raise _AlreadySentError  # or will be
        return False

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
        if self._execution.tool is None or executing(thread) != self._execution.tool:
            return
        with open(f"/proc/{thread}/auxv", "rb") as file:
            auxv = file.read()
        for kind, address in struct.iter_unpack("=QQ", auxv[: len(auxv) // 16 * 16]):
            if kind == _AT_RANDOM:
                self._poke(ident, thread, address, hashlib.shake_128(self._execution.seed + b"AT_RANDOM").digest(16))
                self._at_random_pinned = True

    def _open(self, ident: int, thread: int, address: int, flags: int) -> None:
        """Hand out a file of fixed bytes when a random device is opened, or one with the machine's state."""
        longest = _LONGEST_PATH if self._libraries_by_path or self._replaced else _LONGEST_NAME
        name = b"".join(peek(thread, address, longest).partition(b"\0")[:2])
        if name in self._libraries_by_path:
            self.libraries.add(self._libraries_by_path[name])
        if self._replaced:
            self._try_copy(ident, thread, name[:-1], flags)
        if name == fake_proc.MAPS:
            self._try_maps(ident, thread, address, flags)
        wanted = name in fake_proc.NAMES or name == _CACHE
        if name == _CACHE or fake_proc.mapped_or_searched(name):
            # Only the C library closes it on exec; ldconfig, which prints one of them, does not.
            wanted = bool(flags & _O_CLOEXEC) and _has_our_root(thread, os.fsdecode(name[:-1]))
            found = stamp_of(name[:-1]) if wanted else ()
            if wanted and self._stamps.setdefault(name, found) != found:  # the program changed it
                self._stamps[name] = found
                if name in self._files:
                    os.close(self._files.pop(name))
        if not wanted or name in self._failed:
            return
        try:
            if name not in self._files or (
                name == fake_proc.UPTIME and self._time is not None
            ):  # it goes with the clocks
                self._files[name] = self._make(thread, name)
            number = self._add_file(ident, self._files[name], flags)
        except OSError as error:
            if error.errno != errno.ENOENT:
                self._failed.add(name)
                self.failures[fake_proc.part_of(name)] = f"{os.fsdecode(name[:-1])}: {error.strerror or error}"
            return
        self._reply_and_end(ident, number)

    def _add_file(self, ident: int, file: int, flags: int) -> int:
        """Put a file into the caller, opened anew, so that every opener reads from the beginning; return its descriptor there."""
        ours = os.open(f"/proc/self/fd/{file}", os.O_RDONLY)
        try:
            target = _O_CLOEXEC if flags & _O_CLOEXEC else 0
            return _ioctl(self.listener, _ADDFD, _ADD_FD.pack(ident, 0, ours, 0, target))
        finally:
            os.close(ours)

    def _reply_and_end(self, ident: int, value: int) -> NoReturn:
        """Answer, and go no further with this call."""
        self._reply(ident, value=value)
        raise _AlreadySentError

    def _make(self, thread: int, name: bytes) -> int:
        if name == _CACHE:
            return self._library_cache()
        if self._time is None or name != fake_proc.UPTIME:
            boot_s = None if self._time is None else self._time.boot_s()
            return fake_proc.substitute(name, self._execution.seed, boot_s, elsewhere=self._execution.elsewhere)
        if name in self._files:
            os.close(self._files.pop(name))
        descriptor = os.memfd_create("substitute", os.MFD_CLOEXEC)
        os.write(descriptor, fake_proc.uptime(self._time.uptime_ns(self._processes.of_thread(thread))))
        return descriptor

    def _try_copy(self, ident: int, thread: int, path: bytes, flags: int) -> None:
        """Hand out a copy of a file of Python's that names folders as the program sees them; return if this one names none."""
        if not path.startswith(b"/"):
            path = path_of(thread, "cwd") + b"/" + path
        data = rewritten(path, self._places, self._replaced, self._execution.checkout)
        if data is not None:
            self._hand_out_and_end(ident, data, flags)

    def _try_maps(self, ident: int, thread: int, address: int, flags: int) -> None:
        """Hand out a list of what a program has in memory without Valgrind's part; return if it is another program."""
        if self._execution.tool is None or executing(thread) != self._execution.tool:
            return
        with open(f"/proc/{thread}/maps", "rb") as file:
            data = fake_proc.maps_without_tool(file.read(), os.fsencode(os.readlink(f"/proc/{thread}/exe")), address)
        if data is not None:
            self._hand_out_and_end(ident, data, flags)

    def _hand_out_and_end(self, ident: int, data: bytes, flags: int) -> NoReturn:
        copy = os.memfd_create("copy", os.MFD_CLOEXEC)
        try:
            os.write(copy, data)
            number = self._add_file(ident, copy, flags)
        finally:
            os.close(copy)
        self._reply_and_end(ident, number)

    def _library_cache(self) -> int:
        with open(fake_proc.CACHE, "rb") as file:
            data = file.read()
        try:
            cache = fake_proc.LibraryCache(data)
        except ValueError as error:
            raise OSError(errno.EBADMSG, str(error)) from error
        descriptor = os.memfd_create("libraries", os.MFD_CLOEXEC)
        spare = fake_proc.PAGE if self._execution.elsewhere == fake_proc.LIBRARIES else 0
        cache.write(descriptor, self._execution.libraries or (), spare=spare)
        if self._execution.libraries is None:
            self._libraries_by_path = cache.names_by_path()
        return descriptor

    def _list(self, ident: int, thread: int, number: int, address: int, length: int) -> tuple[bool, int]:
        try:
            data = self._listings.read(thread, number, length)
        except BufferError:
            raise _RefuseError(errno.EINVAL) from None
        except OSError as error:
            if error.errno in (errno.EPERM, errno.ENOSYS):
                why = f"directories cannot be read in place of the program: {error.strerror}"
                self.failures.setdefault("files", why)
            return False, 0
        if data is None:
            return False, 0
        self._poke(ident, thread, address, data)
        return True, len(data)

    def _number_cpu(self, ident: int, thread: int, name: str, args: list[int]) -> tuple[bool, int]:
        """Let the one CPU of the run be number 0 on every machine, and the program stay there whatever it asks for.

        OpenMP counts through the mask up to its CPU, and runs at the same time have different ones.
        """
        if os.sched_getaffinity(thread) != {self._execution.cpu}:
            return False, 0
        if name == "getcpu":
            for address in filter(None, args[:2]):  # the number of the CPU, and that of its node
                self._poke(ident, thread, address, bytes(4))
        elif name == "sched_getaffinity":
            if not args[1] or args[1] % _MASK_BYTES:
                raise _RefuseError(errno.EINVAL)
            self._poke(ident, thread, args[2], (1).to_bytes(_MASK_BYTES, "little"))
            return True, _MASK_BYTES
        return True, 0

    def _tell_time(self, ident: int, thread: int, name: str, args: list[int], pinned: PinnedTime) -> tuple[bool, int]:
        peak = peak_memory_kb(thread) if name == "getrusage" else 0
        answer = pinned.answer(name, args, self._processes.of_thread(thread), peak)
        if answer is None:
            return False, 0
        if answer.address:
            self._poke(ident, thread, answer.address, answer.data)
        return True, answer.value

    def finish(self) -> list[Image]:
        """Return the programs that ran, and bring `failures` up to date, when all processes have ended."""
        if self._execution.tool is not None and not self._at_random_pinned:
            self.failures.setdefault("randomness", "Valgrind made no call at which AT_RANDOM can be set")
        self._processes.finish()
        for image in self._processes.images:
            if image.foreign:
                why = f"{image.path} is a program of another architecture"
                self.failures.setdefault("randomness", why)
                if self._recorder is not None:
                    self._recorder.notes.give_up(why)
        return self._processes.images

    def _poke(self, ident: int, thread: int, address: int, data: bytes) -> None:
        """Write into the caller's memory, having made sure that it is still the caller."""
        try:
            memory = os.open(f"/proc/{thread}/mem", os.O_WRONLY)
        except PermissionError as error:
            for part in ("randomness", *(("clock",) if self._time else ())):
                self.failures.setdefault(part, f"the program's memory cannot be written: {error.strerror}")
            raise
        try:
            _ioctl(self.listener, _ID_VALID, struct.pack("=Q", ident))
            try:
                written = os.pwrite(memory, data, address)
            except (OSError, OverflowError) as error:  # nothing is there; nor beyond what an offset holds
                raise _RefuseError(errno.EFAULT) from error
            if written < len(data):
                raise _RefuseError(errno.EFAULT)
        finally:
            os.close(memory)


def _ioctl(listener: int, request: int, argument: bytes) -> int:
    """Make this call, again where a signal interrupts it: the kernel takes it back then."""
    while True:
        with suppress(InterruptedError):
            value: int = fcntl.ioctl(listener, request, bytearray(argument))  # mutable, as else it returns a copy
            return value


def _has_our_root(thread: int, path: str) -> bool:
    """Return whether a process sees our file at this path: it may be in a container, or have another root."""
    try:
        return os.path.samefile(path, f"/proc/{thread}/root{path}")
    except OSError:
        return False


class _AlreadySentError(Exception):
    """The answer has gone out."""


class _RefuseError(Exception):
    """Answer with this error number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
