"""Examines this machine: can it measure, how well does the seal hold here, and what fixes what is missing."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import replace

from cachegrind_bench import process
from cachegrind_bench.errors import CgBenchError, MeasurementError
from cachegrind_bench.hermetic import environment
from cachegrind_bench.hermetic.execution import Execution
from cachegrind_bench.hermetic.kernel import architecture
from cachegrind_bench.hermetic.machine import container_kind, number_in
from cachegrind_bench.hermetic.scratch import Scratch, scratch
from cachegrind_bench.measure.probe import probe
from cachegrind_bench.measure.seal import PARTS
from cachegrind_bench.measure.session import SCRATCH_BASE, default_cpu
from cachegrind_bench.model.described import doc
from cachegrind_bench.valgrind.options import WHOLE, Geometry, Tool
from cachegrind_bench.valgrind.runner import ValgrindRunner
from cachegrind_bench.valgrind.tool import INSTALL, Valgrind, find, package_manager
from cachegrind_bench.waiting import Waiting


class Level(StrEnum):
    """How bad it is: nothing to do, a loss of exactness or comfort, or no measuring at all."""

    OK = "ok"
    WARNING = "warning"
    BAD = "bad"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    section: Annotated[str, doc("heading that it is under")]
    name: Annotated[str, doc("what was looked at")]
    level: Annotated[Level, doc("whether it is in order")]
    found: Annotated[str, doc("what was found")]
    fixes: Annotated[tuple[str, ...], doc("commands or hints that fix it")]


def checked(level: Level, name: str, found: str, *fixes: str) -> Check:
    """Return a check that is under no heading yet."""
    return Check(section="", name=name, level=level, found=found, fixes=fixes)


_fine, _warning = partial(checked, Level.OK), partial(checked, Level.WARNING)


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """All checks, those under one heading together. `works` if a program could be measured."""

    checks: tuple[Check, ...]
    works: bool


def install_lines(packages: Sequence[str], path: str, *, root: bool) -> tuple[str, ...]:
    """Return the lines that install those of our packages whose name contains one of these words.

    None if `path` has no package manager that we know, or it has them in no package.
    """
    manager = package_manager(path)
    program, action, *names = INSTALL[manager].split() if manager else ("", "")
    wanted = [name for name in names if any(word in name for word in packages)]
    return (" ".join((*([] if root else ["sudo"]), program, action, *wanted)),) if wanted else ()


_DEBUG = Path("/usr/lib/debug")
_CHASE = "guest_chase"
_TIMEOUT_MS = 60_000


def examine(
    environ: Mapping[str, str], cwd: Path, *, valgrind: str | None, waiting: Waiting | None = None
) -> Diagnosis:
    """Look at everything; nothing that is missing stops the rest from being looked at."""
    path = environ.get("PATH", os.defpath)
    found, tool_checks = _find(valgrind, environ, path)
    works = False
    seal: list[Check] = []
    try:
        with scratch(SCRATCH_BASE) as directory:
            seal.append(_fine("scratch directory", f"{directory.path} can be used"))
            seal += _seal(directory, environ, found)
            if found is not None:
                measuring = _measuring(directory, environ, found, path)
                works = measuring.level is not Level.BAD
                seal.append(measuring)
    except CgBenchError as error:
        seal.append(_bad("scratch directory", error, "a directory in /tmp that belongs to you"))
    sections = {
        "Valgrind": tool_checks,
        "the seal": seal,
        "machine": host_checks(),
        "git": git_checks(environ, cwd, waiting),
    }
    checks = (replace(check, section=title) for title, found in sections.items() for check in found)
    return Diagnosis(checks=tuple(checks), works=works)


def _find(valgrind: str | None, environ: Mapping[str, str], path: str) -> tuple[Valgrind | None, list[Check]]:
    try:
        found = find(valgrind, environ)
    except CgBenchError as error:
        install = install_lines(["valgrind"], path, root=is_root())
        fixes = (
            install if error.message.startswith("Valgrind was not found") else tuple((error.hint or "").splitlines())
        )
        fixes = fixes or tuple((error.hint or "").splitlines())
        return None, [checked(Level.BAD, "Valgrind", error.message, *fixes)]
    named = process.which(valgrind or "valgrind", path)
    wraps = named is not None and os.path.realpath(named) != found.launcher
    wrapper = f" (the real one behind the wrapper {named})" if wraps else ""
    return found, [
        _fine("Valgrind", f"{found.version} at {found.launcher}{wrapper}"),
        _tools(found),
        _libc(environ, path),
    ]


def _tools(found: Valgrind) -> Check:
    if os.path.isfile(Path(found.libexec, found.image(Tool.CALLGRIND.value))):
        return _fine("its tools", f"Cachegrind and Callgrind in {found.libexec}")
    return _warning(
        "its tools",
        f"Callgrind is not in {found.libexec}: programs that start processes cannot be measured exactly",
        "install the whole of Valgrind",
    )


def _libc(environ: Mapping[str, str], path: str) -> Check:
    """Look for the debug information of libc, by its build-id, where Valgrind would."""
    from cachegrind_bench.hermetic.fingerprint import fingerprint  # here: pyelftools is slow to import

    name = "libc's debug information"
    program = process.which("true", path)
    libc = None if program is None else fingerprint(program).libc
    if libc is None:
        return _warning(name, "no dynamic libc was found")
    places = (
        _DEBUG / ".build-id" / libc.build_id[:2] / f"{libc.build_id[2:]}.debug",
        _DEBUG / libc.path.lstrip("/"),
        _DEBUG / f"{libc.path.lstrip('/')}.debug",
    )
    for place in places:
        if os.path.isfile(place):
            return _fine(name, str(place))
    return _warning(
        name,
        f"none for {libc.path}: costs inside libc are reported under coarser names",
        *(
            install_lines(["libc", "musl"], environ.get("PATH", os.defpath), root=is_root())
            or ("install the debug symbols of your libc",)
        ),
    )


def _seal(directory: Scratch, environ: Mapping[str, str], found: Valgrind | None) -> list[Check]:
    """Try each part of the seal on a small native program."""
    try:
        reasons = probe(directory, environ, default_cpu(directory.slot))
    except CgBenchError as error:
        return [_bad("sealed start", error, "a small Python program could not be started under the seal")]
    if found is not None and not found.guest_chase_off:
        reasons[_CHASE] = "this Valgrind does not know --vex-guest-chase=no"
    checks: list[Check] = []
    for part, meaning in {**PARTS, "clock": "--pin-clock can answer clock readings"}.items():
        name, reason = part.replace("_", " "), reasons.get(part)
        if reason is not None:
            checks.append(_warning(name, f"not in effect: {meaning} ({reason})", *_fixes(part)))
        elif part != _CHASE or found is not None:
            checks.append(_fine(name, meaning))
    return checks


def _fixes(part: str) -> tuple[str, ...]:
    scope = yama_scope()
    if part in ("randomness", "random_devices", "files", "clock") and scope is not None and scope >= 2:
        return ("sudo sysctl -w kernel.yama.ptrace_scope=1",)
    if part in ("aslr", "randomness", "random_devices", "files", "clock"):
        elsewhere = "check whether a service manager or sandbox forbids it (systemd: SystemCallFilter=)"
        return UNCONFINED if container_kind({}) else (*UNCONFINED, elsewhere)
    return {
        "scheduling": (
            "sudo prlimit --pid $$ --rtprio=2:2, in the shell that then starts cg-bench (Docker: --ulimit rtprio=2)",
            'for every login: echo "$USER - rtprio 2" | sudo tee /etc/security/limits.d/cg-bench.conf',
        ),
        "cpu": ("let the process choose its CPU: no sched_setaffinity filter in the container's profile",),
        "limits": ("raise the hard limits: ulimit -Hs 8192; ulimit -Hn 1024 (Docker: --ulimit stack=8388608)",),
        _CHASE: ("install a newer Valgrind",),
        "place": (
            "allow mount namespaces: --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined",
        )
        if container_kind({})
        else (
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0  # Ubuntu",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1  # Debian before 11",
            "or measure always in the same directory",
        ),
    }.get(part, ())


def _measuring(directory: Scratch, environ: Mapping[str, str], found: Valgrind, path: str) -> Check:
    """Measure a tiny program twice: the proof of everything above."""
    program = process.which("true", path) or "/bin/true"
    execution = Execution(
        argv=(program,),
        executable=program,
        variables=environment.compose(environ, environment.Request(values={}), {}),
        cwd="/",
        cpu=default_cpu(directory.slot),
        timeout_ms=_TIMEOUT_MS,
    )
    runner = ValgrindRunner(valgrind=found, geometry=Geometry(), scratch=directory, echo=lambda _chunk: None)
    try:
        first, second = (runner.measure(execution, WHOLE, Tool.CACHEGRIND).accounts.profile for _ in range(2))
    except CgBenchError as error:
        return _bad("measuring", error, f"{program} could not be measured")
    if first == second:
        return _fine("measuring", f"{program} twice: {first.counts().Ir:,} Ir, every count identical")
    low, high = sorted((first.counts().Ir, second.counts().Ir))
    return _warning(
        "measuring",
        f"{program} twice: {low:,} and {high:,} Ir, which should be identical",
        f"cg-bench verify -- {program}",
    )


def _bad(name: str, error: CgBenchError, what: str) -> Check:
    return checked(Level.BAD, name, f"{what}: {error.message}", *(error.hint or "").splitlines())


# seccomp's user notification; the answer that hands out a file (for the random devices).
_NOTIFICATION, _ADD_FD = (5, 0), (5, 9)
_GIT_S = 10
UNCONFINED = (
    "Docker, Podman: add --security-opt seccomp=unconfined to 'docker run' (or allow personality and seccomp in its profile)",
    "Kubernetes: securityContext: {seccompProfile: {type: Unconfined}}",
)


def host_checks(root: Path = Path("/")) -> tuple[Check, ...]:
    """Examine Python, kernel, container and CPUs; files of the system are read below `root`."""
    cpus = sorted(os.sched_getaffinity(0))
    found = [
        _fine("Python", f"{sys.version.split()[0]} at {sys.executable}"),
        _machine(),
        _kernel(os.uname().release),
        _fine("CPUs", f"{len(cpus)} may be used; programs run on number {cpus[-1]}, and on others at the same time"),
    ]
    container = container_kind({}, root)
    if container:
        found.append(_fine("container", f"{container}; the list above shows what it forbids"))
    scope = yama_scope(root)
    if scope is not None and scope >= 2:
        may = is_root() and scope == 2
        who = "root may still" if may else "only root may"
        # Scope 3 cannot be left before the next start of the machine.
        fix = "sysctl -w kernel.yama.ptrace_scope=1" if scope == 2 else "boot with kernel.yama.ptrace_scope=1"
        level = Level.OK if may else Level.WARNING
        reading = f"ptrace_scope {scope}: {who} read the memory of its children"
        found.append(checked(level, "Yama", reading, fix))
    return tuple(found)


def yama_scope(root: Path = Path("/")) -> int | None:
    """Return how far Yama restricts reading another process's memory; None without Yama."""
    return number_in(root / "proc/sys/kernel/yama/ptrace_scope")


