"""Writing files so that nothing is ever half there: a temporary file beside the target, then a rename."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from cachegrind_bench.errors import UsageError
from cachegrind_bench.store.durable import dangling

_PREFIX = ".cg-bench."
_LOOK = 1 << 12  # bytes


def check_writable(path: Path) -> None:
    """Find out before any work whether `write_atomic` will work; UsageError naming the file if not."""
    if _is_special(path):
        return
    if os.path.isdir(path):  # unlike Path's, never an exception (Python up to 3.13)
        raise UsageError(f"cannot write {path}: it is a directory", hint="name a file in it")
    try:
        with suppress(FileNotFoundError):
            path.stat()  # fails where the name is too long
        descriptor, temporary = tempfile.mkstemp(dir=_target(path).parent, prefix=_PREFIX)
    except OSError as error:
        raise _cannot_write(path, error) from error
    os.close(descriptor)
    os.unlink(temporary)


def make_folder(folder: Path) -> Path:
    """Make a folder, and those above it, where it is not there. UsageError if it cannot be, or nothing be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        link = dangling(folder)
        what = error.strerror if link is None else f"the link {link} leads nowhere"
        raise UsageError(f"cannot make the folder {folder}: {what}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"cannot write into the folder {folder}: Permission denied", hint="choose another folder")
    return folder


def check_replaceable(path: Path) -> None:
    """Find out before any work whether a result may take the place of this file: UsageError if it is something else."""
    if _is_special(path):
        return
    try:
        with path.open("rb") as file:
            start = file.read(_LOOK).lstrip()
    except OSError:  # it is not there, or `check_writable` tells what is wrong
        return
    if start and not start.startswith(b"{"):
        raise UsageError(f"{path} is there already, and no result file", hint="name another file, or remove it first")


def write_atomic(path: Path, data: bytes) -> None:
    """Replace the file by these bytes, whole or not at all; pipes and devices are written to."""
    try:
        if _is_special(path):
            path.write_bytes(data)
            return
        descriptor, temporary = tempfile.mkstemp(dir=_target(path).parent, prefix=_PREFIX)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                os.fchmod(file.fileno(), _mode(path))
            os.replace(temporary, _target(path))
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise _cannot_write(path, error) from error


def _target(path: Path) -> Path:
    """Return the file behind a symbolic link: the link stays (`latest.json`, and above all `/dev/stdout`)."""
    return Path(os.path.realpath(path))


def _mode(path: Path) -> int:
    """Return the mode of the file that is replaced, or that of a new file."""
    with suppress(OSError):
        return stat.S_IMODE(path.stat().st_mode)
    return 0o666 & ~_umask()


def _umask() -> int:
    """Return the process' mask for new files. To ask for it by setting it would change it for other threads meanwhile."""
    try:
        match = re.search(r"^Umask:\s*([0-7]+)$", Path("/proc/self/status").read_text("ascii", "replace"), re.MULTILINE)
    except OSError:
        match = None
    return int(match[1], 8) if match else 0o022


def _is_special(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _cannot_write(path: Path, error: OSError) -> UsageError:
    hint = (
        "make the directory first" if isinstance(error, FileNotFoundError) else "choose another file or free some space"
    )
    return UsageError(f"cannot write {path}: {error.strerror}", hint=hint)
