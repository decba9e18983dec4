"""A configuration to start from: for each kind of project, one benchmark that works there as it is.

Looks at a project's files and returns what to write; writes and runs nothing itself.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import msgspec

from cachegrind_bench.config.source import OWN_FILE, PYPROJECT, read
from cachegrind_bench.config.suggestions import quoted
from cachegrind_bench.errors import UsageError
from cachegrind_bench.vcs.git import folders_up

_PYTHON = ("setup.py", "setup.cfg", "requirements.txt")
_C_BUILDS = {
    "CMakeLists.txt": "cmake -S . -B build && cmake --build build",
    "meson.build": "meson setup build; ninja -C build",
    "GNUmakefile": "make",
    "makefile": "make",
    "Makefile": "make",
}
_C_SOURCES = (".c", ".cc", ".cpp", ".cxx")
_CARGO = "Cargo.toml"
_STARTERS = files("cachegrind_bench.config").joinpath("starters")


class NewFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file to write; `added` is what is new in it, the whole of it unless it is there already."""

    path: Path
    data: bytes
    added: str

    @property
    def is_extended(self) -> bool:
        """Whether there is such a file already."""
        return len(self.data) > len(self.added.encode())


def project(cwd: Path) -> Path:
    """Return the nearest folder from `cwd` up to the top of its git work tree that looks like a project, else `cwd`."""
    marks = (PYPROJECT, *_PYTHON, _CARGO, *_C_BUILDS)
    for folder in folders_up(cwd):
        if any(os.path.isfile(folder / name) for name in marks):
            return folder
    return cwd


def starter(root: Path, harnesses: Mapping[str, Sequence[str]]) -> list[NewFile]:
    """Return the files to write for the project in this folder, the configuration last.

    `harnesses` are keys with their values that stand for the benchmarks it has already: then only these are written.
    FileFormatError if a pyproject.toml is there and is not TOML.
    """
    if harnesses:
        tables = "\n".join(
            f"[[benchmark]]\n{identity}{name} = {quoted(shlex.quote(value))}\n{_setup(root, value)}"
            for name, values in harnesses.items()
            for value, identity in zip(values, _ids(values), strict=True)
        )
        return [
            _new(root / OWN_FILE, _text("configuration.toml.txt").partition("[[")[0].replace("<table>", "") + tables)
        ]
    pyproject = read(root / PYPROJECT).data if os.path.isfile(root / PYPROJECT) else None
    if _is_python(root, pyproject):
        return _python(root, pyproject)
    if _takes_examples(root):
        return _rust(root)
    build = next((build for name, build in _C_BUILDS.items() if os.path.isfile(root / name)), None)
    if build is not None and (build != "make" or _has(root, _C_SOURCES)):
        return _c(root, build)
    return [_new(root / OWN_FILE, _configuration("other"))]


def _ids(values: Sequence[str]) -> list[str]:
    """Return the line that names each table of a harness, as programs may have benchmarks of the same name; nothing for one alone."""
    names = [Path(value).stem for value in values]
    whole = len(set(names)) < len(names)
    return [
        f"id = {quoted(value if whole else name)}\n" if names[1:] else ""
        for value, name in zip(values, names, strict=True)
    ]


def _setup(root: Path, value: str) -> str:
    """Return the line that builds a program of CMake's in a fresh checkout, with its build type; empty if that is not known."""
    folder = value.partition("/")[0]
    cache = root / folder / "CMakeCache.txt"
    try:
        if not ((root / value).is_file() and cache.is_file()):
            return ""
        known = dict(re.findall(r"^(\w+):\w+=(.*)$", cache.read_text("utf-8", "replace"), re.MULTILINE))
        if os.path.realpath(known.get("CMAKE_HOME_DIRECTORY", "/")) != os.path.realpath(root):
            return ""
    except (OSError, ValueError):  # it cannot be read, or names what cannot be a path
        return ""
    kind, quiet = known.get("CMAKE_BUILD_TYPE") or "RelWithDebInfo", shlex.quote(folder)
    build = f"cmake -S . -B {quiet} -DCMAKE_BUILD_TYPE={shlex.quote(kind)} && cmake --build {quiet}"
    return f"setup = {quoted(build)}\n"


