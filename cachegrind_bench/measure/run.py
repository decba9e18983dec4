"""Measures one command: warm-up, sealed executions under Valgrind, and the benchmark that comes of them."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from cachegrind_bench.hermetic import environment
from cachegrind_bench.measure.command import default_id
from cachegrind_bench.measure.identity import benchmark_key_fields
from cachegrind_bench.measure.seal import require_sealed, seal_parts
from cachegrind_bench.measure.surroundings import surrounded
from cachegrind_bench.model import score as cost_models
from cachegrind_bench.model.result import Benchmark, Run, Score, comparability_key
from cachegrind_bench.valgrind.options import Tool
from cachegrind_bench.valgrind.runner import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from cachegrind_bench.hermetic.launch import Outcome
    from cachegrind_bench.hermetic.supervisor import Clock
    from cachegrind_bench.measure.command import Command
    from cachegrind_bench.measure.identity import Identity
    from cachegrind_bench.model.metrics import Counts
    from cachegrind_bench.model.result import Environment, SealPart
    from cachegrind_bench.model.score import CostModel
    from cachegrind_bench.valgrind.runner import Measurement, Runner


class Progress(Protocol):
    """Told what is going on; a phase lasts until the next."""

    def phase(self, text: str) -> None:
        """Say what begins now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure and how; times in milliseconds."""

    command: Command
    cwd: Path
    environ: Mapping[str, str]
    id: str | None = None
    request: environment.Request = field(default_factory=lambda: environment.Request(values={}))
    model: CostModel = cost_models.DEFAULT
    repeat: int = 1
    layouts: int = 1
    warmup: int = 1
    timeout_ms: int | None = None
    stdin: Path | None = None
    prepare: str | None = None
    cleanup: str | None = None
    ignore_exit_status: bool = False
    require_sealed: bool = False
    cpu: int | None = None
    clock: Clock | None = None
    lines: bool = False

    @property
    def variables(self) -> dict[str, str]:
        """The variables the program is to see, not yet padded."""
        return environment.compose(self.environ, self.request, {})

    @property
    def schedule(self) -> tuple[int, ...]:
        """The memory layouts of the measured executions, in their order."""
        return tuple(layout for layout in range(self.layouts) for _ in range(self.repeat))

    @property
    def benchmark_id(self) -> str:
        """The given id, else one made from the command."""
        return self.id or default_id(self.command.typed, self.cwd)


def target_of(plan: Plan) -> Target:
    """Return the execution that this plan asks for."""
    return Target(
        argv=plan.command.argv,
        executable=plan.command.executable,
        variables=plan.variables,
        cwd=str(plan.cwd),
        stdin=None if plan.stdin is None else str(plan.stdin),
        cpu=plan.cpu,
        timeout_ms=plan.timeout_ms,
        clock=plan.clock,
        ignore_status=plan.ignore_exit_status,
        held_back=tuple(environment.held_back(plan.environ, plan.request)),
        lines=plan.lines,
    )


def measure(
    plan: Plan,
    runner: Runner,
    env: Environment,
    identify: Callable[[], Callable[[], Identity]],
    progress: Progress,
) -> Benchmark:
    """Measure as planned. MeasurementError if the command fails, times out or cannot be measured.

    `identify` begins to read the executable's identity, and returns what waits for it. It is called once the first
    preparation is done, since that may build the program, and runs beside the first execution.
    """
    identity: Identity | None = None

    @contextlib.contextmanager
    def execution() -> Generator[None]:
        nonlocal identity
        with surrounded(plan):
            reading = identify() if identity is None else None
            yield
            if reading is not None:
                identity = reading()

    measurements = _execute(plan, runner, env, progress, execution)
    assert identity is not None  # noqa: S101 - there was an execution
    return _benchmark(plan, env, identity, measurements)


def _execute(
    plan: Plan,
    runner: Runner,
    env: Environment,
    progress: Progress,
    execution: Callable[[], contextlib.AbstractContextManager[None]],
) -> list[Measurement]:
    target = target_of(plan)
    tool = Tool.CACHEGRIND
    for number in range(plan.warmup):
        progress.phase(f"warm-up{_of(number, plan.warmup)}, without Valgrind")
        with execution():
            outcome = runner.warm_up(target)
        _seal(plan, outcome, env)
        if starts_processes(outcome):
            tool = Tool.CALLGRIND
    measurements: list[Measurement] = []
    while len(measurements) < len(plan.schedule):
        number = len(measurements)
        progress.phase(f"measuring{_of(number, len(plan.schedule))} under {tool.value.capitalize()}")
        with execution():
            measurement = runner.measure(replace(target, layout=plan.schedule[number]), tool)
        _seal(plan, measurement.outcome, env)
        if measurement.accounts.split_needed:
            # It starts processes after all; Cachegrind's files would count the past of each child again.
            tool = Tool.CALLGRIND
            measurements.clear()
        else:
            measurements.append(measurement)
    return measurements


def _seal(plan: Plan, outcome: Outcome, env: Environment) -> dict[str, SealPart]:
    """Return how this execution was sealed; MeasurementError if that is not enough."""
    seal = seal_parts(
        outcome.unsealed,
        supervised=outcome.images is not None,
        guest_chase_off=env.fields.get("guest_chase") == "off",
        clock_pinned=plan.clock is not None,
    )
    if plan.require_sealed:
        require_sealed(seal)
    return seal


def _of(number: int, count: int) -> str:
    return f" {number + 1} of {count}" if count > 1 else ""


def starts_processes(outcome: Outcome) -> bool:
    """Tell whether this execution forked or executed another program, which only Callgrind can keep apart."""
    return any(image.forked or image.forks or image.replaced for image in outcome.images or ())


def _benchmark(plan: Plan, env: Environment, identity: Identity, measurements: Sequence[Measurement]) -> Benchmark:
    chosen = lower_median(measurements, plan.model)
    accounts, outcome = chosen.accounts, chosen.outcome
    seal = _seal(plan, outcome, env)
    key_fields = benchmark_key_fields(identity, seal, chosen.tool)
    counts = accounts.profile.counts()
    warnings = [*plan.command.notes, *accounts.doubts, *_launcher_notes(chosen, counts, plan.command.script)]
    if plan.ignore_exit_status and outcome.exit_status:
        warnings.append(f"the command ended with exit status {outcome.exit_status}, which was ignored")
    return Benchmark(
        id=plan.benchmark_id,
        key=comparability_key({**env.fields, **key_fields}),
        key_fields=key_fields,
        command=tuple(_storable(word) for word in plan.command.typed),
        exit_status=outcome.exit_status,
        warnings=tuple(_storable(warning) for warning in warnings),
        tool=chosen.tool.value,
        counts=counts,
        score=Score(model=plan.model.name, value=plan.model.score(counts)),
        runs=tuple(
            Run(layout=layout, counts=item.accounts.profile.counts())
            for layout, item in zip(plan.schedule, measurements, strict=True)
        ),
        processes=accounts.processes,
        processes_exact=not accounts.doubts,
        objects=identity.objects,
        wall_ms=sum(item.outcome.wall_ms for item in measurements),
        seal=seal,
        profile=accounts.profile,
    )


def _storable(text: str) -> str:
    """Return text that may hold undecodable bytes of a path as UTF-8, with these bytes as escapes."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def lower_median(measurements: Sequence[Measurement], model: CostModel) -> Measurement:
    """Return the measurement in the middle by score, then Ir; of two in the middle the lower."""

    def order(item: Measurement) -> tuple[int, int]:
        counts = item.accounts.profile.counts()
        return model.score(counts), counts.Ir

    return sorted(measurements, key=order)[(len(measurements) - 1) // 2]


def _launcher_notes(measurement: Measurement, counts: Counts, script: str | None) -> list[str]:
    """Name a program that only started the real one by exec: its share is in the score."""
    images = measurement.outcome.images or ()
    if not images:
        return []
    main = [image for image in images if image.pid == images[0].pid]
    if len(main) < 2:
        return []
    shares = {item.executable: item.counts.Ir for item in measurement.accounts.processes}
    first, last = main[0].path, main[-1].path
    share = shares.get(first, 0)
    if first == last or not share:
        return []
    percent = 100 * share / (counts.Ir or 1)
    note = (
        f"{first}{f', running {script},' if script else ''} executed {last} in its place: {share:,} instructions ({percent:.1f} %) of this score are its own; "
        f"measure {last} itself if they do not belong"
    )
    return [note]
