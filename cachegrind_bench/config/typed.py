"""The values of one table, checked: known keys, right types, readable texts. Must not know what they are used for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cachegrind_bench.config.keys import BENCHMARK, BENCHMARK_TABLE, DEFAULTS
from cachegrind_bench.config.readers import READERS
from cachegrind_bench.config.words import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cachegrind_bench.config.key import Key
    from cachegrind_bench.config.source import Source

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
