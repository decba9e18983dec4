"""Examines this machine: can it measure, how well does the seal hold here, and what mends what is missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cachegrind_bench import process
from cachegrind_bench.errors import CgBenchError
from cachegrind_bench.hermetic import environment
from cachegrind_bench.hermetic.scratch import Scratch, scratch
from cachegrind_bench.measure.checks import Check, Diagnosis, Level, install_lines
from cachegrind_bench.measure.host import UNCONFINED, container_kind, git_checks, host_checks, is_root, yama_scope
from cachegrind_bench.measure.probe import probe
from cachegrind_bench.measure.seal import PARTS
from cachegrind_bench.measure.session import SCRATCH_BASE, default_cpu
from cachegrind_bench.valgrind.options import Geometry, Tool
from cachegrind_bench.valgrind.runner import Target, ValgrindRunner
from cachegrind_bench.valgrind.tool import Valgrind, find

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEBUG = Path("/usr/lib/debug")
_CHASE = "guest_chase"
_TIMEOUT_MS = 60_000


def examine(environ: Mapping[str, str], cwd: Path, *, valgrind: str | None) -> Diagnosis:
    """Look at everything; nothing that is missing stops the rest from being looked at."""
    path = environ.get("PATH", os.defpath)
    found, tool_checks = _find(valgrind, environ, path)
    works = False
    seal: list[Check] = []
    try:
        with scratch(SCRATCH_BASE) as directory:
            seal.append(Check(name="scratch directory", found=f"{directory.path} can be used"))
            seal += _seal(directory, environ, found)
            if found is not None:
                measuring = _measuring(directory, environ, found, path)
                works = measuring.level is not Level.BAD
                seal.append(measuring)
    except CgBenchError as error:
        seal.append(_bad("scratch directory", error, "a directory in /tmp that belongs to you"))
    return Diagnosis(
        sections=(
            ("Valgrind", tuple(tool_checks)),
            ("the seal", tuple(seal)),
            ("machine", host_checks()),
            ("git", git_checks(environ, cwd)),
        ),
        works=works,
    )


def _find(valgrind: str | None, environ: Mapping[str, str], path: str) -> tuple[Valgrind | None, list[Check]]:
    try:
        found = find(valgrind, environ)
    except CgBenchError as error:
        install = install_lines(["valgrind"], path, root=is_root())
        fixes = (
            install if error.message.startswith("Valgrind was not found") else tuple((error.hint or "").splitlines())
        )
        return None, [Check(name="Valgrind", level=Level.BAD, found=error.message, fixes=fixes or install)]
    return found, [
        Check(name="Valgrind", found=f"{found.version} at {found.launcher}{_wrapper(valgrind, found, path)}"),
        _tools(found),
        _libc(environ, path),
    ]


def _wrapper(valgrind: str | None, found: Valgrind, path: str) -> str:
    named = process.which(valgrind or "valgrind", path)
    if named is None or os.path.realpath(named) == found.launcher:
        return ""
    return f" (the real one behind the wrapper {named})"


def _tools(found: Valgrind) -> Check:
    if Path(found.libexec, found.image(Tool.CALLGRIND.value)).is_file():
        return Check(name="its tools", found=f"Cachegrind and Callgrind in {found.libexec}")
    return Check(
        name="its tools",
        level=Level.WARNING,
        found=f"Callgrind is not in {found.libexec}: programs that start processes cannot be measured exactly",
        fixes=("install the whole of Valgrind",),
    )


def _libc(environ: Mapping[str, str], path: str) -> Check:
    """Look for the debug information of libc, by its build-id, where Valgrind would."""
    from cachegrind_bench.hermetic.fingerprint import fingerprint  # here: pyelftools is slow to import

    name = "libc's debug information"
    program = process.which("true", path)
    libc = None if program is None else fingerprint(program).libc
    if libc is None:
        return Check(name=name, level=Level.WARNING, found="no dynamic libc was found")
    places = (
        _DEBUG / ".build-id" / libc.build_id[:2] / f"{libc.build_id[2:]}.debug",
        _DEBUG / libc.path.lstrip("/"),
        _DEBUG / f"{libc.path.lstrip('/')}.debug",
    )
    for place in places:
        if place.is_file():
            return Check(name=name, found=str(place))
    return Check(
        name=name,
        level=Level.WARNING,
        found=f"none for {libc.path}: costs inside libc are reported under coarser names",
        fixes=install_lines(["libc", "musl"], environ.get("PATH", os.defpath), root=is_root())
        or ("install the debug symbols of your libc",),
    )


def _seal(directory: Scratch, environ: Mapping[str, str], found: Valgrind | None) -> list[Check]:
    """Try each part of the seal on a small native program."""
    try:
        reasons = probe(directory, environ, default_cpu(directory.slot))
    except CgBenchError as error:
        return [_bad("sealed start", error, "a small Python program could not be started under the seal")]
    if found is not None and not found.guest_chase_off:
        reasons[_CHASE] = "this Valgrind does not know --vex-guest-chase=no"
    parts = [part for part in PARTS if part != _CHASE or found is not None]
    return [_part(part, reasons.get(part)) for part in parts]


def _part(part: str, reason: str | None) -> Check:
    meaning = "--pin-clock can answer clock readings" if part == "clock" else PARTS[part]
    name = part.replace("_", " ")
    if reason is None:
        return Check(name=name, found=meaning)
    return Check(name=name, level=Level.WARNING, found=f"not in effect: {meaning} ({reason})", fixes=_fixes(part))


def _fixes(part: str) -> tuple[str, ...]:
    """Return what usually stands in the way of this part, and how to move it."""
    scope = yama_scope()
    if part in ("randomness", "random_devices", "files", "clock") and scope is not None and scope >= 2:
        return ("sudo sysctl -w kernel.yama.ptrace_scope=1",)
    if part in ("aslr", "randomness", "random_devices", "files", "clock"):
        elsewhere = (
            ()
            if container_kind()
            else ("see whether a service manager or sandbox forbids it (systemd: SystemCallFilter=)",)
        )
        return (*UNCONFINED, *elsewhere)
    return {
        "scheduling": (
            "sudo prlimit --pid $$ --rtprio=2:2, in the shell that then starts cg-bench (Docker: --ulimit rtprio=2)",
            'for every login: echo "$USER - rtprio 2" | sudo tee /etc/security/limits.d/cg-bench.conf',
        ),
        "cpu": ("let the process choose its CPU: no sched_setaffinity filter in the container's profile",),
        "limits": ("raise the hard limits: ulimit -Hs 8192; ulimit -Hn 1024 (Docker: --ulimit stack=8388608)",),
        _CHASE: ("install a newer Valgrind",),
        "place": _place_fixes(),
    }.get(part, ())


def _place_fixes() -> tuple[str, ...]:
    if container_kind():
        return (
            "allow mount namespaces: --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined",
        )
    return (
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0  # Ubuntu",
        "sudo sysctl -w kernel.unprivileged_userns_clone=1  # Debian before 11",
        "or measure always in the same directory",
    )


def _measuring(directory: Scratch, environ: Mapping[str, str], found: Valgrind, path: str) -> Check:
    """Measure a tiny program twice: the proof of everything above."""
    program = process.which("true", path) or "/bin/true"
    target = Target(
        argv=(program,),
        executable=program,
        variables=environment.compose(environ, environment.Request(values={}), {}),
        cwd="/",
        cpu=default_cpu(directory.slot),
        timeout_ms=_TIMEOUT_MS,
    )
    runner = ValgrindRunner(valgrind=found, geometry=Geometry(), scratch=directory, echo=lambda _chunk: None)
    try:
        first, second = (runner.measure(target, Tool.CACHEGRIND).accounts.profile for _ in range(2))
    except CgBenchError as error:
        return _bad("measuring", error, f"{program} could not be measured")
    if first == second:
        return Check(name="measuring", found=f"{program} twice: {first.counts().Ir:,} Ir, every count identical")
    low, high = sorted((first.counts().Ir, second.counts().Ir))
    return Check(
        name="measuring",
        level=Level.WARNING,
        found=f"{program} twice: {low:,} and {high:,} Ir, which should be identical",
        fixes=(f"cg-bench verify -- {program}",),
    )


def _bad(name: str, error: CgBenchError, what: str) -> Check:
    fixes = tuple((error.hint or "").splitlines())
    return Check(name=name, level=Level.BAD, found=f"{what}: {error.message}", fixes=fixes)
