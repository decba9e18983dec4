"""What frameworks of JavaScript have in common: scripts of ours, run by Node with theirs, list and count their benchmarks."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cachegrind_bench.errors import UsageError
from cachegrind_bench.harness.engine.loop import Loop, Sections
from cachegrind_bench.harness.protocol import check_version, listed_once, output_of, text_of
from cachegrind_bench.hermetic.launch import PINNED_CLOCK
from cachegrind_bench.log import LOG
from cachegrind_bench.model.text import printable
from cachegrind_bench.valgrind.code_log import CODE_LOG

if TYPE_CHECKING:
    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Entry

_Kind = TypeVar("_Kind")

SCRIPTS = Path(__file__).with_name("node_scripts")
# The compiler then works on the thread of the program, when a count of executed bytecodes says so, which is a tenth of the usual:
# from Node 24 on a count of calls, sooner than Maglev's. Where Maglev came first, iterations with hooks took twice as much.
_FLAGS = ("--single-threaded", "--predictable")
_COUNTS = (("--interrupt-budget", "13000"), ("--invocation-count-for-turbofan", "300"))
_VERSION = re.compile(r'"version": *"(.*?)"')
_LISTED = re.compile(r'cg-bench: (".*")')
_LEFT_OUT = re.compile(r"cg-bench-left-out: (\[.*\])")
_MANAGERS = ("npm", "pnpm", "yarn", "bun")
# In a first section V8 reads the code that starts and stops the others; among more than a hundred of them it would compile it.
_LOOP = Loop(
    words={number: (f"--cg-bench-iterations={number}",) for number in (1, 10, 100)},
    native=("--cg-bench-iterations=1",),
    sections=Sections(begin=("before:setpriority",), end=("before:getpriority",), skip=1),
    clock=PINNED_CLOCK,
    method="iterations/6",
    log=("--log-code", "--no-log-source-code", f"--logfile={{}}/{CODE_LOG}"),  # the text of scripts would be most of it
)


def node(entry: Entry, environ: Mapping[str, str], cwd: Path) -> tuple[str, ...]:
    """Return Node with those flags of its compiler that this version has."""
    command = ("node", "--v8-options")
    known = output_of(entry, command, environ, "Node does not list its flags", cwd=cwd)
    counts = [f"{flag}={value}" for flag, value in _COUNTS if f" {flag} " in known]
    return ("node", *_FLAGS, *counts[:1])


def printed(text: str, line: re.Pattern[str], kind: type[_Kind]) -> list[_Kind]:
    """Return what our scripts have written in lines of this kind."""
    # Other ends of lines may be in a name.
    return [msgspec.convert(json.loads(match[1]), kind) for match in map(line.fullmatch, text.split("\n")) if match]


def listing(entry: Entry, command: Sequence[str], environ: Mapping[str, str], cwd: Path) -> str:
    """Return what a command writes that lists benchmarks."""
    return output_of(entry, command, environ, f"{entry.harness} could not list its benchmarks", cwd=cwd)


def specs(entry: Entry, command: Sequence[str], text: str, cwd: Path) -> Iterator[BenchmarkSpec]:
    """Yield the benchmarks that this text lists; the command takes what `node_scripts/measure.mjs` does."""
    names: list[str] = []
    for name, why in printed(text, _LEFT_OUT, tuple[str, str]):
        LOG.info(f"{entry.each.place}: {printable(name)} is left out: {printable(why)}")
    for name in printed(text, _LISTED, str):
        if _is_argument(name):
            names.append(name)
        else:
            shown = ascii(name)[1:-1]
            LOG.info(f"{entry.each.place}: {shown} is left out: its name cannot be an argument of a program")
    for name in listed_once(entry, names):
        yield entry.spec(name, (*command, f"--cg-bench-task={name}"), cwd=cwd, loop=_LOOP)


class _Package(msgspec.Struct):
    """A package.json."""

    scripts: dict[str, str] = {}


def of_script(command: Sequence[str], cwd: Path) -> tuple[str, ...]:
    """Return what a script of package.json starts, if this command runs one. UsageError if that is more than one program."""
    words = [word for word in command[1:] if word not in ("run", "run-script", "--")]
    scripts: dict[str, str] = {}
    with suppress(msgspec.DecodeError):
        scripts = msgspec.json.decode(text_of(cwd / "package.json"), type=_Package).scripts
    if command[0] not in _MANAGERS or not words or words[0] not in scripts:
        return tuple(command)
    text = scripts[words[0]]
    if re.search(r"[&|;<>$`()]|^\S*=", text):
        hint = "give the command of the benchmarks itself, and variables as --env NAME=VALUE"
        raise UsageError(f"the script {words[0]!r} of package.json is for a shell: {text}", hint=hint)
    return (*shlex.split(text), *words[1:])


def _is_argument(name: str) -> bool:
    return not re.search("[\0\ud800-\udfff]", name)  # nor can half of a pair of surrogates be


def check_package(entry: Entry, name: str, folder: Path, tested: Collection[str]) -> None:
    """Look at the version of a package in the nearest `node_modules`."""
    paths = (parent / "node_modules" / name / "package.json" for parent in (folder, *folder.parents))
    path = next((path for path in paths if os.path.isfile(path)), None)
    if path is not None and (match := _VERSION.search(text_of(path).decode("utf-8", "replace"))):
        check_version(entry, name, match[1], tested)


def depends(root: Path, package: str) -> bool:
    """Return whether the package.json of this project names a package."""
    return f'"{package}"'.encode() in text_of(root / "package.json")
