"""Runs other programs: echoes, times out, kills a whole process group. The only module that uses `subprocess`.

Knows nothing of Valgrind, git or benchmarks; never reads the environment, which is handed in.
"""

from __future__ import annotations

import errno
import fcntl
import math
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import msgspec

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.interruption import cancellation, held
from cachegrind_bench.log import LOG

_CHUNK = 1 << 16
_POLL_S = 0.05
# How long output may still come once the program itself has ended: bash's `> >(tee log)` needs a moment, while a
# daemon that inherited the pipe would hold it open for ever.
_DRAIN_S = 0.5
_FAREWELL_S = 2.0
# Holds our pipe open in the background: when that closes, as it does when we are killed, its process group has to end.
# The guard is not a child of the program, which may wait for all its children.
_GUARD = 'exec 3<&0 <"$0"; ({ read -r _ <&3; kill -9 "-$$"; } </dev/null >/dev/null 2>&1 &); exec "$@" 3<&-'
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
_REFUSED = (errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.EISDIR, errno.ELIBBAD, errno.ETXTBSY)


_PASSWORD = re.compile(r"://[^@/\s]*@")


class ProgramNotFound(MeasurementError):  # noqa: N818 - reads as what happened
    """The program does not exist, or is not on the PATH it was looked up in."""


