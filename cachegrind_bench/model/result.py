"""The result of one run of the tool: what was measured, on what, how well sealed; and what a history keeps of it. Values only.

The file format of these values is in `codec`; how they come to be is in `measure`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec.structs import replace

from cachegrind_bench.model.described import Points, doc
from cachegrind_bench.model.metrics import Branches, Counts, Profile
from cachegrind_bench.model.sizes import LARGEST_SIZE, GrowthClass

if TYPE_CHECKING:
    from fractions import Fraction

    from cachegrind_bench.model.call_graph import CallGraph
    from cachegrind_bench.model.python_profile import PythonProfile


# How the command of a benchmark begins that pytest runs; the rest is its id there.
PYTEST = ("pytest", "--cg-bench")
# Of a framework's loop: a result has the counts of this many iterations, whatever number was executed.
PER_ITERATIONS = 1000


class Status(StrEnum):
    """How a benchmark ended; only an `ok` one has counts."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    ERROR = "error"


class SealState(StrEnum):
    """What became of one part of the seal, the best first."""

    PINNED = "pinned"
    KEPT = "kept"
    UNAVAILABLE = "unavailable"


class SealPart(msgspec.Struct, frozen=True, kw_only=True):
    """State of one part of the seal; `why` is set unless the part is pinned."""

    state: SealState
    why: str | None = None


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """The commit that was measured."""

    sha: Annotated[str, doc("id of the commit")]
    parent: Annotated[str | None, doc("id of its first parent")]
    branch: Annotated[str | None, doc("branch that was checked out")]
    dirty: Annotated[bool, doc("whether tracked files differed from it")]
    committed_at: Annotated[str, doc("when it was committed, UTC, as 2026-01-31T12:00:00Z")]

    @property
    def described(self) -> str:
        """The commit in words."""
        branch = f" on {self.branch}" if self.branch else ""
        return f"{self.sha[:12]}{branch}{' with uncommitted changes' if self.dirty else ''}"


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine contributes to the counts (`fields`, hashed into `key`) and what merely explains (`info`)."""

    key: str
    fields: Mapping[str, str]
    info: Mapping[str, str | int]

    @property
    def with_caches(self) -> bool:
        """Whether caches were simulated. If not, all counts but Ir are 0."""
        return self.fields.get("geometry") != NO_CACHES


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """A score under the cost model of that name."""

    model: Annotated[str, doc("weights of the score")]
    value: Annotated[Points, doc("the score; less is better")]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of one execution in one memory layout."""

    layout: int
    counts: Counts


class ProcessCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one executable cost itself, over all processes that ran it."""

    executable: str
    counts: Counts


class ObjectFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An executable or library; `build_id` is the GNU build-id in hex, or `sha256:` and 40 hex digits.

    `compilers` made it, each with its options, as far as the file says so; of the system's files that is not read.
    """

    path: str
    build_id: str
    compilers: tuple[str, ...] = ()


