"""From the words a user typed to the program that will really run: PATH, `#!` lines, version managers' shims.

A shim is a shell script that costs 140 million instructions before the program starts; a kernel's `#!` line is
followed here so that the argument list on the program's stack is known.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from cachegrind_bench import process
from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import printable

_HEAD_BYTES = 4096
_DEEPEST_SCRIPT = 4  # as the kernel: a script's interpreter may be a script itself, but not for ever
# pyenv, rbenv, nodenv and the like: exec ".../libexec/pyenv" exec "$program" "$@"; asdf: exec /opt/asdf/bin/asdf exec "node" "$@"
_SHIM = re.compile(
    rb"^\s*exec\s+[\"']?([^\s\"']*(?:pyenv|rbenv|nodenv|goenv|jenv|plenv|phpenv|asdf))[\"']?\s+exec\b", re.MULTILINE
)
_OF_SHELLS = re.compile(r"[|&;<>$`*?]")  # signs that a shell would not hand on
_PYTHON = re.compile(r"(python|pypy)[\d.]*")
# Options of Python that are followed by a value of their own; after -c and -m the program's arguments begin.
_PYTHON_VALUE_OPTIONS = "WX"


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A command ready to be executed. `argv[0]` and `executable` are the absolute path of an ELF file where possible.

    `typed` is what the user wrote; `notes` are remarks for the report.
    """

    typed: tuple[str, ...]
    argv: tuple[str, ...]
    executable: str
    script: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The command as one would type it in a shell."""
        return shlex.join(self.typed)


def resolve(typed: Sequence[str], environ: Mapping[str, str], cwd: Path) -> Command:
    """Find the program of this command. UsageError if there is none or it cannot be executed."""
    if not typed or not typed[0]:
        raise UsageError("no command was given", hint="as in: cg-bench run -- python benchmark.py")
    if any("\0" in word for word in typed):
        raise UsageError("an argument holds a NUL byte, which no program can be given")
    # Where it is to be executed, which need not be our own working directory.
    path = os.pathsep.join(str(cwd / folder) for folder in environ.get("PATH", os.defpath).split(os.pathsep))
    program = _locate(typed[0], path, cwd)
    command = Command(typed=tuple(typed), argv=(program, *typed[1:]), executable=program)
    command = _behind_shim(command, environ, cwd)
    for _ in range(_DEEPEST_SCRIPT):
        step = _behind_script(command, path)
        if step is None:
            break
        command = _behind_shim(step, environ, cwd)  # `#!/usr/bin/env python3` finds the shim as well
    head = _head(command.executable)
    # As the kernel would refuse it: a shell runs a script without `#!` line by itself, nothing else does.
    if head and not head.startswith((b"\x7fELF", b"#!")):
        raise UsageError(
            f"cannot execute {command.executable}: neither a program nor a script with a #! line",
            hint=f"name its interpreter: sh {shlex.quote(command.executable)}",
        )
    notes = list(command.notes)
    if head.startswith(b"#!"):
        notes.append(f"{command.executable} is a script whose interpreter could not be determined")
    option = option_ignoring_seed(command)
    if option:
        notes.append(
            f"Python with {option} ignores PYTHONHASHSEED: where random bytes cannot be pinned, its hashes and with them "
            "the counts vary by about 0.1 %"
        )
    return replace(command, notes=tuple(notes))


def default_id(typed: Sequence[str], cwd: Path) -> str:
    """Return the command with its program as base name and paths under `cwd` made relative: the same in every checkout."""
    words = [os.path.basename(typed[0])]
    if str(cwd) == os.sep:
        words += typed[1:]
    else:
        # At the start of a word or of a part of it (--file=/here/x, -I/here/x, a:/here/x), never within another path.
        here = re.compile(r"(^(?:-\w)?|[=:,;\s\"'(])" + re.escape(str(cwd)) + r"(?:(/)(?!$)|/?(?=$|[:,;\s\"')]))")
        words += (here.sub(lambda match: match[1] + ("" if match[2] else "."), word) for word in typed[1:])
    return printable(shlex.join(words))


def _locate(name: str, path: str, cwd: Path) -> str:
    if os.sep in name:
        full = os.path.join(cwd, name)
        if not os.path.exists(full):
            hint = (
                _unquoted(name, path, cwd) or "there is no such file; a relative path starts at the working directory"
            )
            raise UsageError(f"command not found: {name}", hint=hint)
        if os.path.isdir(full):
            raise UsageError(f"cannot execute {name}: it is a directory")
        if not os.access(full, os.X_OK):
            raise UsageError(
                f"cannot execute {name}: permission denied",
                hint=f"chmod +x {shlex.quote(name)}, or name its interpreter",
            )
        plain = os.path.normpath(full)
        # `link/../program` is next to what the link points to, not next to the link.
        return plain if os.path.exists(plain) and os.path.samefile(plain, full) else full
    found = process.which(name, path)
    if found is None:
        hint = f"to run the file here: ./{name}" if os.path.isfile(cwd / name) else f"PATH is {path}"
        raise UsageError(f"command not found: {name}", hint=_unquoted(name, path, cwd) or hint)
    return os.path.join(cwd, found)


def _unquoted(name: str, path: str, cwd: Path) -> str | None:
    """Return what helps if this is a whole command line that was given as one word."""
    program, _, rest = name.strip().partition(" ")
    if not rest or not (os.path.exists(cwd / program) if os.sep in program else process.which(program, path)):
        return None
    if _OF_SHELLS.search(rest):
        return f"it is one word, with spaces in it; for a shell to read it: sh -c {shlex.quote(name)}"
    return f"it is one word, with spaces in it; without the quotes, it is a program and its arguments: {name.strip()}"


def _head(path: str) -> bytes:
    """Return how a program begins, empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


