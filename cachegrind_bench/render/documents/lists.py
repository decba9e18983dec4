"""Lists as JSON: the benchmarks of the configuration, baselines, stored runs, and what is wrong with a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from cachegrind_bench.model.described import Milliseconds, doc
from cachegrind_bench.model.result import Result, Snapshot
from cachegrind_bench.model.text import printable
from cachegrind_bench.render.documents.document import Document, fields, optional
from cachegrind_bench.store.protocol import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.config.benchmarks import BenchmarkSpec


class ListedBenchmark(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark of the suite; null is what the configuration does not say."""

    id: Annotated[str, doc("name of the benchmark")]
    command: Annotated[tuple[str, ...], doc("the command, word by word")]
    cwd: Annotated[str | None, doc("where it runs")]
    stdin: Annotated[str | None, doc("file that is its standard input")]
    env: Annotated[tuple[str, ...], doc("names of the variables that are passed on or set, without their values")]
    setup: Annotated[str | None, doc("shell command before the suite")]
    prepare: Annotated[str | None, doc("shell command before every execution")]
    cleanup: Annotated[str | None, doc("shell command after every execution")]
    parameters: Annotated[Mapping[str, str], doc("value of each parameter")]
    tags: Annotated[tuple[str, ...], doc("its tags")]
    place: Annotated[str, doc("file and line of the configuration")]
    repeat: Annotated[int | None, doc("number of measured executions")]
    warmup: Annotated[int | None, doc("number of executions before them, without Valgrind")]
    layouts: Annotated[int | None, doc("number of memory layouts")]
    timeout_ms: Annotated[Milliseconds | None, doc("longest execution")]
    threshold: Annotated[str | None, doc("its threshold, as in the configuration")]
    limits: Annotated[tuple[str, ...], doc("its limits, as NAME=COUNT")]


class BenchmarkList(Document, frozen=True, kw_only=True):
    """`list --format json`: what the suite would run."""

    schema: Literal["cg-bench.list/1"] = "cg-bench.list/1"
    configuration: Annotated[str, doc("path of the configuration")]
    benchmarks: Annotated[tuple[ListedBenchmark, ...], doc("the benchmarks, in the order of the configuration")]


class BaselineEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A saved baseline; one that cannot be read has only its name and the error."""

    name: Annotated[str, doc("name of the baseline")]
    error: Annotated[str | None, doc("why it cannot be read")]
    benchmarks: Annotated[tuple[str, ...] | msgspec.UnsetType, doc("ids of its benchmarks")] = msgspec.UNSET
    commit: Annotated[str | msgspec.UnsetType | None, doc("id of the commit")] = msgspec.UNSET
    branch: Annotated[str | msgspec.UnsetType | None, doc("its branch")] = msgspec.UNSET
    dirty: Annotated[bool | msgspec.UnsetType | None, doc("whether tracked files differed from it")] = msgspec.UNSET
    created_at: Annotated[str | msgspec.UnsetType, doc("when it was measured, UTC")] = msgspec.UNSET


class BaselineList(Document, frozen=True, kw_only=True):
    """`baseline list --format json`: all saved baselines."""

    schema: Literal["cg-bench.baselines/1"] = "cg-bench.baselines/1"
    baselines: Annotated[tuple[BaselineEntry, ...], doc("the baselines by name")]


class RunList(Document, frozen=True, kw_only=True):
    """`history list --format json`: stored runs, the newest commit first."""

    schema: Literal["cg-bench.history/1"] = "cg-bench.history/1"
    store: Annotated[str, doc("URL of the store")]
    total: Annotated[int, doc("number of runs that there are; `--last` may list fewer")]
    runs: Annotated[tuple[Snapshot, ...], doc("the runs")]


class ProblemList(Document, frozen=True, kw_only=True):
    """`history fsck --format json`: what is wrong with a store."""

    schema: Literal["cg-bench.fsck/1"] = "cg-bench.fsck/1"
    store: Annotated[str, doc("URL of the store")]
    records: Annotated[int, doc("number of records")]
    problems: Annotated[tuple[Problem, ...], doc("where something is wrong, and what")]


def benchmarks(specs: Sequence[BenchmarkSpec], origin: str) -> str:
    """Return benchmarks of the configuration at this place."""
    return BenchmarkList(configuration=origin, benchmarks=tuple(map(_spec, specs))).text()


def _spec(spec: BenchmarkSpec) -> ListedBenchmark:
    def text(path: Path | None) -> str | None:
        return optional(path, printable)

    own = {"cwd", "stdin", "env"}
    return ListedBenchmark(
        **fields(spec, *(name for name in ListedBenchmark.__struct_fields__ if name not in own)),
        cwd=text(spec.cwd),
        stdin=text(spec.stdin),
        env=tuple(item.partition("=")[0] for item in spec.env),  # names only: a value may be a secret
    )


def baselines(held: Mapping[str, Result | str]) -> str:
    """Return baselines by name, and what they hold, or why they cannot be read."""
    return BaselineList(baselines=tuple(_baseline(name, found) for name, found in held.items())).text()


def _baseline(name: str, held: Result | str) -> BaselineEntry:
    if isinstance(held, str):
        return BaselineEntry(name=name, error=held)
    return BaselineEntry(
        name=name,
        error=None,
        benchmarks=tuple(item.id for item in held.benchmarks),
        **{
            name: optional(held.commit, attrgetter(of))
            for name, of in {"commit": "sha", "branch": "branch", "dirty": "dirty"}.items()
        },
        created_at=held.created_at,
    )
