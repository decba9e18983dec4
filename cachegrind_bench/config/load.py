"""Reading the project's configuration. Touches nothing but the files it names; runs nothing.

Each value is converted to the type that `schema` gives its key, in the order of the file: the first mistake is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, cast, get_args

import msgspec

from cachegrind_bench.config.benchmarks import BenchmarkSpec, Configuration, specs
from cachegrind_bench.config.command import split
from cachegrind_bench.config.schema import (
    BENCHMARK,
    BENCHMARK_TABLE,
    DEFAULTS,
    Combinations,
    Command,
    Duration,
    Key,
    Texts,
    Variables,
)
from cachegrind_bench.config.source import Source, read
from cachegrind_bench.config.suggestions import as_list, as_variables, named, nearest, quoted, word_for
from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import matches

# What people try first and is not another name of a key.
_HEADINGS = frozenset({"default", "defaults", "global", "settings", "config", "options"})
_SWITCHES = frozenset({"skip", "disable", "disabled", "enable", "enabled"})
_SHELL_COMMANDS = frozenset({"setup", "prepare", "cleanup"})


def load(path: Path, *, check_files: bool = True) -> Configuration:
    """Return what this file says. FileFormatError with the line of the first mistake, UsageError if it cannot be read.

    Without `check_files`, folders and input files that benchmarks name need not exist.
    """
    source = read(path)
    found = _values(source, DEFAULTS, source.table())
    tables = (
        _values(source.below(BENCHMARK_TABLE, number), BENCHMARK, table)
        for number, table in enumerate(found.pop(BENCHMARK_TABLE, ()))
    )
    benchmarks, entries = specs(source, tables, check_files=check_files)
    _check_patterns(source, found, () if entries else benchmarks)
    return Configuration(
        path=path,
        root=path.parent,
        defaults={DEFAULTS[name].option: _as_typed(value) for name, value in found.items()},
        benchmarks=benchmarks,
        entries=entries,
    )


def _values(at: Source, keys: Mapping[str, Key], table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked values of this table by the names of their keys. FileFormatError with the line of the first bad one.

    A list, or a text where a list may be, is a tuple; a duration is text, `env` a tuple of `NAME` or `NAME=VALUE`.
    """
    for name in table:
        if name not in keys:
            at.fail(_unknown(name, table[name], keys, at), name)
    return {name: _value(at.below(name), keys[name], value) for name, value in table.items()}


def _value(at: Source, key: Key, value: object) -> Any:
    try:
        found: Any = msgspec.convert(value, Combinations if key.name == BENCHMARK_TABLE else key.type)
    except msgspec.ValidationError as error:
        _refuse(at, key, value, str(error))
    if key.type == Command:
        words = split(found, at, key.name) if isinstance(found, str) else found
        for word in (words[0] if words else "", *(word for word in words if "\0" in word)):
            _checked(at, key, word)
        return words
    if key.type == Variables and isinstance(found, dict):
        pairs = cast("dict[str, str]", found)
        wrong = next((name for name in pairs if "=" in name), None)
        if wrong is not None:
            at.fail(f"{wrong!r} cannot name a variable", wrong)
        return tuple(_checked(at.below(name), key, f"{name}={item}") for name, item in pairs.items())
    if key.type in (Texts, Variables):
        if isinstance(found, str):
            return (_checked(at, key, found),)
        return tuple(_checked(at.below(place), key, item) for place, item in enumerate(found))
    if key.type == Duration or isinstance(found, str):
        return _checked(at, key, str(value))
    return found


def _checked(at: Source, key: Key, value: str) -> str:
    try:
        key.check(value, key.name)
    except UsageError as error:
        # What the command line gives as an example is written in another way here.
        example, _, more = (error.hint or "as in").partition("; ")
        if example.startswith(("as in", "write")):
            example = f"as in {key.name} = {key.example}"
        hint, meant = f"{example}; {more}" if more else example, key.meant(value)
        with suppress(UsageError):
            if meant is not None:
                key.check(meant, key.name)
                hint = f"did you mean {quoted(meant)}?"
        at.fail(error.message, hint=hint)
    return value


def _refuse(at: Source, key: Key, value: object, error: str) -> NoReturn:
    """Refuse a value that is not of the key's type: say what it should be, and how it may have been meant."""
    items = _items(value)
    example = f"as in {key.name} = {key.example}"
    if key.name == BENCHMARK_TABLE:
        header = at.header(key.name)
        at.fail(f"each benchmark is a table of its own: write [[{header}]], in double brackets")
    if items and all(isinstance(item, dict) for item in items):  # as double brackets make them
        header = at.header(".".join(step for step in at.steps if isinstance(step, str)))
        at.fail(f"{key.name} is one table: write [{header}], in single brackets")
    if key.bounds is not None and isinstance(value, int) and not isinstance(value, bool):
        at.fail(f"{key.name} must be from {key.bounds.ge} to {key.bounds.le}, not {value}")
    if "Invalid enum value" in error:
        choices: tuple[str, ...] = get_args(key.type)
        meant = nearest(str(value), {choice: choice for choice in choices})
        hint = f"did you mean {meant!r}?" if meant else None
        at.fail(f"{key.name} {value!r} is not one of {', '.join(choices)}", hint=hint)
    if "of length >= 1" in error:
        at.fail(f"{key.name} is empty", hint=example)
    if key.type == Variables and isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        name, item = next((name, item) for name, item in pairs if not isinstance(item, str))
        message = f"the value of the variable {name} is a text, not {word_for(item)}: write {name} = {quoted(item)}"
        at.fail(message, name)
    place = re.search(r"\$\[([0-9]+)\]", error)
    if place is not None and key.type != Combinations:
        item = items[int(place[1])]
        written = _as_text(key, item)
        hint = f"write {written}" if written else example
        at.fail(f"{key.name} is a list of texts, and this item is {named(item)}", int(place[1]), hint=hint)
    message = f"{key.name} must be {key.wanted}, not {named(value)}"
    at.fail(message, hint=f"as in {key.name} = {_meant(at, key, value) or key.example}")