def _behind_shim(command: Command, environ: Mapping[str, str], cwd: Path) -> Command:
    """Ask the version manager whose shim this is for the program behind it, which a file in this folder may choose."""
    head = _head(command.executable)
    match = _SHIM.search(head) if head.startswith(b"#!") else None
    if match is None:
        return command
    manager, name = os.fsdecode(match[1]), os.path.basename(command.executable)
    try:
        answer = process.run([manager, "which", name], env=environ, cwd=cwd, timeout=20)
    except (process.ProgramNotFound, process.NotExecutable):
        return command
    real = os.fsdecode(answer.stdout.strip())
    if answer.status != 0 or not os.path.isabs(real) or not os.access(real, os.X_OK):
        return command
    note = f"{command.executable} is a shim of {os.path.basename(manager)}: measured {real} itself"
    return replace(command, argv=(real, *command.argv[1:]), executable=real, notes=(*command.notes, note))


def _behind_script(command: Command, path: str) -> Command | None:
    """Follow one `#!` line as the kernel would, and `env` as it would; None if this is not a script."""
    first = _head(command.executable)[:256].split(b"\n")[0]
    if not first.startswith(b"#!"):
        return None
    words = os.fsdecode(first[2:]).strip().split(None, 1)
    if not words:
        return None
    interpreter, arguments = words[0], words[1:]
    if os.path.basename(interpreter) == "env" and arguments:
        looked_up = _through_env(arguments[0], path)
        if looked_up is None:
            return None
        interpreter, *arguments = looked_up
    if not os.access(interpreter, os.X_OK):
        raise UsageError(f"cannot execute {command.executable}: its interpreter {interpreter} is missing")
    return replace(
        command,
        argv=(interpreter, *arguments, command.executable, *command.argv[1:]),
        executable=interpreter,
        script=command.script or command.executable,
    )


def _through_env(argument: str, path: str) -> list[str] | None:
    """Return what `env NAME` or `env -S NAME ARGS` would execute; None where that is not certain."""
    words = [argument]
    if argument.startswith("-S"):
        try:
            words = shlex.split(argument[2:])
        except ValueError:
            return None
    if not words or words[0].startswith("-") or "=" in words[0] or "$" in argument:
        return None
    found = process.which(words[0], path)
    return None if found is None else [os.path.abspath(found), *words[1:]]


def option_ignoring_seed(command: Command) -> str | None:
    """Return the option, -I or -E, by which a Python ignores its environment, so that its hash seed is a random one."""
    if not _PYTHON.fullmatch(os.path.basename(command.executable)):
        return None
    skip = False
    for argument in command.argv[1:]:
        if skip:
            skip = False
            continue
        if argument == "-" or not argument.startswith("-") or argument.startswith("--"):
            return None
        for place, letter in enumerate(argument[1:], 2):
            if letter in "IE":
                return f"-{letter}"
            if letter in "cm":
                return None
            if letter in _PYTHON_VALUE_OPTIONS:
                skip = place == len(argument)
                break
    return None