class NotExecutable(MeasurementError):  # noqa: N818 - reads as what happened
    """The program exists and the kernel refuses to run it."""


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended: `status` is its exit code, or None if `signal` ended it. Output is the last part of it."""

    status: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    wall_ms: int

    @property
    def end(self) -> str:
        """In words, for messages."""
        return end_of(self.status, self.signal)


class Child:
    """A running program, leader of its own session; as a context manager, it and its group do not outlive the block.

    `stdin` is our end of its input (-1 without one), open until `close_stdin`; `stdout`, `stderr` those of its output.
    It may take `farewell_s` seconds to tidy up after the end of its input, or after SIGTERM.
    """

    def __init__(self, popen: subprocess.Popen[bytes], farewell_s: float = _FAREWELL_S) -> None:
        self._popen = popen
        self._farewell_s = farewell_s
        self.pid = popen.pid
        self.stdin, self.stdout, self.stderr = (
            -1 if pipe is None else pipe.fileno() for pipe in (popen.stdin, popen.stdout, popen.stderr)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.stdin >= 0:
                self.close_stdin()  # to a supervisor, the order to end its own children, then itself
                self._tidying()
        finally:
            self.kill()
            for pipe in filter(None, (self._popen.stdout, self._popen.stderr)):
                pipe.close()

    def terminate(self) -> None:
        """Ask it to end, unless it has, and let it tidy up."""
        if not self.has_ended():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
            self._tidying()

    def _tidying(self) -> None:
        deadline = time.monotonic() + self._farewell_s
        while not self.has_ended() and time.monotonic() < deadline:
            time.sleep(0.001)  # not `wait`: once it is reaped, the group could not be killed safely

    def close_stdin(self) -> None:
        """Let it see the end of its input."""
        if self._popen.stdin is not None:
            self._popen.stdin.close()
            self.stdin = -1

    def has_ended(self) -> bool:
        """Return whether it has ended, without reaping it: until then its id cannot become another process's."""
        try:
            return bool(os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG))
        except ChildProcessError:  # reaped: by us, or by the kernel with SIGCHLD ignored
            return True

    def wait(self, timeout: float | None = None) -> int | None:
        """Reap it and return its exit code, or minus the signal; None if it still runs after `timeout` seconds."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> int:
        """End what is left of its process group with SIGKILL, reap it, and return what `wait` does."""
        if self._popen.returncode is None:  # not reaped yet, so the group id is surely its own
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        return self._popen.wait()


def shown_command(argv: Sequence[str | bytes | os.PathLike[str]]) -> str:
    """Return a command as a shell would read it, addresses without passwords."""
    return _PASSWORD.sub("://…@", shlex.join(map(os.fsdecode, argv)))


def start(
    argv: Sequence[str | bytes | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None = None,
    stdin_pipe: bool = True,
    stdin: int = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
    farewell_s: float = _FAREWELL_S,
) -> Child:
    """Start a program in its own session, its output in two pipes, its input a pipe that is ours to close.

    With `stdin_pipe=False` the input is the descriptor `stdin`. `env=None` hands on our own environment.
    """
    if not argv or not argv[0]:
        raise ProgramNotFound("there is no command to run")
    source = subprocess.PIPE if stdin_pipe else stdin
    try:
        # fmt: off
        return Child(subprocess.Popen(argv, bufsize=0, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      env=env, cwd=cwd, pass_fds=pass_fds, start_new_session=True), farewell_s)
        # fmt: on
    except (OSError, ValueError) as error:
        raise _explain(error, os.fsdecode(argv[0]), cwd) from error


def run(
    argv: Sequence[str | bytes | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None = None,
    stdin: bytes | None = None,
    stdin_path: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    echo: Callable[[bytes], None] | None = None,
    waiting: Callable[[float], None] | None = None,
    keep_output_limit: int = 1 << 20,
    guarded: bool = False,
    shell: bool = False,
    tidies: bool = False,
) -> Completed:
    """Run a program to its end and keep the tail of its output; its input is `stdin`, or a file, or nothing.

    `echo` gets stdout and stderr as they come, `waiting` the seconds since the start, over and over. What is left of the
    process group is killed when the program ends, after `timeout` seconds, and when we are interrupted; if it is `guarded`,
    even if we are killed. With `shell`, argv[0] is a command line for `/bin/sh`, which is guarded and has no input. What `tidies`
    up gets SIGTERM first when we are interrupted, and has two seconds.
    """
    LOG.debug(f"runs {shown_command(argv)}{f' in {os.fspath(cwd)}' if cwd else ''}")
    started = time.monotonic()
    command = ["/bin/sh", "-c", *argv] if shell else argv
    with ExitStack() as stack:
        with held():
            source = _open_input(stdin, stdin_path)
            try:
                child = stack.enter_context(_started(command, source, guarded=guarded or shell, env=env, cwd=cwd))
            finally:
                if source >= 0:
                    os.close(source)
            if tidies:
                stack.callback(child.terminate)
        tails = {child.stdout: bytearray(), child.stderr: bytearray()}

        def take(pipe: int, chunk: bytes) -> None:
            tail = tails[pipe]
            tail += chunk
            if len(tail) > 2 * keep_output_limit + _CHUNK:  # not each time: it moves the tail
                del tail[: len(tail) - keep_output_limit]
            if echo is not None:
                echo(chunk)

        def look() -> None:
            if waiting is not None:
                waiting(time.monotonic() - started)

        in_time = _pump(child, take, look, math.inf if timeout is None else started + timeout)
        code = child.kill()
    ms = round((time.monotonic() - started) * 1000)
    status, ended_by = (code, None) if code >= 0 else (None, -code)
    out, err = (bytes(tail[max(0, len(tail) - keep_output_limit) :]) for tail in tails.values())
    return Completed(status=status, signal=ended_by, stdout=out, stderr=err, timed_out=not in_time, wall_ms=ms)


def end_of(status: int | None, signal: int | None) -> str:
    """Say how a program ended, for messages."""
    return f"signal {signal}" if status is None else f"exit status {status}"


def which(name: str, path: str) -> str | None:
    """Return the executable that this name means under this PATH; a name with a slash means itself."""
    return shutil.which(name, path=path)


def _started(
    command: Sequence[str | bytes | os.PathLike[str]],
    source: int,
    *,
    guarded: bool,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
) -> Child:
    """Start a program with this input."""
    if not guarded:
        return start(command, env=env, cwd=cwd, stdin_pipe=False, stdin=source)
    if source < 0:
        return start(["/bin/sh", "-c", _GUARD, "/dev/null", *command], env=env, cwd=cwd)
    high = fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, 10)  # the guard needs 3 for itself
    try:
        return start(["/bin/sh", "-c", _GUARD, f"/proc/self/fd/{high}", *command], env=env, cwd=cwd, pass_fds=(high,))
    finally:
        os.close(high)


def _pump(child: Child, take: Callable[[int, bytes], None], look: Callable[[], None], deadline: float) -> bool:
    """Hand over output until the program has ended and its pipes are silent; return whether it ended in time.

    `look` is called over and over.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        selector.register(child.stderr, selectors.EVENT_READ)
        pause = 0.0005
        cancel = cancellation()
        while not (ended := child.has_ended()) and time.monotonic() < deadline:
            if cancel is not None:
                cancel.check()
            look()
            if selector.get_map():
                _read(selector, take, _POLL_S)
            else:  # pipes close a moment before the process can be waited for: look again soon, then less often
                time.sleep(pause)
                pause = min(2 * pause, _POLL_S)
        if ended:
            deadline = time.monotonic() + _DRAIN_S
            while selector.get_map() and time.monotonic() < deadline:
                _read(selector, take, _POLL_S)
        child.kill()
        # What was written before the kill is still in the pipes, 1 MiB at most; a process that left the group may write for ever.
        any(not _read(selector, take, 0) for _ in range(32))
    return ended


