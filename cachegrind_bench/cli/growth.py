"""`cg-bench growth`: measure a command with several sizes of its input, and find out how its cost grows."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import click
from msgspec.structs import replace

from cachegrind_bench.cli import output
from cachegrind_bench.cli.help import Command, options_group
from cachegrind_bench.cli.options import (
    REPORT,
    color_option,
    command_argument,
    format_option,
    jobs_option,
    measure_request,
    measuring_options,
    names_of,
    project_root,
    struct_of,
    typed,
)

_EPILOG = """\b
Sizes are a range, as 1000..64000x2 or 10..50+10, or a list, as 1000,2000,4000,8000: four at least, ascending. Each is
measured once, and stands for {size} in the command, --env, --stdin, --prepare and --cleanup.

Counts are exact, so a few small sizes show the class of growth: 1, log n, n, n log n, n^1.5, n², n² log n, n³ or 2^n. The
constant part, as that of the start, is found with it. The class is judged by Ir, since caches make steps.

\b
Exit code: 1 if it grows faster than --bound, 4 if a size could not be measured.

\b
Examples:
  cg-bench growth --sizes 1000..64000x2 -- ./prog {size}
  cg-bench growth --sizes 1000..16000x2 --bound 'n log n' --python-profile -- python sort.py {size}
  cg-bench growth --sizes 100..1600x2 --prepare './generate {size} > data' --stdin data -- ./parse
"""

_size_options = options_group(
    click.option("--sizes", required=True, metavar="SIZES", help="Sizes of the input, as in 1000..64000x2."),
    click.option("--bound", metavar="CLASS", help="Exit with code 1 if it grows faster than this, as in 'n log n'."),
    click.option("--predict", metavar="SIZE", type=click.IntRange(1, 10**15), help="Predict the cost at this size."),
    click.option(
        "--python-profile", is_flag=True, help="Also find out how each Python function grows (CPython 3.12+)."
    ),
    heading="Growth",
)


@click.command("growth", cls=Command, context_settings={"allow_interspersed_args": False}, epilog=_EPILOG)
@_size_options
@options_group(format_option, color_option, jobs_option, heading=REPORT)
@measuring_options
@command_argument
def command(**options: Any) -> int:
    """Measure a command with several sizes of its input, and report how its cost grows: as a whole, and by function."""
    from cachegrind_bench.compare.growth import growth_change
    from cachegrind_bench.model.sizes import class_of, sizes_of
    from cachegrind_bench.render.progress import SuiteDisplay
    from cachegrind_bench.store.baselines import Baselines
    from cachegrind_bench.usecases.comparison import InMemory, growths_in
    from cachegrind_bench.usecases.growth import sized_specs
    from cachegrind_bench.usecases.selection import Selection
    from cachegrind_bench.usecases.suite import SuiteRequest, measure_suite

    output.check_result_file(options["output"])
    sizes = sizes_of(options["sizes"], "--sizes")
    bound = None if options["bound"] is None else class_of(options["bound"], "--bound")
    each = measure_request(options)
    specs = sized_specs(each, partial(_scale, bound, options["predict"]), sizes)
    each = replace(each, env=())
    request = struct_of(SuiteRequest, options, each=each, typed=frozenset(filter(typed, names_of(measuring_options))))
    show = partial(SuiteDisplay, None if options["quiet"] else sys.stderr)
    selection = Selection(specs=specs, partial=False, info={})
    run = measure_suite(request, selection, each.cwd, Baselines.find(each.cwd).store, show)
    output.write_result(options["output"], run.result, each.cwd)
    found = growths_in(InMemory(run.result))
    if not options["quiet"] or typed("form"):
        form, color = options["form"], options["color"]
        text = output.report_text(run.result, form, [], color, growth=found.values(), root=project_root())
        output.write_beside(options["output"], text)
    return run.exit_code() or int(any(growth_change(None, item).exceeds is not None for item in found.values()))


def _scale(bound: Any, predict: int | None, group: str, size: int) -> Any:
    from cachegrind_bench.model.result import Scale

    return Scale(group=group, size=size, bound=bound, predict=predict)
