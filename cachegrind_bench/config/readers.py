"""One reader for each kind of value, and the values of one table, checked: known keys, right types, readable texts.

Each takes the file, the key, the value and its line; FileFormatError with the line if it cannot be that.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, cast

from cachegrind_bench.config.command import split
from cachegrind_bench.config.schema import BENCHMARK, BENCHMARK_TABLE, DEFAULTS, Kind
from cachegrind_bench.config.suggestions import as_list, as_variables, named, nearest, quoted, word_for
from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cachegrind_bench.config.schema import Key
    from cachegrind_bench.config.source import Source
    from cachegrind_bench.config.toml_lines import Steps

_SHELL_COMMANDS = frozenset({"setup", "prepare", "cleanup"})


def _wrong(source: Source, key: Key, value: object, steps: Steps, wanted: str, *, meant: str | None = None) -> NoReturn:
    source.fail(
        f"{key.name} must be {wanted}, not {named(value)}",
        *steps,
        hint=f"as in {key.name} = {meant or key.example}",
    )


def _checked(source: Source, key: Key, value: object, steps: Steps, wanted: str = "a text") -> str:
    """Return a text that the key's check takes."""
    if not isinstance(value, str):
        _wrong(source, key, value, steps, wanted, meant=_as_written(key, value))
    try:
        key.check(value, key.name)
    except UsageError as error:
        # What the command line gives as an example is written in another way here.
        example, _, more = (error.hint or "as in").partition("; ")
        if example.startswith(("as in", "write")):
            example = f"as in {key.name} = {key.example}"
        source.fail(error.message, *steps, hint=f"{example}; {more}" if more else example)
    if key.choices and value not in key.choices:
        meant = nearest(value, {choice: choice for choice in key.choices})
        source.fail(
            f"{key.name} {value!r} is not one of {', '.join(key.choices)}",
            *steps,
            hint=meant and f"did you mean {meant!r}?",
        )
    return value


