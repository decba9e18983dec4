"""Finds Valgrind: the real launcher behind a wrapper, its libraries, its version and what it can do."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from cachegrind_bench import process
from cachegrind_bench.errors import NoValgrindError

OLDEST = (3, 16)
INSTALL = {
    "apt-get": "apt-get install valgrind libc6-dbg",
    "dnf": "dnf install valgrind glibc-debuginfo",
    "pacman": "pacman -S valgrind",
    "apk": "apk add valgrind musl-dbg",
    "zypper": "zypper install valgrind glibc-debuginfo",
}
_PLATFORMS = {"x86_64": "amd64-linux", "aarch64": "arm64-linux"}
# Where distributions keep the tools, below the prefix of the launcher.
_LIBRARY_FOLDERS = (
    "libexec/valgrind",
    "lib/valgrind",
    "lib64/valgrind",
    "lib/x86_64-linux-gnu/valgrind",
    "lib/aarch64-linux-gnu/valgrind",
)
_EXECUTED = re.compile(rb"\bexec\s+[\"']?(/[^\s\"']+)")
_LIBRARY_SET = re.compile(rb"\bVALGRIND_LIB=[\"']?(/[^\s\"']+)")


class Valgrind(msgspec.Struct, frozen=True, kw_only=True):
    """An installed Valgrind. `launcher` is an ELF file, `libexec` the directory of its tools."""

    launcher: str
    libexec: str
    version: str
    guest_chase_off: bool

    def image(self, tool: str) -> str:
        """Return the file name of a tool's executable image."""
        return f"{tool}-{_platform()}"


def find(explicit: str | None, environ: Mapping[str, str]) -> Valgrind:
    """Find Valgrind at the given path, else on PATH, and ask its version. NoValgrindError with advice if none works."""
    path = environ.get("PATH", os.defpath)
    found = process.which(explicit or "valgrind", path) or (None if explicit else process.which("valgrind.bin", path))
    if found is None:
        where = f"at {explicit!r}" if explicit else "on PATH"
        raise NoValgrindError(f"Valgrind was not found {where}", hint=_install_hint(path))
    wrapper = os.path.realpath(found)
    real = _real_launcher(Path(wrapper))
    launcher, libexec = str(real), str(_libraries(real, Path(wrapper), environ.get("VALGRIND_LIB")))
    version, guest_chase_off = _version(launcher, libexec, path), _accepts(launcher, libexec, "--vex-guest-chase=no")
    return Valgrind(launcher=launcher, libexec=libexec, version=version, guest_chase_off=guest_chase_off)


def _platform() -> str:
    machine = os.uname().machine
    return _PLATFORMS.get(machine, f"{machine}-linux")


def package_manager(path: str) -> str | None:
    """Return the package manager of this system, if it is one that we know; the first one on `path`."""
    return next((program for program in INSTALL if process.which(program, path)), None)


def _install_hint(path: str) -> str:
    manager = package_manager(path)
    how = f"install it: {INSTALL[manager]}" if manager else "install it, with the debug symbols of the C library"
    return f"{how}   (or give its path with --valgrind PATH)"


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(1 << 16)
    except OSError:
        return b""


def _is_elf(path: Path) -> bool:
    return _head(path).startswith(b"\x7fELF")


def _real_launcher(path: Path) -> Path:
    """Return the launcher itself: a wrapper script (Debian's is one) adds variables to the program's environment."""
    if _is_elf(path):
        return path
    sibling = path.with_name(path.name + ".bin")
    if _is_elf(sibling):
        return sibling
    for match in _EXECUTED.finditer(_head(path)):
        candidate = Path(os.fsdecode(match[1]))
        if _is_elf(candidate):
            return candidate
    raise NoValgrindError(
        f"{path} is a wrapper script, and the launcher behind it was not found",
        hint="a wrapper would be measured too; give the real launcher, often named valgrind.bin, with --valgrind PATH",
    )


def _libraries(launcher: Path, wrapper: Path, named: str | None) -> Path:
    for folder in _library_candidates(launcher, wrapper, named):
        if os.path.isfile(folder / f"cachegrind-{_platform()}"):
            return folder
    raise NoValgrindError(
        f"the tools of {launcher} were not found: no directory holds cachegrind-{_platform()}",
        hint="name their directory in the environment variable VALGRIND_LIB",
    )


def _library_candidates(launcher: Path, wrapper: Path, named: str | None) -> Iterator[Path]:
    if named:
        yield Path(named)
    if wrapper != launcher:
        for match in _LIBRARY_SET.finditer(_head(wrapper)):
            yield Path(os.fsdecode(match[1]))
    for folder in _LIBRARY_FOLDERS:
        yield launcher.parent.parent / folder
    try:
        data = launcher.read_bytes()
    except OSError:
        return
    # The directory it was configured with is in the launcher as a string.
    for match in re.finditer(rb"(/[^\0\n]{1,200}/valgrind)\0", data):
        yield Path(os.fsdecode(match[1]))


def _version(launcher: str, libexec: str, path: str) -> str:
    # The tool is named, since the default one (Memcheck) is a package of its own in places.
    done = process.run([launcher, "--tool=cachegrind", "--version"], env={"VALGRIND_LIB": libexec}, timeout=20)
    match = re.match(rb"valgrind-(\d{1,9}(?:\.\d{1,9}){1,9})", done.stdout)
    if match is None:
        text = (done.stderr or done.stdout).decode("utf-8", "backslashreplace").strip()
        raise NoValgrindError(
            f"{launcher} does not work: {text[:300] or f'status {done.status}'}", hint=_install_hint(path)
        )
    version = match[1].decode()
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise NoValgrindError(f"{launcher} is version {version}; 3.16 or newer is needed")
    return version


def _accepts(launcher: str, libexec: str, option: str) -> bool:
    """Return whether this Valgrind knows an option: it names the first unknown one, before it starts anything."""
    probe = "--cg-bench-probe"
    argv = [launcher, "--tool=cachegrind", "--command-line-only=yes", option, probe, "/bin/true"]
    done = process.run(argv, env={"VALGRIND_LIB": libexec}, timeout=20)
    return probe.encode() in done.stderr + done.stdout
