"""`cg-bench verify`: hunt the noise of one command."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.help import Command
from cachegrind_bench.cli.options import (
    command_argument,
    execution_options,
    format_option,
    measure_request,
    named_time_model,
    refuse_typed,
)
from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from cachegrind_bench.usecases.measurement import MeasureRequest

# As in `measure.axes`, which is not imported just for a help page; a test compares the two.
AXES = (
    *("repeat", "environment", "layout", "libraries", "locales", "users", "directories", "cwd", "place", "load", "cpu"),
    *("scheduling", "aslr", "random", "hash-seed", "clock", "stdout"),
)

_EPILOG = """\b
Marks:
  ✓  all nine counts and every function's row stayed identical
  ✗  counts moved, and would between two runs of 'cg-bench run': functions and advice below
  ~  counts depend on it, but every run has the same: the memory layout, installed libraries and locales, users, order of
     directories, place, scheduling, addresses, random bytes, hash seeds and kind of stdout are pinned by the seal;
     another path of the working directory may move counts by up to 0.01 %, those of a short program by up to 0.1 % and
     10,000 instructions
  –  skipped, or not distinguishable from the noise of plain repeats

\b
Exit code: 0 if nothing is marked ✗, 1 if anything is, 4 if the command could not be measured.

\b
The command is executed up to 27 times under Valgrind and once without. Where plain repeats differ, the clock is pinned
to see whether it is the cause; if so, the other axes are tried with the clock pinned.

With --hardware, nothing is changed: the command is executed five times without Valgrind, and its instructions, mispredicted
branches and LL misses are compared with those that the CPU counted, as far as the kernel lets programs ask for them; the
estimate of the time, or the time by a model, is compared with the clock.

\b
Examples:
  cg-bench verify -- python benchmark.py
  cg-bench verify --only clock --only load -- ./build/server --self-test
"""


@click.command("verify", cls=Command, context_settings={"allow_interspersed_args": False}, epilog=_EPILOG)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(AXES),
    metavar="AXIS",
    help=f"Try only this axis: {', '.join(AXES[:-1])} or {AXES[-1]}. Repeatable.",
)
@click.option(
    "--skip", multiple=True, type=click.Choice(AXES[1:]), metavar="AXIS", help="Leave this axis out. Repeatable."
)
@click.option("--hardware", is_flag=True, help="Compare with the counters of the hardware and the clock instead.")
@click.option(
    "--time-model",
    metavar="NAME",
    help="With --hardware: compare the time by this model of 'calibrate' with the clock.",
)
@execution_options
@format_option
@command_argument
def command(**options: Any) -> int:
    """Find the cause of noise: measure a command again and again, changing one thing at a time.

    It changes nothing at first (plain repeats), then in turn the size of the caller's environment, the memory layout, the
    installed libraries, locales and users, the order of directories, the depth of the working directory, its place, the
    CPU load, the CPU, which thread runs next, ASLR, random bytes, hash seeds, the clock, and the kind of stdout. For each it
    says whether the counts stayed the same, and if not, which functions moved and what to do. The program's output is shown
    only if it fails.
    """
    from cachegrind_bench.measure.axes import AXES as ALL
    from cachegrind_bench.measure.verify import verify
    from cachegrind_bench.render.diagnosis import verification
    from cachegrind_bench.render.progress import Display
    from cachegrind_bench.usecases.measurement import plan_of, valgrind_setup_of

    only, skip = options["only"], options["skip"]
    both = sorted({*only} & {*skip})
    if both:
        raise UsageError(f"--only and --skip both name {', '.join(both)}")
    axes = [axis for axis in ALL if (not only or axis.key in only) and axis.key not in skip]
    request = measure_request(options)
    if options["hardware"]:
        return _compare_with_hardware(request, options)
    refuse_typed(("time_model",), "is for a comparison with the clock", "add --hardware")
    plan = plan_of(request)
    with Display(sys.stderr) as display, valgrind_setup_of(request).session(echo=lambda _chunk: None) as ready:
        found = verify(ready.on_cpu(plan), ready.runner, display.phase, axes=axes)
    output.write(verification(found, options["form"]))
    return 0 if found.held else 1


def _compare_with_hardware(request: MeasureRequest, options: dict[str, Any]) -> int:
    from msgspec.structs import replace

    from cachegrind_bench.measure.hardware import executed
    from cachegrind_bench.measure.session import default_cpu
    from cachegrind_bench.render import table
    from cachegrind_bench.render.hardware import report
    from cachegrind_bench.render.progress import Display
    from cachegrind_bench.render.time_models import check_caches
    from cachegrind_bench.usecases.measurement import measured, plan_of

    refuse_typed(("only", "skip"), "cannot be combined with --hardware", "leave one out")
    if options["form"] == "json":
        raise UsageError("--hardware has no JSON: nothing of it is to be kept", hint="leave one out")
    model = named_time_model(options["time_model"])
    if model is not None:
        check_caches(str(request.geometry), model)
    request = replace(request, geometry=replace(request.geometry, branches=True, simulated=True))
    plan = plan_of(request)
    with Display(sys.stderr) as display:
        result = measured(request, plan, display.phase, lambda _chunk: None)
        native = executed(replace(plan, cpu=default_cpu(0)), display.phase)
    output.write(table.render(report(result, native, model), options["form"], width=output.terminal_width()))
    return 0