def _python(root: Path, pyproject: Mapping[str, Any] | None) -> list[NewFile]:
    source = _free(root, "benchmarks/bench_example", ".py")
    own = _new(root / OWN_FILE, _configuration("python", source=source))
    appended = None if pyproject is None else _appended(root / PYPROJECT, source)
    return [_new(root / source, _text("example.py.txt")), appended or own]


def _rust(root: Path) -> list[NewFile]:
    source = _free(root, "examples/cg_bench_example", ".rs")
    name = os.path.basename(source).removesuffix(".rs")
    return [_new(root / source, _text("example.rs")), _new(root / OWN_FILE, _configuration("rust", name=name))]


def _c(root: Path, build: str) -> list[NewFile]:
    source = _free(root, "benchmarks/bench_example", ".c")
    name = os.path.basename(source).removesuffix(".c")
    taken = os.path.lexists(root / "build") and not os.path.isdir(root / "build")
    folder = "build-benchmarks" if taken else "build"
    text = _configuration("c", source=source, name=name, folder=folder, build=build)
    return [_new(root / source, _text("example.c")), _new(root / OWN_FILE, text)]


def _text(name: str) -> str:
    return _STARTERS.joinpath(name).read_text(encoding="utf-8")


def _configuration(kind: str, *, table: str = "", **marks: str) -> str:
    """Return a configuration with one benchmark; `table` is the name of the table that all is in, if in one.

    In the texts, `<name>` stands for a value, and a commented line is valid without its `# `.
    """
    text = _text("configuration.toml.txt").replace("<command>", _text(f"command-{kind}.toml.txt"))
    marks |= {"table": f"[{table}]\n" if table else "", "prefix": f"{table}." if table else ""}
    for name, value in marks.items():
        text = text.replace(f"<{name}>", value)
    return text


def _is_python(root: Path, pyproject: Mapping[str, Any] | None) -> bool:
    """Return whether this is a Python project: a pyproject.toml may be there only for the settings of a tool."""
    declared: Mapping[str, Any] = pyproject or {}
    tools: object = declared.get("tool")
    if {"project", "build-system"} & declared.keys() or (isinstance(tools, dict) and "poetry" in tools):
        return True
    compiled = any(os.path.isfile(root / name) for name in (_CARGO, *_C_BUILDS))
    return any(os.path.isfile(root / name) for name in _PYTHON) or (_has(root, (".py",)) and not compiled)


def _takes_examples(root: Path) -> bool:
    """Return whether this is a Rust package where cargo finds programs in examples/ by itself."""
    if not os.path.isfile(root / _CARGO):
        return False
    try:
        package: Any = read(root / _CARGO).data.get("package")
    except (OSError, UsageError):
        return False
    return isinstance(package, dict) and cast("dict[str, object]", package).get("autoexamples", True) is True


def _has(root: Path, endings: tuple[str, ...]) -> bool:
    """Return whether there is a file with one of these endings in this folder or its src."""
    names: list[str] = []
    for folder in (root, root / "src"):
        with contextlib.suppress(OSError):
            names += os.listdir(folder)
    return any(name.endswith(endings) for name in names)


def _free(root: Path, stem: str, ending: str) -> str:
    numbered = itertools.chain([""], (f"_{number}" for number in itertools.count(2)))
    names = (f"{stem}{number}{ending}" for number in numbered)
    return next(name for name in names if not os.path.lexists(root / name))


def _new(path: Path, text: str) -> NewFile:
    return NewFile(path=path, data=text.encode(), added=text)


def _appended(path: Path, source: str) -> NewFile | None:
    """Return the file with our tables behind all others; None where that would not be read as such."""
    before = path.read_bytes()
    added = _configuration("python", table="tool.cg-bench", source=source)
    joint = "\n" if before.endswith(b"\n") or not before else "\n\n"
    text = f"{joint}{added}" if before else added
    data = before + (text.replace("\n", "\r\n") if b"\r\n" in before else text).encode()
    try:
        after: Any = tomllib.loads(data.decode("utf-8-sig"))
        after["tool"].pop("cg-bench")
    except (ValueError, TypeError, RecursionError):  # `tool` is closed to more tables, or an array of them
        return None
    known = tomllib.loads(before.decode("utf-8-sig"))
    return NewFile(path=path, data=data, added=added) if after == {"tool": {}} | known else None
