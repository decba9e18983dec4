"""Which benchmarks of the project's suite are meant: the configuration, and the options that choose from it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Configuration

NO_BENCHMARKS = "'cg-bench init' shows what one looks like"


def configuration(cwd: Path) -> Configuration:
    """Return the project's configuration. UsageError with advice if there is none, or it has no benchmarks."""
    from cachegrind_bench.config.load import load
    from cachegrind_bench.config.source import find

    path = find(cwd)
    if path is None:
        raise UsageError(
            "there is no command to measure, and no configuration of a suite",
            hint="as in: cg-bench run -- python benchmark.py\n'cg-bench init' writes a configuration to start from",
        )
    found = load(path)
    if not found.benchmarks:
        raise UsageError(f"{path} has no benchmarks", hint=NO_BENCHMARKS)
    return found


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The benchmarks that were chosen, in their order, and whether that is fewer than there are.

    `info` goes into the result of a shard, so that `merge` can tell whether the parts are those of one whole.
    """

    specs: list[BenchmarkSpec]
    partial: bool
    info: Mapping[str, str | int]


def selected(specs: Sequence[BenchmarkSpec], options: Mapping[str, Any], store: Path) -> Selection:
    """Return the benchmarks that -k, --benchmark, --tag and --shard choose. UsageError if there are none."""
    from cachegrind_bench.model.text import matches
    from cachegrind_bench.suite.select import matcher, parse_shard, tagged

    expression, patterns = options["expression"], options["patterns"]
    fits, wanted = matcher(expression) if expression else None, tagged(options["tags"])
    chosen = [
        spec
        for spec in specs
        if (fits is None or fits(spec.id))
        and wanted(spec.tags)
        and (not patterns or any(matches(spec.id, pattern) for pattern in patterns))
    ]
    if not chosen:
        raise UsageError("no benchmark was selected", hint=_advice(specs, options))
    if options["shard"] is None:
        return Selection(specs=chosen, partial=len(chosen) < len(specs), info={})
    return _shard(chosen, *parse_shard(options["shard"]), store)


def _advice(specs: Sequence[BenchmarkSpec], options: Mapping[str, Any]) -> str:
    """Return why -k and --tag may choose nothing, and what there is to choose from."""
    from cachegrind_bench.config.suggestions import nearest

    tags = {tag: tag for tag in sorted({tag for spec in specs for tag in spec.tags})}
    wrong = next((tag for tag in options["tags"] if tag not in tags), None)
    if wrong is not None and not tags.keys() & set(options["tags"]):
        meant = nearest(wrong, tags)
        there = f"the tags are: {_first(list(tags))}" if tags else "there are no tags"
        return f"no benchmark has the tag {wrong!r}{f'; did you mean {meant!r}?' if meant else ''}\n{there}"
    words = re.findall(r"[^\s()'\"]+", options["expression"] or "")
    tag = next((word for word in words if word in tags), None)
    known = f"there are: {_first([spec.id for spec in specs])}"
    if tag is not None:
        return f"{tag!r} is a tag: --tag {tag}\n{known}"
    plain = next((word.replace("*", "").replace("?", "") for word in words if set(word) & set("*?")), None)
    if plain is not None:
        advice = f"-k {plain} fits every id that has it" if plain else "without -k all are chosen"
        return f"-k has no wildcards: {advice}\n{known}"
    return known


def _first(words: Sequence[str]) -> str:
    return f"{', '.join(words[:10])}{' and more' if len(words) > 10 else ''}"


def _shard(specs: Sequence[BenchmarkSpec], index: int, count: int, store: Path) -> Selection:
    from cachegrind_bench.store.timings import read_timings
    from cachegrind_bench.suite.merge import SHARD_BENCHMARKS, SHARD_PLAN
    from cachegrind_bench.suite.select import plan_of, shards

    parts = shards(specs, count, read_timings(store))
    info: dict[str, str | int] = {SHARD_PLAN: plan_of(parts), SHARD_BENCHMARKS: len(specs)}
    return Selection(specs=parts[index - 1], partial=True, info=info)
