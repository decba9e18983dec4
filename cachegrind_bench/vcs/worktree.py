"""A commit checked out next to the work tree, for as long as it is needed. Nothing of the user's checkout is touched."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shlex
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.interruption import uninterrupted
from cachegrind_bench.log import LOG
from cachegrind_bench.startup.removal import remove
from cachegrind_bench.vcs.objects import NOBODY

if TYPE_CHECKING:
    from cachegrind_bench.vcs.git import Git

# Folders of worktrees begin so, and are removed with them.
PREFIX = "cg-bench."

_TIMEOUT_S = 600.0  # a checkout of a large repository takes minutes
_ATTEMPTS, _PAUSE_S = 20, 0.1
_HALF_MADE = re.compile("failed to read (?:.*/)?worktrees/([^/\n]+)/")  # some versions of git name the whole path
_NUMBERED = re.compile(rf"{re.escape(PREFIX)}[0-9]+")
_IDENTITY = re.compile(r"cg-bench(?: [^ \n]+){3} [0-9]{1,18} [^ \n]+")
_LOCKED = re.compile(
    rf"^worktree (.+)\n(?:(?!worktree ).+\n)*locked (initializing|{_IDENTITY.pattern})\n", re.MULTILINE
)
# In a folder of ours, what identifies the process that has made it, as git does not say so of a worktree that is half made.
_OWNER = "owner"


@contextmanager
def own_folder() -> Generator[Path]:
    """Make a folder for worktrees, which is removed afterwards, with those of processes that were killed before git had made one."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()  # before Python 3.12, with TMPDIR=. it is a name alone
    try:
        with suppress(OSError):  # a full disk is reported where something is checked out
            (folder / _OWNER).write_text(f"cg-bench {_process(os.getpid())}", "utf-8")
        for other in folder.parent.glob(f"{PREFIX}*"):
            if not os.path.lexists(other / "tree") and _is_left_over(_owner(other), is_ours=False):
                with suppress(OSError):
                    remove(str(other))
        yield folder
    finally:
        with uninterrupted(), suppress(OSError):
            remove(str(folder))


def _owner(folder: Path) -> str:
    """Return what identifies the process that has made this folder of ours; nothing if that is not known."""
    with suppress(OSError, ValueError):
        if folder.stat().st_uid == os.geteuid():
            found = _IDENTITY.fullmatch((folder / _OWNER).read_text("utf-8"))
            return found[0] if found else ""
    return ""


@contextmanager
def worktree(git: Git, sha: str, path: Path, kept: Path | None = None) -> Generator[Path]:
    """Check out a commit at `path`, which must not exist, and remove it afterwards. MeasurementError if git refuses.

    With `kept`, all files are moved to that folder in the end, and from there if they are in it before.

    Nobody else may use `path` on this machine: what git has registered there is left over, whoever has made it.
    """
    listed = _register(git, path, "list", "--porcelain").decode("utf-8", "surrogateescape")
    for name, reason in _LOCKED.findall(listed):
        is_ours = name == os.path.realpath(path)
        # Whoever takes a numbered folder tidies up, and may be at work there.
        numbered = _NUMBERED.fullmatch(Path(name).parent.name) is not None
        if reason == "initializing" and not is_ours and not numbered:
            reason = _owner(Path(name).parent)  # noqa: PLW2901 - or one was killed, or is at work this moment
        if (is_ours or not numbered) and _is_left_over(reason, is_ours=is_ours):
            _remove(git, Path(name))
            if Path(name).parent.name.startswith(PREFIX) and not numbered:
                with suppress(OSError):
                    remove(str(Path(name).parent))
        elif is_ours:
            hint = f"if that one is gone: git worktree remove --force --force {path}"
            raise MeasurementError(f"git knows {path} as a worktree of another machine", hint=hint)
    try:
        again = kept is not None and kept.exists()
        _register(git, path, "add", "--detach", "--force", *(["--no-checkout"] if again else []), str(path), sha)
        # Nobody's `git worktree prune` takes it for forgotten; and whoever finds it later knows whether we are alive.
        _register(git, path, "lock", "--reason", f"cg-bench {_process(os.getpid())}", str(path))
        if kept is not None and again:
            _take_back(git, kept, path)
        yield path
        if kept is not None:
            path.rename(kept)
    finally:
        with uninterrupted():
            _remove(git, path)


