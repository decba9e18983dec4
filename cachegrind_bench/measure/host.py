"""The doctor's look at the machine without Valgrind: Python, kernel, container, CPUs, git."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cachegrind_bench import process
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.hermetic.kernel import architecture
from cachegrind_bench.measure.checks import Check, Level, install_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

# seccomp's user notification; the answer that hands out a file (for the random devices).
_NOTIFICATION, _ADD_FD = (5, 0), (5, 9)
_GIT_S = 10
UNCONFINED = (
    "Docker, Podman: add --security-opt seccomp=unconfined to 'docker run' (or allow personality and seccomp in its profile)",
    "Kubernetes: securityContext: {seccompProfile: {type: Unconfined}}",
)


def host_checks(root: Path = Path("/")) -> tuple[Check, ...]:
    """Examine Python, kernel, container and CPUs; files of the system are read below `root`."""
    found = [_python(), _machine(), _kernel(os.uname().release), _cpus()]
    container = container_kind(root)
    if container:
        found.append(Check(name="container", found=f"{container}; the list above shows what it forbids"))
    scope = yama_scope(root)
    if scope is not None and scope >= 2:
        found.append(_yama(scope))
    return tuple(found)


def container_kind(root: Path = Path("/")) -> str | None:
    """Return which kind of container this is, as far as it can be told."""
    for mark, name in ((".dockerenv", "Docker"), ("run/.containerenv", "Podman")):
        if (root / mark).exists():
            return name
    try:
        text = (root / "proc/1/cgroup").read_text(errors="replace")
    except OSError:
        return None
    match = re.search(r"kubepods|docker|containerd|lxc|libpod", text)
    return match[0] if match else None


def yama_scope(root: Path = Path("/")) -> int | None:
    """Return how far Yama restricts reading another process's memory; None without Yama."""
    try:
        return int((root / "proc/sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        return None


def git_checks(environ: Mapping[str, str], cwd: Path) -> tuple[Check, ...]:
    """Examine git, and the repository we are in."""
    path = environ.get("PATH", os.defpath)
    git = process.which("git", path)
    if git is None:
        install = tuple(line.replace("valgrind", "git") for line in install_lines(["valgrind"], path, root=is_root()))
        return (Check(name="git", level=Level.WARNING, found="not found: results carry no commit", fixes=install),)
    try:
        version = process.run([git, "--version"], env=environ, timeout=_GIT_S)
        place = process.run([git, "rev-parse", "--show-toplevel"], env=environ, cwd=cwd, timeout=_GIT_S)
    except MeasurementError as error:
        return (Check(name="git", level=Level.WARNING, found=f"does not run: {error.message}"),)
    words = version.stdout.decode("utf-8", "backslashreplace").strip()
    return Check(name="git", found=f"{words.removeprefix('git version ')} at {git}"), _repository(place, cwd)


def is_root() -> bool:
    """Tell whether we may install packages ourselves."""
    return os.geteuid() == 0


def _repository(place: process.Completed, cwd: Path) -> Check:
    if place.status == 0:
        return Check(name="repository", found=place.stdout.decode("utf-8", "backslashreplace").strip())
    complaint = place.stderr.decode("utf-8", "backslashreplace")
    if "dubious ownership" in complaint:
        return Check(
            name="repository",
            level=Level.WARNING,
            found="git refuses it, as it belongs to another user: results carry no commit",
            fixes=(f"git config --global --add safe.directory '{cwd}'",),
        )
    return Check(name="repository", found="none here: results carry no commit")


def _python() -> Check:
    version = sys.version.split()[0]
    return Check(name="Python", found=f"{version} at {sys.executable}")


def _machine() -> Check:
    machine = os.uname().machine
    if architecture() is not None:
        return Check(name="architecture", found=machine)
    return Check(
        name="architecture",
        level=Level.WARNING,
        found=f"{machine}: without a table of system calls, so random bytes cannot be pinned",
        fixes=("measure on x86_64 or aarch64",),
    )


def _kernel(release: str) -> Check:
    match = re.match(r"(\d+)\.(\d+)", release)
    version = (int(match[1]), int(match[2])) if match else _ADD_FD
    if version >= _ADD_FD:
        return Check(name="kernel", found=f"Linux {release}")
    lacks = "pin random bytes" if version < _NOTIFICATION else "pin the random devices"
    return Check(
        name="kernel",
        level=Level.WARNING,
        found=f"Linux {release}, too old to {lacks}",
        fixes=(f"Linux {_ADD_FD[0]}.{_ADD_FD[1]} or newer",),
    )


def _cpus() -> Check:
    allowed = sorted(os.sched_getaffinity(0))
    return Check(
        name="CPUs",
        found=f"{len(allowed)} may be used; programs run on number {allowed[-1]}, and on others at the same time",
    )


def _yama(scope: int) -> Check:
    return Check(
        name="Yama",
        level=Level.OK if is_root() and scope == 2 else Level.WARNING,
        found=f"ptrace_scope {scope}: "
        + ("root may still" if is_root() and scope == 2 else "nobody but root may")
        + " read the memory of its children",
        # Scope 3 cannot be left before the next start of the machine.
        fixes=("sysctl -w kernel.yama.ptrace_scope=1" if scope == 2 else "boot with kernel.yama.ptrace_scope=1",),
    )