def _as_written(key: Key, value: object) -> str | None:
    """Return a number as the text it should have been, where that is known."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    for text in (str(value), f"{value}%"):
        with suppress(UsageError):
            key.check(text, key.name)
            return quoted(text)
    return None


def _text(source: Source, key: Key, value: object, steps: Steps) -> str:
    items = _items(value)
    if items and all(isinstance(item, str) for item in items):
        _listed(source, key, [str(item) for item in items], steps)
    return _checked(source, key, value, steps)


def _listed(source: Source, key: Key, items: Sequence[str], steps: Steps) -> NoReturn:
    """Refuse a list where one text is wanted."""
    meant, more = quoted(items[0]) if len(items) == 1 else key.example, ""
    if key.name in _SHELL_COMMANDS:
        meant, more = quoted(" && ".join(items)), "; it is one shell command, several are joined by &&"
    elif key.name == "threshold":
        more = f"; a list of thresholds stands above the first [[{source.header(BENCHMARK_TABLE)}]]"
    _wrong(source, key, items, steps, "a text", meant=f"{meant}{more}")


def _texts(source: Source, key: Key, value: object, steps: Steps) -> tuple[str, ...]:
    items = _items(value)
    if items is None:
        return (_checked(source, key, value, steps, "a text or a list of texts"),)
    for place, item in enumerate(items):
        if not isinstance(item, str):
            written = _as_written(key, item)
            meant = f"[{written}]" if written else key.example
            source.fail(
                f"{key.name} is a list of texts, and this item is {named(item)}",
                *steps,
                place,
                hint=f"as in {key.name} = {meant}",
            )
    return tuple(_checked(source, key, item, (*steps, place)) for place, item in enumerate(items))


def _count(source: Source, key: Key, value: object, steps: Steps) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        meant = value.strip() if isinstance(value, str) and value.strip().isdecimal() else None
        _wrong(source, key, value, steps, "a whole number", meant=meant)
    if not key.smallest <= value <= key.largest:
        source.fail(f"{key.name} must be from {key.smallest} to {key.largest}, not {value}", *steps)
    return value


def _switch(source: Source, key: Key, value: object, steps: Steps) -> bool:
    if not isinstance(value, bool):
        meant = value.strip().lower() if isinstance(value, str) else None
        _wrong(source, key, value, steps, "true or false", meant=meant if meant in ("true", "false") else None)
    return value


def _duration(source: Source, key: Key, value: object, steps: Steps) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    return _checked(source, key, value, steps, "seconds, or a text with a unit")


def _command(source: Source, key: Key, value: object, steps: Steps) -> tuple[str, ...]:
    if isinstance(value, str):
        words = split(source, value, steps)
    elif isinstance(value, list):
        words = tuple(
            _word(source, key, item, (*steps, place)) for place, item in enumerate(cast("list[object]", value))
        )
    else:
        _wrong(source, key, value, steps, "a list of texts, or a text")
    if not words or not words[0].strip():
        source.fail("the command is empty", *steps, hint=f"as in command = {key.example}")
    if any("\0" in word for word in words):
        source.fail("the command holds a NUL character, which no program can be given", *steps)
    return words


def _word(source: Source, key: Key, item: object, steps: Steps) -> str:
    if not isinstance(item, str):
        source.fail(f"every argument of the {key.name} is a text, not {word_for(item)}: write {quoted(item)}", *steps)
    return item


def _env(source: Source, key: Key, value: object, steps: Steps) -> tuple[str, ...]:
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value)
        for name, item in pairs.items():
            if not isinstance(item, str):
                source.fail(
                    f"the value of the variable {name} is a text, not {word_for(item)}: write {name} = {quoted(item)}",
                    *steps,
                    name,
                )
            if "=" in name:
                source.fail(f"{name!r} cannot name a variable", *steps, name)
        return tuple(_checked(source, key, f"{name}={item}", (*steps, name)) for name, item in pairs.items())
    if isinstance(value, list):
        _not_tables(source, key, cast("list[object]", value), steps)
        return _texts(source, key, cast("list[object]", value), steps)
    meant = as_list(as_variables(value)) if isinstance(value, str) and value.strip() else None
    _wrong(source, key, value, steps, "a list of texts, or a table", meant=meant)


def _table(source: Source, key: Key, value: object, steps: Steps) -> dict[str, object]:
    if not isinstance(value, dict):
        _not_tables(source, key, value, steps)
        _wrong(source, key, value, steps, "a table of lists")
    return cast("dict[str, object]", value)


def _not_tables(source: Source, key: Key, value: object, steps: Steps) -> None:
    """Refuse several tables, as double brackets make them, where there is one."""
    items = _items(value)
    if items and all(isinstance(item, dict) for item in items):
        header = source.header(".".join(step for step in steps if isinstance(step, str)))
        source.fail(f"{key.name} is one table: write [{header}], in single brackets", *steps)


def _tables(source: Source, key: Key, value: object, steps: Steps) -> tuple[dict[str, Any], ...]:
    items = _items(value)
    if items is None or not all(isinstance(item, dict) for item in items):
        if key.kind is Kind.BENCHMARKS:
            source.fail(
                f"each benchmark is a table of its own: write [[{source.header(key.name)}]], in double brackets", *steps
            )
        _wrong(source, key, value, steps, "a list of tables")
    return tuple(cast("list[dict[str, Any]]", items))


def _items(value: object) -> list[object] | None:
    return cast("list[object]", value) if isinstance(value, list) else None


READERS: Mapping[Kind, Callable[[Source, Key, object, Steps], Any]] = {
    Kind.TEXT: _text,
    Kind.TEXTS: _texts,
    Kind.COUNT: _count,
    Kind.SWITCH: _switch,
    Kind.DURATION: _duration,
    Kind.COMMAND: _command,
    Kind.ENV: _env,
    Kind.PARAMETERS: _table,
    Kind.EXCLUDE: _tables,
    Kind.BENCHMARKS: _tables,
}


# What people try first that is no other name of a key.
_HEADINGS = frozenset({"default", "defaults", "global", "settings", "config", "options"})
_SWITCHES = frozenset({"skip", "disable", "disabled", "enable", "enabled"})


def values(source: Source, keys: Sequence[Key], table: Mapping[str, Any], *at: str | int) -> dict[str, Any]:
    """Return the checked values of this table by the names of their keys. FileFormatError with the line of the first bad one.

    A list or text that may be either is a tuple, a duration is text, `env` a tuple of `NAME` or `NAME=VALUE`.
    """
    known = {key.name: key for key in keys}
    for name in table:
        if name not in known:
            source.fail(_unknown(name, table[name], keys, source), *at, name)
    return {name: READERS[known[name].kind](source, known[name], value, (*at, name)) for name, value in table.items()}


def _unknown(name: str, value: object, keys: Sequence[Key], source: Source) -> str:
    """Return what to say about a key that this table does not have."""
    here, there = ("a benchmark", "the defaults") if keys is BENCHMARK else ("the defaults", "a benchmark")
    elsewhere = {key.name for key in (DEFAULTS if keys is BENCHMARK else BENCHMARK)}
    if name in elsewhere:
        where = (
            f"above the first [[{source.header(BENCHMARK_TABLE)}]]"
            if keys is BENCHMARK
            else f"below [[{source.header(BENCHMARK_TABLE)}]]"
        )
        return f"{name!r} belongs to {there}, not to {here}: write it {where}"
    if keys is DEFAULTS and isinstance(value, dict) and name.lower() in _HEADINGS:
        where = (
            f"directly below [{'.'.join(source.prefix)}]" if source.prefix else "above all tables, without a heading"
        )
        return f"unknown table {name!r}; the defaults stand {where}"
    if name.lower() in _SWITCHES:
        return (
            f"unknown key {name!r} in {here}; a benchmark is left out by # before its lines, or by -k 'not ID', "
            "and combinations of its parameters by 'exclude'"
        )
    words = {word: key.name for key in keys for word in key.also} | {key.name: key.name for key in keys}
    meant = nearest(name, words)
    if meant == BENCHMARK_TABLE and isinstance(value, dict | list):
        header = f"[{source.header(name)}]"
        written = header if isinstance(value, dict) else f"[{header}]"
        return f"unknown table {written}; did you mean [[{source.header(meant)}]]?"
    advice = f"did you mean {meant!r}?" if meant else f"known are {', '.join(key.name for key in keys)}"
    return f"unknown key {name!r} in {here}; {advice}"
