"""What a comparison is held to: the options that say so, what the configuration adds, and the gates made of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec.structs import replace

from cachegrind_bench.cli.options import typed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from cachegrind_bench.compare.verdict import Gates
    from cachegrind_bench.config.values import BenchmarkSpec
    from cachegrind_bench.model.thresholds import Limit

Function = TypeVar("Function", bound="Callable[..., Any]")

_OPTIONS = (
    click.option(
        "--threshold",
        multiple=True,
        metavar="[PATTERN=]PERCENT",
        help="A larger change of the score, or of Ir in the same direction, is a regression or improvement. Repeatable. [default: 0.5%]",
    ),
    click.option(
        "--threshold-ir",
        multiple=True,
        metavar="[PATTERN=]PERCENT",
        help="Use this threshold for growth of Ir instead. Repeatable.",
    ),
    click.option(
        "--threshold-cache",
        default="2%",
        show_default=True,
        metavar="PERCENT",
        help="A score change above this counts even if Ir did not change.",
    ),
    click.option(
        "--max-drop",
        multiple=True,
        metavar="[PATTERN=]PERCENT",
        help="A larger fall of Ir is suspicious. Repeatable. [default: 50%]",
    ),
    click.option(
        "--limit",
        multiple=True,
        metavar="[PATTERN:]NAME=COUNT",
        help="Absolute bound of score, an event, or L1, LL, RAM (hits). Repeatable.",
    ),
    click.option(
        "--metric",
        type=click.Choice(["score", "Ir"], case_sensitive=False),
        default="score",
        show_default=True,
        metavar="[score|Ir]",
        help="The number that decides.",
    ),
    click.option("--force", is_flag=True, help="Compare even where the comparability keys differ."),
)


def gate_options(function: Function) -> Function:
    """Take what a comparison is held to."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def fail_on_option(function: Function) -> Function:
    """Take what fails, as `fail_on`."""
    return click.option(
        "--fail-on",
        type=click.Choice(["regression", "any-change", "never"]),
        default="regression",
        show_default=True,
        help="Exit with code 1 on these.",
    )(function)


def gates_of(options: Mapping[str, Any], benchmarks: Sequence[BenchmarkSpec] = ()) -> Gates:
    """Return what `gate_options` ask for; UsageError on anything that is no threshold or limit.

    These `benchmarks` may have thresholds and limits of their own, which hold unless others are typed.
    """
    from cachegrind_bench.compare import verdict
    from cachegrind_bench.model import thresholds
    from cachegrind_bench.model.score import CostModel

    metric = verdict.Metric.IR if options["metric"].lower() == "ir" else verdict.Metric.SCORE
    model = options.get("model")
    return verdict.Gates(
        threshold=replace(
            thresholds.percentages(options["threshold"], verdict.DEFAULT_THRESHOLD, "--threshold"),
            own={} if typed("threshold") else _own_thresholds(benchmarks),
        ),
        threshold_ir=thresholds.percentages(options["threshold_ir"], None, "--threshold-ir"),
        threshold_cache=thresholds.percentage(options["threshold_cache"], "--threshold-cache"),
        max_drop=thresholds.percentages(options["max_drop"], verdict.DEFAULT_MAX_DROP, "--max-drop"),
        limits=(*map(thresholds.limit, options["limit"]), *(() if typed("limit") else own_limits(benchmarks))),
        metric=metric,
        fail_on=verdict.FailOn(options.get("fail_on", verdict.FailOn.REGRESSION)),
        force=options["force"],
        model=None if model is None else CostModel.parse(model),
    )


def _own_thresholds(benchmarks: Sequence[BenchmarkSpec]) -> dict[str, Fraction]:
    from cachegrind_bench.model.thresholds import percentage

    return {spec.id: percentage(spec.threshold, "threshold") for spec in benchmarks if spec.threshold is not None}


def own_limits(benchmarks: Sequence[BenchmarkSpec]) -> list[Limit]:
    """Return the limits that stand in the tables of these benchmarks."""
    from cachegrind_bench.model.thresholds import limit

    return [replace(limit(text), pattern=spec.id, own=True) for spec in benchmarks for text in spec.limits]