NO_CACHES = "none"  # the geometry of caches that are not simulated
Size = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_SIZE)]


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a benchmark in a group of some that differ in the size of their input."""

    group: Annotated[str, doc("the benchmark whose sizes these are")]
    size: Annotated[Size, doc("the size of its input")]
    bound: Annotated[GrowthClass | None, doc("the class of growth that it must not exceed; null without one")] = None
    predict: Annotated[Size | None, doc("the size that its cost is predicted for; null without one")] = None


class Benchmark(msgspec.Struct, frozen=True, kw_only=True):
    """One named thing and what its run gave. `counts`, `score` and `profile` are None unless `status` is ok.

    `output` is the last part of what the program wrote, where that was to be kept; `python` what its Python functions cost,
    in an execution of its own; `calls` which functions called which, where that was asked for. Where a framework's iterations
    are counted, `counts` are those of `PER_ITERATIONS`, and `iterations` were counted. `taken_over`: the counts are those of an
    earlier run, as nothing that it read has changed. `branches` belong to `counts`, where the time is estimated.
    """

    id: str
    key: str
    key_fields: Mapping[str, str]
    command: tuple[str, ...]
    parameters: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    tags: tuple[str, ...] = ()
    status: Status = Status.OK
    exit_status: int | None = None
    error: str | None = None
    warnings: tuple[str, ...] = ()
    tool: str = "cachegrind"
    counts: Counts | None = None
    score: Score | None = None
    runs: tuple[Run, ...] = ()
    processes: tuple[ProcessCost, ...] = ()
    processes_exact: bool = True
    objects: tuple[ObjectFile, ...] = ()
    wall_ms: int = 0
    seal: Mapping[str, SealPart] = msgspec.field(default_factory=dict[str, SealPart])
    profile: Profile | None = None
    output: str | None = None
    python: PythonProfile | None = None
    iterations: int | None = None
    calls: CallGraph | None = None
    taken_over: bool | None = None
    scale: Scale | None = None
    branches: Branches | None = None

    def without_caches(self) -> Benchmark:
        """Return it as it would be if no caches had been simulated."""
        if self.counts is None:
            return self
        runs = tuple(replace(run, counts=run.counts.without_caches()) for run in self.runs)
        return replace(self, counts=self.counts.without_caches(), runs=runs)

    def by_layout(self) -> dict[int, list[Counts]]:
        """Return the counts of the runs in each memory layout."""
        layouts: dict[int, list[Counts]] = {}
        for run in self.runs:
            layouts.setdefault(run.layout, []).append(run.counts)
        return layouts


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one run of the tool measured; `created_at` is UTC, as 2026-01-31T12:00:00Z."""

    tool_version: str
    created_at: str
    commit: Commit | None
    env: Environment
    benchmarks: tuple[Benchmark, ...]

    @property
    def failed(self) -> list[str]:
        """The ids of the benchmarks that failed."""
        return [item.id for item in self.benchmarks if item.status is not Status.OK]


class Point(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One benchmark in one run."""

    id: Annotated[str, doc("name of the benchmark")]
    key: Annotated[str, doc("comparability key")]
    status: Annotated[Status, doc("how it ended")]
    counts: Annotated[Counts | None, doc("the nine event counts; null unless it is ok")]
    score: Annotated[Score | None, doc("the score; null unless it is ok")]
    taken_over: Annotated[bool | None, doc("whether the counts are those of an earlier run that read the same")] = None
    scale: Annotated[Scale | None, doc("the size of its input, and the group it is in")] = None
    iterations: Annotated[int | None, doc("how many iterations of a framework's loop were counted")] = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A stored run."""

    uid: Annotated[str, doc("name of the run in the store")]
    created_at: Annotated[str, doc("when it was measured, UTC")]
    tool_version: Annotated[str, doc("version of cg-bench that measured it")]
    commit: Annotated[Commit | None, doc("the commit that was measured")]
    env_key: Annotated[str, doc("key of the machine")] = msgspec.field(name="environment")
    points: Annotated[tuple[Point, ...], doc("its benchmarks with their counts")] = msgspec.field(name="benchmarks")


class CommitNote(msgspec.Struct, frozen=True, kw_only=True):
    """A commit as Git has it; `parents` has the first parent first, `committed_at` is UTC, with a Z."""

    sha: str
    parents: tuple[str, ...]
    committed_at: str
    author: str
    subject: str


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """A tag on the line of commits that is looked at."""

    name: str
    sha: str


class Since(msgspec.Struct, frozen=True):
    """How a score changed, relative to the last run at this time."""

    change: Fraction
    at: str


def is_pytests(result: Result) -> bool:
    """Return whether a result was made by `pytest --cg-bench`."""
    return bool(result.benchmarks) and all(item.command[:2] == PYTEST for item in result.benchmarks)


def comparability_key(fields: Mapping[str, str]) -> str:
    """Return 12 hex digits of the SHA-256 over the canonical JSON of these fields."""
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:12]
