"""The functions of a baseline: a history keeps counts only, but the job that measured it left its profiles as an artifact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.ci.artifact import BASE, MOST_SENT, RESULT, unpack
from cachegrind_bench.compare.verdict import State
from cachegrind_bench.errors import CgBenchError

if TYPE_CHECKING:
    from cachegrind_bench.ci.github import Client
    from cachegrind_bench.model.codec import ResultFile
    from cachegrind_bench.model.result import Benchmark
    from cachegrind_bench.usecases.comparison import Profiled, Report, Side

# Artifacts of the same name that are looked through: those of a few weeks of a busy repository.
_MOST_LOOKED_AT = 500


def unexplained(made: Report) -> bool:
    """Tell whether something moved of which it is not known in what function."""
    return any(
        item.change is not None and item.state is not State.UNCHANGED and item.id not in made.details
        for item in made.comparison.differences
    )


def with_profiles(base: Side, api: Client, artifact: str) -> Side:
    """Return the base with the profiles of the run that measured it; as it is where they cannot be had, which is told."""
    from cachegrind_bench.model.codec import ResultFile
    from cachegrind_bench.usecases.comparison import InMemory

    commit = base.file.result.commit
    if commit is None:
        return base
    try:
        found = api.last_own(artifact, lambda item: item.sha == commit.sha, most=_MOST_LOOKED_AT)
        if found is None:
            return _told(base, f"no artifact {artifact} of its run is left")
        files = unpack(api.download(found, MOST_SENT), found.name, {RESULT: True, BASE: False})
        source = ResultFile(files[RESULT], found.name)
        benchmarks = tuple(_joined(item, base.file, source) for item in base.file.result.benchmarks)
        return replace(base, file=InMemory(replace(base.file.result, benchmarks=benchmarks)))
    except CgBenchError as error:
        return _told(base, error.message)


def _told(base: Side, why: str) -> Side:
    return replace(base, remarks=(*base.remarks, f"the base's functions are not known, so none is named: {why}"))


def _joined(stored: Benchmark, base: Profiled, source: ResultFile) -> Benchmark:
    """Return a benchmark of the base with its profiles; from the source only if that is the very same measurement."""
    profile, python = base.profile(stored.id), base.python(stored.id)
    same = (item for item in source.result.benchmarks if item.id == stored.id)
    other = next(same, None)
    if other is not None and (other.key, other.counts) == (stored.key, stored.counts):
        profile = profile or source.profile(stored.id)
        python = python or source.python(stored.id)
    return replace(stored, profile=profile, python=python)
