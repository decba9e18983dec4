"""Whether the text of a key is what the key is for, asked of those who will read it later.

Each check takes the text and the name of its key; UsageError if it will not do.
"""

from __future__ import annotations

import re

from cachegrind_bench.config.command import milliseconds
from cachegrind_bench.config.suggestions import as_list, as_words, meant_limit, meant_percentage, quoted
from cachegrind_bench.errors import UsageError
from cachegrind_bench.hermetic.environment import Request
from cachegrind_bench.model import thresholds
from cachegrind_bench.model.score import CostModel
from cachegrind_bench.store.urls import FORMS, without_password
from cachegrind_bench.valgrind.options import Cache


def text(value: str, key: str) -> None:
    """Take any text that can be given to a program and is not empty."""
    if not value.strip():
        raise UsageError(f"{key} is empty")
    if "\0" in value:
        raise UsageError(f"{key} holds a NUL character, which no program can be given")


def name(value: str, key: str) -> None:
    """Take what can be shown in one line of a table, and typed."""
    text(value, key)
    if not value.isprintable() or value != value.strip():
        raise UsageError(f"{key} {value!r} must be printable, without spaces at its ends")


def function(value: str, key: str) -> None:
    """Take the name of a function, which may have wildcards."""
    name(value, key)
    if not value.strip("*?"):
        raise UsageError(f"{key} {value!r} names no function", hint="as in parse_*")


def cache(value: str, key: str) -> None:
    """Take a cache that Valgrind can simulate."""
    Cache.parse(value, key)


def model(value: str, key: str) -> None:
    """Take the name of a cost model."""
    try:
        CostModel.parse(value)
    except UsageError as error:
        raise UsageError(f"{key} {error.message}", hint=error.hint) from error


def tag(value: str, key: str) -> None:
    """Take one word to choose by."""
    name(value, key)
    words = as_words(value)
    if len(words) > 1:
        raise UsageError(f"{key} {value!r} holds more than one word", hint=f"did you mean {as_list(words)}?")


def percentage(value: str, key: str) -> None:
    """Take a percentage."""
    try:
        thresholds.percentage(value, key)
    except UsageError as error:
        meant = meant_percentage(value)
        raise UsageError(error.message, hint=f"did you mean {quoted(meant)}?" if meant else error.hint) from error


def threshold(value: str, key: str) -> str:
    """Take a percentage for all benchmarks, or with a pattern for some. Return the pattern."""
    pattern, equals, number = value.rpartition("=")
    if equals and not pattern:
        thresholds.percentages([value], None, key)  # which says so
    try:
        percentage(number, key)
    except UsageError as error:
        meant = meant_percentage(number)
        raise UsageError(
            error.message, hint=f"did you mean {quoted(f'{pattern}{equals}{meant}')}?" if meant else error.hint
        ) from error
    return pattern or "*"


def limit(value: str, key: str) -> str:
    """Take a bound for all benchmarks, or with a pattern for some. Return the pattern."""
    try:
        return thresholds.limit(value, key).pattern
    except UsageError as error:
        meant = meant_limit(value)
        told = error.message if re.search(r"\w\s*=", value) else f"{key} {value!r} is no NAME=COUNT"
        hint = error.hint if told == error.message else "as in"
        raise UsageError(told, hint=f"did you mean {quoted(meant)}?" if meant else hint) from error


def own_limit(value: str, key: str) -> None:
    """Take a bound for the benchmark in whose table it stands."""
    if limit(value, key) != "*":
        raise UsageError(
            f"{key} {value!r} names a benchmark, but is in the table of one",
            hint=f"did you mean {value.rpartition(':')[2]!r}?",
        )


def store(value: str, key: str) -> None:
    """Take the URL of a store; whether there is one is asked by whoever opens it."""
    if re.match(r"(?:file:|git:|sqlite:///|postgres(?:ql)?://)[^\s]", value) is None or "\0" in value:
        raise UsageError(f"{key} {without_password(value)!r} names no store", hint=FORMS)


def duration(value: str, key: str) -> None:
    """Take a time."""
    try:
        milliseconds(value)
    except UsageError as error:
        raise UsageError(f"{key} {error.message}", hint=error.hint) from error


def variable(value: str, key: str) -> None:
    """Take a variable to pass on or to set."""
    try:
        Request.parse([value])
    except UsageError as error:
        raise UsageError(error.message.replace("--env", key, 1), hint=error.hint) from error
    own, equals, _ = value.partition("=")
    words = own.split()
    if words != [own]:
        words[-1:] = [f"{last}=…" if equals else last for last in words[-1:]]  # the value may be a secret
        raise UsageError(f"{key} {own!r}: the name of a variable has no blank", hint=f"did you mean {as_list(words)}?")
