"""Set-up commands of benchmarks, such as builds: once each, natively and unsealed, before anything is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.measure.hooks import native_failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cachegrind_bench.suite.execute import Job, Watcher


def set_up(jobs: Sequence[Job], environ: Mapping[str, str], watcher: Watcher) -> dict[str, str]:
    """Run every set-up command once, natively and unsealed, one after the other; return the ids of jobs it failed for.

    Jobs of one folder that name the same command share it.
    """
    reasons: dict[tuple[Path, str], str | None] = {}
    broken: dict[str, str] = {}
    for job in jobs:
        if job.setup is None:
            continue
        place = (job.cwd, job.setup)
        if place not in reasons:
            watcher.setting_up(job.setup)
            reasons[place] = _set_up(job.setup, job.cwd, environ)
        reason = reasons[place]
        if reason is not None:
            broken[job.id] = reason
    return broken


def _set_up(command: str, cwd: Path, environ: Mapping[str, str]) -> str | None:
    try:
        failure = native_failure(command, environ, cwd)
    except MeasurementError as error:
        return f"its setup could not be run: {error.message}"
    if failure is None:
        return None
    end, words = failure
    return f"its setup failed with {end}: {command}\n{words}".strip()
