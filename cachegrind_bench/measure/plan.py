"""What is to be measured, and how: the plan of one benchmark, and the execution that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from cachegrind_bench.hermetic import environment
from cachegrind_bench.hermetic.execution import Clock, Execution
from cachegrind_bench.hermetic.place import Checkout
from cachegrind_bench.measure.command import Command, default_id
from cachegrind_bench.model.metrics import DEFAULT_MODEL, CostModel
from cachegrind_bench.region import VARIABLE as REGIONS_VARIABLE
from cachegrind_bench.valgrind.options import WHOLE, Collect, Scope

Progress = Callable[[str], object]  # shows what goes on from now


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to measure, whatever the program; times in milliseconds.

    `python_optional` leaves the Python profile out, with a warning, where the program cannot have one.
    """

    cwd: Path
    environ: Mapping[str, str]
    id: str | None = None
    model: CostModel = DEFAULT_MODEL
    repeat: int = 1
    layouts: int = 1
    warmup: int = 1
    timeout_ms: int | None = None
    prepare: str | None = None
    cleanup: str | None = None
    ignore_exit_status: bool = False
    require_sealed: bool = False
    clock: Clock | None = None
    keep_place: bool | str = False  # or why
    lines: bool = False
    call_tree: bool = False
    collect: Collect = WHOLE
    python_profile: bool = False
    python_optional: bool = False


class Plan(Settings, frozen=True, kw_only=True):
    """What to measure and how: the program was found, as was its input."""

    command: Command
    request: environment.Request = msgspec.field(default_factory=lambda: environment.Request(values={}))
    stdin: Path | None = None
    cpu: int | None = None

    @property
    def variables(self) -> dict[str, str]:
        """The variables the program is to see, not yet padded."""
        own = {REGIONS_VARIABLE: "1"} if self.collect.scope is Scope.REGIONS else {}
        return environment.compose(self.environ, self.request, own)

    @property
    def collected(self) -> Collect:
        """The counts to take in each execution, and the details to keep of them."""
        # Callgrind counts calls even where it counts nothing else, and their instructions there only.
        partly = self.call_tree and self.collect.scope in {Scope.REGIONS, Scope.TOGGLE}
        return replace(
            self.collect, by_instruction=self.collect.by_instruction or partly, lines=self.lines, calls=self.call_tree
        )

    @property
    def schedule(self) -> tuple[int, ...]:
        """The memory layouts of the measured executions, in their order."""
        return tuple(layout for layout in range(self.layouts) for _ in range(self.repeat))

    @property
    def benchmark_id(self) -> str:
        """The given id, else one made from the command."""
        inside = "".join(f"::{name}" for name in self.collect.toggles)
        return self.id or default_id(self.command.typed, self.cwd) + inside


def execution_of(plan: Plan) -> Execution:
    """Return the execution that this plan asks for."""
    return Execution(
        argv=plan.command.argv,
        variables=plan.variables,
        cwd=str(plan.cwd),
        executable=plan.command.executable,
        begin=len(plan.command.argv) - len(plan.command.typed) + 1,
        stdin=None if plan.stdin is None else str(plan.stdin),
        cpu=plan.cpu,
        keep_place="as --keep-place asks for" if plan.keep_place is True else plan.keep_place or "",
        checkout=Checkout.of(plan.environ),
        clock=plan.clock,
        timeout_ms=plan.timeout_ms,
        ignore_status=plan.ignore_exit_status,
        held_back=tuple(environment.held_back(plan.environ, plan.request)),
    )
