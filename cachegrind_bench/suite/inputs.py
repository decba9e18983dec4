"""What a result depends on: what is known before a run (its key), and what the run then reads (a recording)."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.hermetic.trace_inputs import Recording, merged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.model.result import Environment
    from cachegrind_bench.valgrind.options import Tool
    from cachegrind_bench.valgrind.runner import Measurement, Runner, Target

# Fields of a plan that change no result, or (the first three) are in the key in another form. A new field is in the key
# unless it is named here: that can cost a run too many, never one too few.
_NOT_AS_SUCH = frozenset(("environ", "request", "id", "cpu", "timeout_ms"))


def key_of(
    plan: Plan, env: Environment, *, version: str, valgrind: Sequence[str] = (), setup: str | None = None
) -> str:
    """Return the name of all results that this plan may give here while no file changes: 32 hex digits.

    Who we are and which kernel this is decide what the seal can do and which files can be read. Values of variables
    may be secrets: only the hash is ever stored. `valgrind` says where the one that is used lies.
    """
    host = os.uname()
    document = {
        "version": version,
        "environment": env.key,
        "valgrind": list(valgrind),
        "host": [host.nodename, host.release, str(os.geteuid())],
        "id": plan.benchmark_id,
        "variables": sorted(plan.variables.items()),
        "setup": setup,
        "plan": {name: repr(value) for name, value in msgspec.structs.asdict(plan).items() if name not in _NOT_AS_SUCH},
    }
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(slots=True, kw_only=True)
class RecordingRunner:
    """A runner that has noted what its measured executions have read."""

    runner: Runner
    _recordings: list[Recording] = field(default_factory=list[Recording])

    def warm_up(self, target: Target) -> Outcome:
        """Execute once, sealed, without Valgrind."""
        return self.runner.warm_up(target)

    def measure(self, target: Target, tool: Tool) -> Measurement:
        """Execute once under Valgrind and note what is read."""
        measurement = self.runner.measure(replace(target, record_files=True), tool)
        self._note(measurement)
        return measurement

    def measure_regions(self, target: Target) -> dict[str, Measurement]:
        """Execute once under Callgrind and note what is read."""
        regions = self.runner.measure_regions(replace(target, record_files=True))
        for measurement in list(regions.values())[:1]:  # all are of one execution
            self._note(measurement)
        return regions

    def _note(self, measurement: Measurement) -> None:
        missing = Recording(inputs=(), incomplete="what it reads was not recorded")
        self._recordings.append(measurement.outcome.recording or missing)

    def recording(self) -> Recording:
        """Return what all of them have read."""
        return merged(self._recordings)
