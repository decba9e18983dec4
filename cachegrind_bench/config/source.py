"""A configuration file as TOML: its tables, the line of every key, and what is wrong around them.

Knows where the tables are in the two kinds of files; must not know which keys they have.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, cast

import msgspec
from msgspec.structs import replace

from cachegrind_bench.config.toml_lines import Steps, places, syntax_error
from cachegrind_bench.errors import FileFormatError, UsageError
from cachegrind_bench.vcs.git import folders_up

OWN_FILE, PYPROJECT = "cg-bench.toml", "pyproject.toml"
_TOOL = ("tool", "cg-bench")
_MISSPELT = ("cg_bench", "cgbench", "cachegrind-bench", "cachegrind_bench", "cachegrindbench", "cg-benchmark")
_NOT_TOOL = ("tools", "Tool", "Tools")
_MENTIONED = re.compile(r"^[ \t]*\[+[ \t]*[Tt]ools?[ \t]*\.[ \t]*[\"']?cg[-_]?bench", re.MULTILINE)


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One file, and a place in it: the key that `steps` lead to, from our table on.

    The steps in `prefix` lead from the top of the file to our table; `shown` is the file's name in messages.
    """

    path: Path
    shown: str
    data: Mapping[str, Any]
    prefix: tuple[str, ...]
    lines: Mapping[Steps, int]
    steps: Steps = ()

    def below(self, *steps: str | int) -> Source:
        """Return the place that these further steps lead to."""
        return replace(self, steps=(*self.steps, *steps))

    def table(self) -> dict[str, Any]:
        """Return our table; an error if that is not a table."""
        found: object = self.data
        for key in self.prefix:
            found = cast("dict[str, object]", found).get(key, {}) if isinstance(found, dict) else found
        if not isinstance(found, dict):
            self.fail(f"write [{'.'.join(self.prefix)}] in single brackets: there is one such table")
        return cast("dict[str, Any]", found)

    def header(self, name: str) -> str:
        """Return how the header of one of our tables is written inside its brackets."""
        return ".".join((*self.prefix, name))

    def line(self, *steps: str | int) -> int | None:
        """Return the line of a key, or of the nearest table around it."""
        whole: Steps = (*self.prefix, *self.steps, *steps)
        found = (self.lines.get(whole[:length]) for length in range(len(whole), 0, -1))
        return next((line for line in found if line is not None), None)

    def place(self) -> str:
        """Return the file and line."""
        line = self.line()
        return self.shown if line is None else f"{self.shown}:{line}"

    def fail(self, message: str, *steps: str | int, hint: str | None = None) -> NoReturn:
        """Raise the error that this key, or the one that further steps lead to, is wrong."""
        raise FileFormatError(message, path=self.shown, line=self.line(*steps), hint=hint)


def find(cwd: Path) -> Path | None:
    """Return the configuration nearest to `cwd`, from there up to the top of its git work tree, or to the root.

    In one folder cg-bench.toml goes before pyproject.toml, which counts only if it has tables for us.
    """
    for folder in folders_up(cwd):
        if os.path.lexists(folder / OWN_FILE) and not os.path.isdir(folder / OWN_FILE):
            return folder / OWN_FILE
        if os.path.isfile(folder / PYPROJECT) and concerns_us(folder / PYPROJECT):
            return folder / PYPROJECT
    return None


def as_own_file(path: Path) -> str:
    """Return what a cg-bench.toml with all that this configuration says has in it, to be read in another folder."""
    return "".join(f"{name} = {_written(value)}\n" for name, value in read(path).table().items())


def _written(value: object) -> str:
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return f"{{{', '.join(f'{json.dumps(name)} = {_written(item)}' for name, item in items)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, cast('list[object]', value)))}]"
    return (
        json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        if isinstance(value, str | bool)
        else str(value)
    )


def ignored(path: Path) -> Path | None:
    """Return the file next to this one that has tables for us as well and is not read, if there is one."""
    other = path.parent / PYPROJECT
    return other if path.name == OWN_FILE and os.path.isfile(other) and concerns_us(other) else None


def read(path: Path) -> Source:
    """Read a file. FileFormatError if it is not TOML, or our tables are where they are not looked for."""
    name, text = shown(path), _text(path)
    prefix = _TOOL if path.name == PYPROJECT else ()
    source = parsed(text, path, name, prefix)
    mistake = _mistake(source.data, prefix)
    if mistake is not None:
        steps, message = mistake
        raise FileFormatError(message, path=name, line=source.lines.get(steps))
    return source


def parsed(text: str, path: Path, name: str, prefix: tuple[str, ...] = ()) -> Source:
    """Return the source with this text; `name` is the file's in messages. FileFormatError if it is not TOML."""
    try:
        return Source(path=path, shown=name, data=tomllib.loads(text), prefix=prefix, lines=places(text))
    except tomllib.TOMLDecodeError as error:
        raise syntax_error(str(error), name, text, prefix) from error
    except (RecursionError, ValueError) as error:
        raise FileFormatError("not valid TOML: too deep, or a number too long", path=name) from error


def concerns_us(path: Path) -> bool:
    """Return whether a pyproject.toml has tables for us, be they wrong; what cannot be read does not."""
    try:
        text = _text(path)
    except UsageError:
        return False
    try:
        data = tomllib.loads(text)
    except (RecursionError, ValueError):  # TOMLDecodeError is one
        return _MENTIONED.search(text) is not None
    tool = data.get("tool")
    return (isinstance(tool, dict) and "cg-bench" in tool) or _mistake(data, _TOOL) is not None


def _mistake(data: Mapping[str, Any], prefix: tuple[str, ...]) -> tuple[Steps, str] | None:
    """Return where tables for us are in a wrong place, and what to write there."""
    tools = _tables_in(data, "tool")
    others: list[Steps] = [(name, "cg-bench") for name in _NOT_TOOL if "cg-bench" in _tables_in(data, name)]
    if not prefix:
        wrong: list[Steps] = [("tool", "cg-bench")] if "cg-bench" in tools else []
        wrong += [*others, *([("cg-bench",)] if "cg-bench" in data else [])]
        advice = (
            f"the tables of {OWN_FILE} have no prefix: write [[benchmark]], and defaults above it without any table"
        )
        return (wrong[0], advice) if wrong else None
    others += [("tool", name) for name in _MISSPELT if name in tools]
    if others:
        return others[0], f"unknown table [{others[0][0]}.{others[0][1]}]; did you mean [tool.cg-bench]?"
    for name in ("cg-bench", *_MISSPELT):
        if isinstance(data.get(name), dict):
            return (name,), f"in {PYPROJECT} our table is called [tool.cg-bench], not [{name}]"
    ours: object = data.get("benchmark")  # or that of others who write to this file as well
    items = cast("list[object]", ours) if isinstance(ours, list) else [ours]
    if any(isinstance(item, dict) and "command" in item for item in items):
        return ("benchmark",), f"in {PYPROJECT} a benchmark begins with [[tool.cg-bench.benchmark]]"
    return None


def _tables_in(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    found: object = data.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {shown(path)}: {error.strerror}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileFormatError("not UTF-8 text", path=shown(path), line=line, hint="save the file as UTF-8") from error


def shown(path: Path) -> str:
    """Return the shorter of the absolute path and that from the working directory, as one would type it."""
    try:
        return min(str(path), os.path.relpath(path), key=len)
    except FileNotFoundError:  # the working directory has been removed
        return str(path)
