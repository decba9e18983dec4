"""A commit checked out next to the work tree, for as long as it is needed. Nothing of the user's checkout is touched."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.interruption import uninterrupted
from cachegrind_bench.vcs.git import Git
from cachegrind_bench.vcs.objects import NOBODY

# Folders of worktrees begin so, and are removed with them.
PREFIX = "cg-bench."

_TIMEOUT_S = 600.0
_NUMBERED = re.compile(rf"{re.escape(PREFIX)}[0-9]+")
_LOCKED = re.compile(r"worktree ([^\n]+)\n(?:[^\n]+\n)*locked cg-bench ([0-9a-f-]+ [0-9]+) ([0-9]+) ([0-9]+)\n")


@contextmanager
def worktree(repository: Path, sha: str, path: Path, environ: Mapping[str, str]) -> Generator[Path]:
    """Check out a commit at `path`, which must not exist, and remove it afterwards. MeasurementError if git refuses."""
    git = Git(repository, environ)
    listed = git.run("worktree", "list", "--porcelain").stdout.decode("utf-8", "surrogateescape")
    for name, place, pid, started in _LOCKED.findall(listed):
        # Those of processes that were killed; what another machine or container has made is its own.
        here = _process(os.getpid()).startswith(f"{place} ")
        folder = Path(name).parent
        numbered = (
            _NUMBERED.fullmatch(folder.name) is not None
        )  # whoever holds its lock tidies up, and may be at work there
        if here and _process(int(pid)) != f"{place} {pid} {started}" and (not numbered or folder == path.parent):
            _remove(repository, Path(name), environ)
            if folder.name.startswith(PREFIX) and not numbered:
                shutil.rmtree(folder, ignore_errors=True)
    try:
        git.text("worktree", "add", "--detach", "--force", str(path), sha, timeout=_TIMEOUT_S)
        # Nobody's `git worktree prune` takes it for forgotten; and whoever finds it later knows whether we are alive.
        git.text("worktree", "lock", "--reason", f"cg-bench {_process(os.getpid())}", str(path))
        yield path
    finally:
        with uninterrupted():
            _remove(repository, path, environ)


def changes_as_commit(repository: Path, environ: Mapping[str, str]) -> str | None:
    """Return a commit of the tracked files as they are now, on no branch; None if they are as in HEAD.

    MeasurementError if git cannot make one. The index is copied, as files may be staged, half merged, or only announced.
    """
    git = Git(repository, environ)
    known = repository / git.text("rev-parse", "--git-path", "index").rstrip("\n")
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        index = Path(folder) / "index"
        try:
            shutil.copy2(known, index)  # with its time, by which git knows what may have changed since
        except FileNotFoundError:
            git.text("read-tree", "HEAD", index=index)
        except OSError as error:
            raise MeasurementError(f"cannot read {known}: {error.strerror}") from error
        git.text("add", "--update", timeout=_TIMEOUT_S, index=index)
        tree = git.text("write-tree", timeout=_TIMEOUT_S, index=index).strip()
    if tree == git.text("rev-parse", "HEAD^{tree}").strip():
        return None
    message = "The work tree, as measured by cg-bench"
    return Git(repository, {**environ, **NOBODY}).text("commit-tree", "-p", "HEAD", "-m", message, tree).strip()


def _process(pid: int) -> str:
    """Return what identifies this process among all others: the running system, its process ids, one of them, and its start."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
        started = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
        return f"{boot} {os.stat('/proc/self/ns/pid').st_ino} {pid} {started}"
    except (OSError, IndexError):
        return f"unknown {pid} gone"


def _remove(repository: Path, path: Path, environ: Mapping[str, str]) -> None:
    """Remove a worktree, whatever is in it, and git's entry of it, but of no other. MeasurementError if it stays there."""
    for folder, inside, _ in os.walk(path):
        for name in inside:  # what is in read-only folders, as of Go's modules, cannot be removed before
            with suppress(OSError):
                if not os.path.islink(os.path.join(folder, name)):
                    os.chmod(os.path.join(folder, name), 0o700)
    shutil.rmtree(path, ignore_errors=True)
    with suppress(MeasurementError):  # `git gc` does the same after a while
        Git(repository, environ).text("worktree", "remove", "--force", "--force", str(path), timeout=_TIMEOUT_S)
    if os.path.lexists(path):
        raise MeasurementError(f"cannot remove the worktree {path}")
