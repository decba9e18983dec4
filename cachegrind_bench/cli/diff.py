"""`cg-bench diff`: compare two results."""

from __future__ import annotations

from typing import Any

import click

from cachegrind_bench.cli.comparison_options import (
    deliver,
    detail_options,
    fail_on_option,
    gate_options,
    gates_of,
    report_options,
)
from cachegrind_bench.cli.help import Command, options_group
from cachegrind_bench.cli.options import (
    COMPARED,
    REPORT,
    configured_benchmarks,
    named_time_model,
    opened_store,
    pattern_option,
    refuse_typed,
    repository,
    size_limit_option,
    store_option,
    struct_of,
    time_model_option,
)
from cachegrind_bench.usecases.comparison_inputs import CompareRequest, compare_sides

_EPILOG = """\b
States, worst first:
  ✗ regression           the score grew by more than the threshold, or a limit was exceeded
  ! failed               the benchmark failed on one side
  ? suspicious drop      more than half of the instructions are gone: does it still do its work?
  ≠ not comparable       measured under another Valgrind, cache geometry, libc, interpreter, ...
  – missing              the candidate lacks it
  ~ noisy                repeated runs differ too much to tell (three times the noise is the least threshold)
  ✓ improvement          would be a regression the other way round
  + new                  the base lacks it
  ≈ unchanged (layout)   the same work at other addresses: Ir did not move, the score did (a regression beyond
                         --threshold-cache, unless layouts disagree), or CPython's method cache moved both
  = unchanged            within the threshold

\b
Exit code: 1 if there is a regression; else 4 if a candidate failed; else 3 if any is missing, suspicious or not
comparable, or nothing was compared; else 0. Bad usage or input: 2.

\b
Examples:
  cg-bench diff main.json pr.json
  cg-bench diff main.json pr.json --threshold 0.1% --threshold 'json-*=2%' --limit 'startup:Ir=150_000_000'
  cg-bench diff merge-base:main pr.json --markdown summary.md --format github
  cg-bench run -o - -- ./prog | cg-bench diff main.json - --explain 30 --by file
"""


_side_options = options_group(
    pattern_option,
    click.option("--model", metavar="MODEL", help="Weights of the score. [default: the base's]"),
    store_option,
    click.option("--require-baseline", is_flag=True, help="Exit with code 3 if no base is found."),
    heading=COMPARED,
)
_rows_option = options_group(
    click.option(
        "--rows",
        type=click.IntRange(0, 1_000_000),
        default=50,
        metavar="N",
        help="Number of benchmarks in the table; 0 for all.",
    ),
    time_model_option,
    heading=REPORT,
)


@click.command("diff", cls=Command, epilog=_EPILOG)
@gate_options
@fail_on_option
@_side_options
@detail_options
@_rows_option
@size_limit_option
@click.argument("base")
@click.argument("candidate")
def command(base: str, candidate: str, **options: Any) -> int:
    """Compare the results BASE and CANDIDATE: what changed, by how much, and which function did it.

    Each is a result file, '-' for stdin, a saved baseline (see 'cg-bench baseline'), or a commit whose run is stored (see
    'cg-bench history'); file:NAME, baseline:NAME and rev:NAME say which it is. As BASE, the name of a branch and
    merge-base:BRANCH mean the nearest run at that commit or up to 50 before it that was measured in the same environment.
    """
    request = struct_of(
        CompareRequest,
        options,
        base=base,
        candidate=candidate,
        gates=gates_of(options, configured_benchmarks()),
        report=report_options(options),
    )
    if options["form"] == "json":
        refuse_typed(("time_model",), "is for tables: JSON has exact counts only", "leave one out")
    model = named_time_model(options["time_model"])
    made, code = compare_sides(request, repository(), lambda: opened_store(options))
    if model is not None:
        from cachegrind_bench.render.time_models import time_remarks

        made = made.with_remarks((*made.comparison.remarks, *time_remarks(made.comparison, model)))
    deliver(made, request.report)
    return code