def git_checks(environ: Mapping[str, str], cwd: Path, waiting: Waiting | None = None) -> tuple[Check, ...]:
    """Examine git, and the repository we are in."""
    path = environ.get("PATH", os.defpath)
    git = process.which("git", path)
    if git is None:
        install = tuple(line.replace("valgrind", "git") for line in install_lines(["valgrind"], path, root=is_root()))
        return (_warning("git", "not found: results carry no commit", *install),)
    try:
        look = partial((waiting or Waiting()).look, "git")
        version = process.run([git, "--version"], env=environ, timeout=_GIT_S, waiting=look)
        place = process.run([git, "rev-parse", "--show-toplevel"], env=environ, cwd=cwd, timeout=_GIT_S, waiting=look)
    except MeasurementError as error:
        return (_warning("git", f"does not run: {error.message}"),)
    words = version.stdout.decode("utf-8", "backslashreplace").strip()
    return _fine("git", f"{words.removeprefix('git version ')} at {git}"), _repository(place, cwd)


def is_root() -> bool:
    """Return whether we may install packages ourselves."""
    return os.geteuid() == 0


def _repository(place: process.Completed, cwd: Path) -> Check:
    if place.status == 0:
        return _fine("repository", place.stdout.decode("utf-8", "backslashreplace").strip())
    if place.timed_out:
        return _warning("repository", f"git has not answered for {_GIT_S} s: results carry no commit")
    complaint = place.stderr.decode("utf-8", "backslashreplace")
    if "dubious ownership" in complaint:
        return _warning(
            "repository",
            "git refuses it, as it belongs to another user: results carry no commit",
            f"git config --global --add safe.directory '{cwd}'",
        )
    return _fine("repository", "none here: results carry no commit")


def _machine() -> Check:
    machine = os.uname().machine
    if architecture() is not None:
        return _fine("architecture", machine)
    return _warning(
        "architecture",
        f"{machine}: without a table of system calls, so random bytes cannot be pinned",
        "measure on x86_64 or aarch64",
    )


def _kernel(release: str) -> Check:
    match = re.match(r"(\d+)\.(\d+)", release)
    version = (int(match[1]), int(match[2])) if match else _ADD_FD
    if version >= _ADD_FD:
        return _fine("kernel", f"Linux {release}")
    lacks = "pin random bytes" if version < _NOTIFICATION else "pin the random devices"
    return _warning("kernel", f"Linux {release}, too old to {lacks}", f"Linux {_ADD_FD[0]}.{_ADD_FD[1]} or newer")
