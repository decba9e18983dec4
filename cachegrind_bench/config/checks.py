"""Whether the text of a key is what the key is for, asked of those who will read it later.

Each check takes the text and the name of its key; UsageError if it will not do.
"""

from __future__ import annotations

import re

from cachegrind_bench.config.duration import milliseconds
from cachegrind_bench.errors import UsageError
from cachegrind_bench.hermetic.environment import Request
from cachegrind_bench.model import thresholds
from cachegrind_bench.model.score import CostModel
from cachegrind_bench.store.open import FORMS, without_password
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


def cache(value: str, key: str) -> None:
    """Take a cache that Valgrind can simulate."""
    Cache.parse(value, key)


def model(value: str, key: str) -> None:
    """Take the name of a cost model."""
    try:
        CostModel.parse(value)
    except UsageError as error:
        raise UsageError(f"{key} {error.message}", hint=error.hint) from error


def percentage(value: str, key: str) -> None:
    """Take a percentage."""
    thresholds.percentage(value, key)


def threshold(value: str, key: str) -> None:
    """Take a percentage for all benchmarks, or with a pattern for some."""
    thresholds.percentages([value], None, key)


def limit(value: str, key: str) -> None:
    """Take a bound for all benchmarks, or with a pattern for some."""
    thresholds.limit(value, key)


def own_limit(value: str, key: str) -> None:
    """Take a bound for the benchmark in whose table it stands."""
    if thresholds.limit(value, key).pattern != "*":
        raise UsageError(
            f"{key} {value!r} names a benchmark, but stands in the table of one",
            hint=f"did you mean {value.rpartition(':')[2]!r}?",
        )


def store(value: str, key: str) -> None:
    """Take the URL of a store; whether there is one is asked by whoever opens it."""
    if re.match(r"(?:file:|git:|sqlite:///|postgresql://)[^\s]", value) is None or "\0" in value:
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