def _meant(at: Source, key: Key, value: object) -> str | None:
    """Return how this value of a wrong type may have been meant, as it is written in TOML."""
    if isinstance(value, str):
        text = value.strip()
        if key.type == Variables:
            return as_list(as_variables(value)) if text else None
        fits = text.isdecimal() if key.bounds else key.type is bool and text.lower() in ("true", "false")
        return text.lower() if fits else None
    if not key.takes_text:
        return None
    items = _items(value)
    if not items or not all(isinstance(item, str) for item in items):
        return _as_text(key, value)
    if key.name in _SHELL_COMMANDS:
        return f"{quoted(' && '.join(map(str, items)))}; it is one shell command, several are joined by &&"
    more = f"; a list of thresholds is above the first [[{at.header(BENCHMARK_TABLE)}]]"
    return f"{quoted(items[0]) if len(items) == 1 else key.example}{more if key.name == 'threshold' else ''}"


def _items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _as_text(key: Key, value: object) -> str | None:
    """Return a number as the text it should have been, where that is known."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    for text in (str(value), f"{value}%"):
        with suppress(UsageError):
            key.check(text, key.name)
            return quoted(text)
    return None


def _unknown(name: str, value: object, keys: Mapping[str, Key], at: Source) -> str:
    """Return what to say about a key that this table does not have."""
    header, folded, in_benchmark = at.header(BENCHMARK_TABLE), name.lower(), keys is BENCHMARK
    here, there = ("a benchmark", "the defaults") if in_benchmark else ("the defaults", "a benchmark")
    if name in (DEFAULTS if in_benchmark else BENCHMARK):
        where = f"above the first [[{header}]]" if in_benchmark else f"below [[{header}]]"
        return f"{name!r} belongs to {there}, not to {here}: write it {where}"
    if not in_benchmark and isinstance(value, dict) and folded in _HEADINGS:
        where = f"directly below [{'.'.join(at.prefix)}]" if at.prefix else "above all tables, without a heading"
        return f"unknown table {name!r}; the defaults are {where}"
    if folded in _SWITCHES:
        return (
            f"unknown key {name!r} in {here}; a benchmark is left out by # before its lines, or by -k 'not ID', "
            "and combinations of its parameters by 'exclude'"
        )
    words = {word: key.name for key in keys.values() for word in (*key.also, key.name)}
    meant = nearest(name, words)
    if meant == BENCHMARK_TABLE and isinstance(value, dict | list):
        written = f"[{at.header(name)}]"
        return f"unknown table {written if isinstance(value, dict) else f'[{written}]'}; did you mean [[{header}]]?"
    advice = f"did you mean {meant!r}?" if meant else f"known are {', '.join(keys)}"
    return f"unknown key {name!r} in {here}; {advice}"


def _as_typed(value: object) -> object:
    """Return a value as the command line takes it: options that can be repeated want a list."""
    return list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value


_NO_PATTERNS = frozenset({"carry"})


def _check_patterns(source: Source, found: Mapping[str, Any], benchmarks: Sequence[BenchmarkSpec]) -> None:
    """Refuse thresholds and limits for benchmarks that do not exist, in a file that has some."""
    ids = [spec.id for spec in benchmarks]
    known = {f"{spec.id.partition('[')[0]}*": spec.parameters for spec in benchmarks}
    words = {name.rstrip("*"): name for name, parameters in known.items() if parameters} | {name: name for name in ids}
    lists = [name for name in found if DEFAULTS[name].type == Texts and name not in _NO_PATTERNS]
    texts = {(name, place): text for name in lists for place, text in enumerate(found[name])}
    for (name, place), text in texts.items() if ids else ():
        pattern = str(DEFAULTS[name].check(text, name))
        if not any(matches(identity, pattern) for identity in ids):
            meant = nearest(pattern.replace("*", "").replace("?", ""), words)
            some = f"there are: {', '.join(ids[:10])}{' and more' if len(ids) > 10 else ''}"
            source.fail(
                f"{name} {text!r} does not match any benchmark of this file: {pattern!r}",
                name,
                place,
                hint=f"did you mean {meant!r}?" if meant else some,
            )