def _take_back(git: Git, kept: Path, path: Path) -> None:
    """Move what was kept of a worktree into one of the same commit that has no files yet; all files keep their dates."""
    (path / ".git").replace(kept / ".git")
    path.rmdir()
    kept.rename(path)
    replace(git, cwd=path).text("reset", "--quiet", timeout=_TIMEOUT_S)


def _register(git: Git, path: Path, *words: str) -> bytes:
    """Let git list or register worktrees; again where it finds another one half made or half removed, and gives up.

    One of ours that stays so is forgotten: its git was killed.
    """
    left = _ATTEMPTS
    while (done := git.run("worktree", *words, timeout=_TIMEOUT_S)).status != 0:
        error = git.failed(done, "worktree")
        if os.strerror(errno.ENOSPC) in error.message:
            raise MeasurementError(f"no space is left for {path}", hint="free some space there") from error
        half = _HALF_MADE.search(error.message)
        if half is None:
            raise error
        left -= 1
        if left <= 0 and not _forget(entry := _entry(git, half[1])):
            hint = f"if no git is at work there, one was killed: rm -r {shlex.quote(str(entry))}"
            raise MeasurementError(error.message, hint=hint) from error
        time.sleep(_PAUSE_S)
    return done.stdout


def _entry(git: Git, name: str) -> Path:
    return git.cwd / git.text("rev-parse", "--git-common-dir").rstrip("\n") / "worktrees" / name


def _forget(entry: Path) -> bool:
    """Remove git's entry of a worktree in one of our folders that has been half made for some time; return whether it was removed."""
    try:
        tree = Path((entry / "gitdir").read_text("utf-8", "surrogateescape")).parent
        fresh = time.time() - (entry / "commondir").stat().st_mtime < _ATTEMPTS * _PAUSE_S
        if fresh or not tree.parent.name.startswith(PREFIX):
            return False
        remove(str(entry))
    except OSError:
        return False
    return True


def changes_as_commit(git: Git) -> str | None:
    """Return a commit of the tracked files as they are now, on no branch; None if they are as in HEAD.

    MeasurementError if git cannot make one. The index is copied, as files may be staged, half merged, or only announced.
    """
    known = git.cwd / git.text("rev-parse", "--git-path", "index").rstrip("\n")
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        index = Path(folder).resolve() / "index"  # before Python 3.12, with TMPDIR=. it is a name alone
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
    nobody = replace(git, environ={**git.environ, **NOBODY})
    return nobody.text("commit-tree", "-p", "HEAD", "-m", "The work tree, as measured by cg-bench", tree).strip()


def _process(pid: int) -> str:
    """Return what identifies this process among all others: the machine, its running system, its process ids, one of them, and its start."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
        state, *fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        started = "gone" if state == "Z" else fields[18]  # killed, and nobody has asked how it ended
        return f"{os.uname().nodename} {boot} {os.stat('/proc/self/ns/pid').st_ino} {pid} {started}"
    except (OSError, IndexError):
        return f"unknown unknown unknown {pid} gone"


def _is_left_over(reason: str, *, is_ours: bool) -> bool:
    """Return whether nobody is at work in a worktree that is locked so; `is_ours`: on this machine nobody can be."""
    if not reason.startswith("cg-bench "):  # half made, or of whom is not known
        return is_ours
    host, boot, ids, pid, _started = reason.split()[1:]
    own_host, own_boot, own_ids, *_ = _process(os.getpid()).split()
    if (boot, ids) == (own_boot, own_ids):
        return is_ours or f"cg-bench {_process(int(pid))}" != reason
    return host == own_host and (is_ours or boot != own_boot)  # what another machine has made is its own


def _remove(git: Git, path: Path) -> None:
    """Remove a worktree, whatever is in it, and git's entry of it, but of no other.

    Something that its set-up has started may still write there: what was measured is not lost for that. A line says so, and the
    folder is moved out of the way of the next worktree.
    """
    why = "something writes there"
    with git.waiting.apart().watched(f"the removal of {path}"):
        for _ in range(_ATTEMPTS):
            try:
                remove(str(path))
            except FileNotFoundError:
                break
            except OSError as error:
                why = error.strerror or why
                time.sleep(_PAUSE_S)
            else:
                break
    with suppress(MeasurementError):  # `git gc` does the same after a while
        git.text("worktree", "remove", "--force", "--force", str(path), timeout=_TIMEOUT_S)
    if os.path.lexists(path):
        LOG.info(f"cannot remove the worktree {path}: {why}")
        with suppress(OSError):
            path.rename(path.with_name(f"{path.name}.left.{secrets.token_hex(4)}"))
