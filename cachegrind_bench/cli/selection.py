"""Which benchmarks of the project's suite are meant: the configuration, and the options that choose from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cachegrind_bench.config.values import BenchmarkSpec, Configuration

selection_options = (
    click.option("-k", "expression", metavar="EXPR", help="Only ids that fit, as in 'json and not slow'."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only benchmarks with this tag. Repeatable."),
    click.option("--shard", metavar="M/N", help="Only the M-th of N parts, for as many machines."),
)


def configuration(cwd: Path) -> Configuration:
    """Return the project's configuration. UsageError with advice if there is none, or it has no benchmarks."""
    from cachegrind_bench.config.load import find, load

    path = find(cwd)
    if path is None:
        raise UsageError(
            "there is no command to measure, and no configuration of a suite",
            hint="as in: cg-bench run -- python benchmark.py\n'cg-bench init' writes a configuration to start from",
        )
    found = load(path)
    if not found.benchmarks:
        raise UsageError(f"{path} has no benchmarks", hint="'cg-bench init' shows what one looks like")
    return found


def selected(specs: Sequence[BenchmarkSpec], options: Mapping[str, Any], store: Path) -> list[BenchmarkSpec]:
    """Return the benchmarks that -k, --tag and --shard choose. UsageError if there are none."""
    from cachegrind_bench.store.timings import read_timings
    from cachegrind_bench.suite.select import matcher, parse_shard, shard

    expression = options["expression"]
    fits = matcher(expression) if expression else None
    chosen = [
        spec
        for spec in specs
        if (fits is None or fits(spec.id)) and (not options["tags"] or set(options["tags"]) & set(spec.tags))
    ]
    if not chosen:
        known = ", ".join(spec.id for spec in specs[:10])
        raise UsageError(
            "no benchmark was selected", hint=f"there are: {known}{' and more' if len(specs) > 10 else ''}"
        )
    if options["shard"] is None:
        return chosen
    index, count = parse_shard(options["shard"])
    return shard(chosen, index, count, read_timings(store))
