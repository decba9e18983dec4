"""Several results as one, as of the shards of a suite: what must agree, and what is kept.

Knows results; must not know where they come from or go to.

A result states machine (`env`), commit and version of the tool once for all its benchmarks, so these must agree.
`created_at` becomes the earliest, `env.info` what all agree in, and the branch that of the first result to know one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec
from msgspec.structs import replace

from cachegrind_bench.compare.verdict import field_differences
from cachegrind_bench.errors import NotComparableError
from cachegrind_bench.model.result import Benchmark, Commit, Result

# In `env.info` of a shard's result: how the suite was cut, and into how many benchmarks.
SHARD_PLAN, SHARD_BENCHMARKS = "shard_plan", "shard_benchmarks"

_LONGEST = 200


def merged(results: Sequence[tuple[str, Result]]) -> Result:
    """Return all benchmarks in one result, in their order; those equal but for `wall_ms`, `python` and `calls` are one. At least one is given.

    NotComparableError, naming two of them, if results do not belong together or contradict each other.
    """
    (first_name, first), *others = results
    for name, other in others:
        _check_alike(first_name, first, name, other)
    known: dict[str, tuple[str, Benchmark]] = {}
    for name, result in results:
        for benchmark in result.benchmarks:
            earlier_name, earlier = known.setdefault(benchmark.id, (name, benchmark))
            _check_same(earlier_name, earlier, name, benchmark)
            # These may have been asked for in one of them only.
            python, calls = earlier.python or benchmark.python, earlier.calls or benchmark.calls
            known[benchmark.id] = earlier_name, replace(earlier, python=python, calls=calls)
    commits = [result.commit for _, result in results]
    infos = [result.env.info for _, result in results]
    agreed = {name: value for name, value in infos[0].items() if all(info.get(name) == value for info in infos)}
    return replace(
        first,
        created_at=min(result.created_at for _, result in results),
        commit=next((commit for commit in commits if commit is not None and commit.branch is not None), first.commit),
        env=replace(first.env, info=agreed),
        benchmarks=tuple(benchmark for _, benchmark in known.values()),
    )


def _check_alike(name: str, result: Result, other_name: str, other: Result) -> None:
    env, other_env = result.env, other.env
    # The key is a hash of the fields: it says something of its own only in a file that was altered.
    differences = field_differences(env.fields, other_env.fields) or field_differences(
        {"key": env.key}, {"key": other_env.key}
    )
    if differences:
        shown = ", ".join(f"{item.name} {_shown(item.base)} → {_shown(item.candidate)}" for item in differences)
        raise NotComparableError(
            f"{name} and {other_name} were measured on machines whose results cannot be compared: {shown}",
            hint="measure all parts with the same Valgrind and options, on the same kind of machine",
        )
    if _commit_text(result.commit) != _commit_text(other.commit):
        raise NotComparableError(
            f"{name} is of {_commit_text(result.commit)}, and {other_name} of {_commit_text(other.commit)}",
            hint="measure all parts on the same commit; changed files make a checkout dirty",
        )
    plans = env.info.get(SHARD_PLAN), other_env.info.get(SHARD_PLAN)
    if None not in plans and plans[0] != plans[1]:
        raise NotComparableError(
            f"{name} and {other_name} are parts of a suite that was split in two ways, so benchmarks may be missing",
            hint="give all machines the same .cg-bench/timings.json, or none, and the same --shard M/N, -k and --tag",
        )
    if other.tool_version != result.tool_version:
        raise NotComparableError(
            f"{name} was made by cg-bench {result.tool_version}, and {other_name} by cg-bench {other.tool_version}",
            hint="measure all parts with the same version",
        )


def missing_from(results: Sequence[Result]) -> int:
    """Return how many benchmarks of the suite whose shards these are, by `merged`, are in none of them."""
    totals = [total for result in results if isinstance(total := result.env.info.get(SHARD_BENCHMARKS), int)]
    known = {item.id for result in results for item in result.benchmarks}
    return max(0, max(totals, default=0) - len(known))


def _commit_text(commit: Commit | None) -> str:
    return "no known commit" if commit is None else f"commit {commit.sha}{', dirty' if commit.dirty else ''}"


def _check_same(name: str, benchmark: Benchmark, other_name: str, other: Benchmark) -> None:
    values, other_values = _compared(benchmark), _compared(other)
    if values == other_values:
        return
    path, value, other_value = _first_difference(values, other_values, "")
    raise NotComparableError(
        f"{benchmark.id}: {path[1:]} is {_shown(value)} in {name} and {_shown(other_value)} in {other_name}",
        hint="a benchmark that is in two files must be the same in both; leave one file out, or measure again",
    )


def _compared(benchmark: Benchmark) -> dict[str, object]:
    """Return what must be equal, the key last: it is a hash of fields that say more.

    What Python functions cost, and calls, may be counted in another execution.
    """
    values = msgspec.structs.asdict(benchmark)
    del values["wall_ms"], values["python"], values["calls"]
    values["key"] = values.pop("key")
    return values


def _first_difference(value: object, other: object, path: str) -> tuple[str, object, object]:
    """Return the place of the first difference of two unequal values, and what is there; None where nothing is."""
    parts, others = _parts(value), _parts(other)
    if parts is not None and others is not None:
        for name in parts | others:
            if parts.get(name) != others.get(name):
                return _first_difference(parts.get(name), others.get(name), path + name)
    return path, value, other


def _parts(value: object) -> dict[str, object] | None:
    """Return what a value consists of, by what leads there; None for a value that has no parts."""
    if isinstance(value, Mapping):
        return {f".{name}": part for name, part in cast("Mapping[str, object]", value).items()}
    if isinstance(value, tuple):
        return {f"[{index}]": part for index, part in enumerate(cast("tuple[object, ...]", value))}
    if isinstance(value, msgspec.Struct):
        return {f".{name}": getattr(value, name) for name in value.__struct_fields__}
    return None


def _shown(value: object) -> str:
    if value is None:
        return "missing"
    if _parts(value) is not None:
        return "present"
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