def _read(selector: selectors.BaseSelector, take: Callable[[int, bytes], None], wait: float) -> bool:
    ready = selector.select(wait)
    for key, _events in ready:
        if chunk := os.read(key.fd, _CHUNK):
            take(key.fd, chunk)
        else:
            selector.unregister(key.fd)
    return bool(ready)


def _open_input(data: bytes | None, path: str | os.PathLike[str] | None) -> int:
    """Return a descriptor to read the input from, or `subprocess.DEVNULL`."""
    if path is not None:
        try:
            return os.open(path, os.O_RDONLY)
        except (OSError, ValueError) as error:
            raise MeasurementError(f"cannot read the input file {os.fspath(path)!r}: {error}") from error
    if data is None:
        return subprocess.DEVNULL
    # In memory, not a pipe: nobody has to feed it, so a program that never reads cannot block us.
    return _memory_file(data)


def _explain(error: OSError | ValueError, program: str, cwd: str | os.PathLike[str] | None) -> MeasurementError:
    code = error.errno if isinstance(error, OSError) else None
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    if cwd is not None and code is not None and not os.access(cwd, os.X_OK):
        return MeasurementError(f"cannot enter the working directory {os.fspath(cwd)!r}: {reason}")
    if code in _ABSENT:
        if "/" not in program or not os.access(Path(cwd or "") / program, os.F_OK):
            return ProgramNotFound(f"program not found: {program!r}", hint="Check the spelling, and PATH.")
        hint = "See its first line if it is a script; `readelf -l` names the loader of a binary."
        # "No such file" is also what the kernel says of a program whose own interpreter is missing.
        return NotExecutable(f"cannot run {program!r}: the interpreter it names does not exist", hint=hint)
    if code in _REFUSED:
        hint = "A script needs a `#!` first line." if code == errno.ENOEXEC else "Check its permissions (chmod +x)."
        return NotExecutable(f"cannot run {program!r}: {reason}", hint=hint)
    return MeasurementError(f"cannot run {program!r}: {reason}")


def _memory_file(data: bytes) -> int:
    """Return the descriptor of a file that has these bytes, to be read from its beginning. MeasurementError if it cannot be."""
    descriptor = -1
    try:
        descriptor = os.memfd_create("cg-bench", os.MFD_CLOEXEC)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        raise MeasurementError(
            f"{len(data)} bytes cannot be passed on: {error.strerror}",
            hint="check the limits on file size, open files and memory with ulimit -a",
        ) from error
    return descriptor
