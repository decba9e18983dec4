"""Thresholds (relative) and limits (absolute), as they are written on a command line and in a configuration.

Must not know what they are compared with. Fractions, so that 0.1 % is exactly that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Generic, TypeVar

import msgspec

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.metrics import EVENTS, CostModel, Counts
from cachegrind_bench.model.text import matches

Value = TypeVar("Value")

_PERCENTAGE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})\s*%")
_COUNT = re.compile(r"[0-9](?:_?[0-9]){0,18}")
_HITS = {"L1": "l1_hits", "LL": "ll_hits", "RAM": "ram_hits"}
ALLOCATIONS = "allocations"
_LIMITED = {name.lower(): name for name in ("score", *EVENTS, *_HITS, ALLOCATIONS)}


class Rules(msgspec.Struct, Generic[Value], frozen=True):
    """Values by pattern of benchmark ids: an exact id goes before wildcards, of the same kind the last one counts.

    `own` are values of single benchmarks, by id: an id may hold what is a wildcard in a pattern.
    """

    rules: tuple[tuple[str, Value], ...]
    own: Mapping[str, Value] = msgspec.field(default_factory=dict[str, Value])

    def get(self, benchmark_id: str) -> Value | None:
        """Return the value for this benchmark, None where no pattern fits."""
        if benchmark_id in self.own:
            return self.own[benchmark_id]
        fitting = [(pattern == benchmark_id, value) for pattern, value in self.rules if matches(benchmark_id, pattern)]
        exact = [value for is_exact, value in fitting if is_exact]
        return exact[-1] if exact else fitting[-1][1] if fitting else None


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """An absolute bound: these benchmarks must not have more than `value` of `name`: score, an event, L1/LL/RAM hits, allocations.

    `own` says that the pattern is the id of one benchmark, whatever wildcards it holds.
    """

    pattern: str
    name: str
    value: int
    own: bool = False

    def holds_for(self, benchmark_id: str) -> bool:
        """Return whether it bounds this benchmark."""
        return benchmark_id == self.pattern or (not self.own and matches(benchmark_id, self.pattern))

    def check(self, *, with_caches: bool) -> None:
        """UsageError if it is about what only simulated caches tell, where none are."""
        if not with_caches and self.name not in {"Ir", "score", ALLOCATIONS}:
            raise UsageError(
                f"the limit of {self.name} for {self.pattern!r} needs simulated caches, and --model ir has none",
                hint="limit Ir, or measure under another model",
            )

    def measured(self, counts: Counts, model: CostModel, allocations: int | None = None) -> int | None:
        """Return the number that the limit is about; None for allocations that are not known.

        UsageError for what only simulated caches tell, where none were simulated.
        """
        if self.name == ALLOCATIONS:
            return allocations
        if self.name == "score":
            return model.score(counts)
        if counts.Ir and not counts.with_caches:
            self.check(with_caches=False)
        value: int = getattr(counts, _HITS.get(self.name, self.name))
        return value


def percentage(text: str, option: str) -> Fraction:
    """Read `0.5%` as 1/200; UsageError on anything else."""
    match = _PERCENTAGE.fullmatch(text.strip())
    if match is None:
        plain = _PERCENTAGE.fullmatch(f"{text.strip()}%") is not None
        raise UsageError(
            f"{option} {text!r} is not a percentage", hint=f"did you mean {text.strip()}%?" if plain else "as in 0.5%"
        )
    return Fraction(match[1]) / 100


def percentages(texts: Sequence[str], default: str | None, option: str) -> Rules[Fraction]:
    """Read `0.5%` (for all) and `PATTERN=0.5%` (for these); UsageError on anything else."""
    rules = [] if default is None else [("*", percentage(default, option))]
    for text in texts:
        pattern, separator, value = text.rpartition("=")
        if separator and not pattern:
            raise UsageError(f"{option} {text!r} has nothing before the =", hint=f"as in {option} 'json-*=2%'")
        rules.append((pattern or "*", percentage(value, option)))
    return Rules(tuple(rules))


def limit(text: str, option: str = "--limit") -> Limit:
    """Read `PATTERN:NAME=VALUE`, or `NAME=VALUE` for all benchmarks; UsageError on anything else."""
    hint = f"as in {option} 'startup:Ir=150_000_000'"
    left, _, value = text.rpartition("=")
    pattern, _, name = left.rpartition(":")
    if name.strip().lower() not in _LIMITED:
        known = ", ".join(_LIMITED.values())
        raise UsageError(f"{option} {text!r}: {name!r} is not a count", hint=f"{hint}; one of: {known}")
    if not _COUNT.fullmatch(value.strip()):
        raise UsageError(f"{option} {text!r}: {value!r} is not a whole number", hint=hint)
    return Limit(pattern=pattern or "*", name=_LIMITED[name.strip().lower()], value=int(value))
