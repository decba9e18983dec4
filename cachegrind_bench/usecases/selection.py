"""Which benchmarks of the project's suite are measured: those of the configuration that a request chooses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from cachegrind_bench.config.benchmarks import BenchmarkSpec, Configuration
from cachegrind_bench.config.load import load
from cachegrind_bench.config.source import find
from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import matches, some
from cachegrind_bench.store.timings import read_timings
from cachegrind_bench.suite.select import matcher, parse_shard, plan_of, shards, tagged

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Benchmark
    from cachegrind_bench.usecases.measurement import MeasureRequest

NO_BENCHMARKS = "'cg-bench init' shows what one looks like"
_SHOWN = 10


class SelectRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What -k, --benchmark, --tag and --shard choose."""

    expression: str | None = None
    patterns: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    shard: str | None = None


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The benchmarks that were chosen, in their order, and whether that is fewer than there are.

    `info` goes into the result of a shard, so that `merge` can see whether the parts are those of one whole.
    """

    specs: Sequence[BenchmarkSpec]
    partial: bool
    info: Mapping[str, str | int]


def configuration(cwd: Path) -> Configuration:
    """Return the project's configuration. UsageError with advice if there is none, or it has no benchmarks."""
    path = find(cwd)
    if path is None:
        raise UsageError(
            "there is no command to measure, and no suite is configured",
            hint="as in: cg-bench run -- python benchmark.py\n'cg-bench init' writes a configuration to start from",
        )
    found = load(path)
    if not found.benchmarks and not found.entries:
        raise UsageError(f"{path} has no benchmarks", hint=NO_BENCHMARKS)
    return found


def suite_of(request: MeasureRequest, harness: str | None) -> Configuration:
    """Return the suite with all its benchmarks listed: that of the configuration, or the command's, which are of a harness.

    UsageError if no suite is configured, the harness is not known, or two benchmarks have the same id; MeasurementError if it cannot be built or listed.
    """
    cwd = request.cwd
    if harness is None:
        found = configuration(cwd)
    else:
        from cachegrind_bench.harness.protocol import entry_of

        entry = entry_of(harness, request.command, cwd)
        found = Configuration(path=cwd, root=cwd, defaults={}, benchmarks=(), entries=(entry,))
    return with_listed(found, request.environ, request.env)


def with_listed(found: Configuration, environ: Mapping[str, str], env: Sequence[str] = ()) -> Configuration:
    """Return the configuration with the benchmarks that its entries stand for, which are built and listed for it.

    `env` has variables of the command line, as `NAME` or `NAME=VALUE`. MeasurementError if that fails, UsageError for an id that is taken.
    """
    if not found.entries:
        return found
    from cachegrind_bench.harness.protocol import expanded

    configured: Any = found.defaults.get("env", ())
    environ = {**environ, **dict(item.split("=", 1) for item in (*configured, *env) if "=" in item)}
    listed = expanded(found.entries, environ, found.benchmarks)
    return replace(found, benchmarks=(*found.benchmarks, *listed), entries=())


def selected(specs: Sequence[BenchmarkSpec], request: SelectRequest, store: Path) -> Selection:
    """Return the benchmarks that are chosen; wall times in the `store` make shards equal. UsageError if there are none."""
    if not specs:
        raise UsageError("there are no benchmarks", hint=NO_BENCHMARKS)
    chosen = list(filter(chooses(request), specs))
    if not chosen:
        raise UsageError("no benchmark was selected", hint=_advice(specs, request))
    if request.shard is None:
        return Selection(specs=chosen, partial=len(chosen) < len(specs), info={})
    from cachegrind_bench.suite.merge import SHARD_BENCHMARKS, SHARD_PLAN

    index, count = parse_shard(request.shard)
    parts = shards(chosen, count, read_timings(store))
    info: dict[str, str | int] = {SHARD_PLAN: plan_of(parts), SHARD_BENCHMARKS: len(chosen)}
    return Selection(specs=parts[index - 1], partial=True, info=info)


def chooses(request: SelectRequest) -> Callable[[BenchmarkSpec | Benchmark], bool]:
    """Return whether a benchmark, of a suite or of a result, is among those that are asked for, before they are cut into shards."""
    named, wanted = chooses_id(request), tagged(request.tags)
    return lambda spec: named(spec.id) and wanted(spec.tags)


def chooses_id(request: SelectRequest) -> Callable[[str], bool]:
    """Return whether a benchmark of this id is among those that are asked for, if its tags do not decide."""
    fits = matcher(request.expression) if request.expression else None
    return lambda name: (
        (fits is None or fits(name))
        and (not request.patterns or any(matches(name, pattern) for pattern in request.patterns))
    )


def _advice(specs: Sequence[BenchmarkSpec], request: SelectRequest) -> str:
    """Return why -k and --tag may choose nothing, and what there is to choose from."""
    from cachegrind_bench.config.suggestions import nearest

    tags = {tag: tag for tag in sorted({tag for spec in specs for tag in spec.tags})}
    wrong = next((tag for tag in request.tags if tag not in tags), None)
    if wrong is not None and not tags.keys() & set(request.tags):
        near = nearest(wrong, tags)
        there = f"the tags are: {some(list(tags), _SHOWN)}" if tags else "there are no tags"
        return f"no benchmark has the tag {wrong!r}{f'; did you mean {near!r}?' if near else ''}\n{there}"
    words = re.findall(r"[^\s()'\"]+", request.expression or "")
    tag = next((word for word in words if word in tags), None)
    known = f"there are: {some([spec.id for spec in specs], _SHOWN)}"
    if tag is not None:
        return f"{tag!r} is a tag: --tag {tag}\n{known}"
    plain = next((word.replace("*", "").replace("?", "") for word in words if set(word) & set("*?")), None)
    if plain is not None:
        advice = f"-k {plain} matches every id that contains it" if plain else "leave -k out to choose all"
        return f"-k has no wildcards: {advice}\n{known}"
    return known
