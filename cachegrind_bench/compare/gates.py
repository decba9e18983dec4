"""What a comparison is held to: thresholds, limits, and what shall fail; must not know benchmarks' results."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.model.thresholds import Limit, Rules, limit, percentage, percentages

if TYPE_CHECKING:
    from fractions import Fraction

    from cachegrind_bench.model.score import CostModel

__all__ = ["FailOn", "Gates", "Limit", "Metric", "Rules", "limit", "percentage", "percentages"]

DEFAULT_THRESHOLD = "0.5%"
DEFAULT_THRESHOLD_CACHE = "2%"
DEFAULT_MAX_DROP = "50%"

_NO_RULES: Rules[Fraction] = Rules(())


class Metric(StrEnum):
    """The number that decides."""

    SCORE = "score"
    IR = "Ir"


class FailOn(StrEnum):
    """Which states shall end in exit code 1."""

    REGRESSION = "regression"
    ANY_CHANGE = "any-change"
    NEVER = "never"


class Gates(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that turns differences into verdicts. Thresholds are shares: 1/200 is 0.5 %."""

    threshold: Rules[Fraction]
    threshold_cache: Fraction
    max_drop: Rules[Fraction]
    threshold_ir: Rules[Fraction] = _NO_RULES
    metric: Metric = Metric.SCORE
    limits: tuple[Limit, ...] = ()
    fail_on: FailOn = FailOn.REGRESSION
    force: bool = False
    model: CostModel | None = None

    def limits_of(self, benchmark_id: str) -> list[Limit]:
        """Return the limits that hold for this benchmark."""
        return [limit for limit in self.limits if limit.holds_for(benchmark_id)]

    def patterns(self) -> list[tuple[str, str]]:
        """Return each gate that was typed for some benchmarks only, in words, and its pattern."""
        options = (
            ("--threshold", self.threshold),
            ("--threshold-ir", self.threshold_ir),
            ("--max-drop", self.max_drop),
        )
        found = [(f"{option} {pattern}=…", pattern) for option, rules in options for pattern, _ in rules.rules]
        found += [(f"--limit {limit.pattern}:{limit.name}=…", limit.pattern) for limit in self.limits if not limit.own]
        return [(text, pattern) for text, pattern in found if pattern != "*"]
