"""`cg-bench check`: measure a command, compare it with a base, and report to `git bisect run` by the exit code."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from cachegrind_bench.cli import output
from cachegrind_bench.cli.comparison_options import (
    deliver,
    detail_options,
    evidence_option,
    gate_options,
    gates_of,
    report_options,
)
from cachegrind_bench.cli.help import Command, options_group
from cachegrind_bench.cli.options import (
    COMPARED,
    command_argument,
    measure_request,
    measuring_options,
    names_of,
    repository,
    size_limit_option,
    typed,
    typed_words,
)
from cachegrind_bench.errors import MeasurementError, NotComparableError, NoValgrindError, UsageError
from cachegrind_bench.model.text import some
from cachegrind_bench.usecases.comparison import InMemory, Side, compared
from cachegrind_bench.usecases.comparison_inputs import resolve
from cachegrind_bench.usecases.result_files import read_result

if TYPE_CHECKING:
    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.model.result import Benchmark, Result
    from cachegrind_bench.usecases.measurement import MeasureRequest

_SHOWN = 10

_EPILOG = """\b
Exit code, as 'git bisect run' expects it:
  0    good: no regression
  1    bad: a regression
  125  cannot be measured in this commit: --prepare or the command fails, times out or is missing, lost more than half
       of its work, or runs under another libc or interpreter; git tries another commit
  128  bad usage, a base that cannot be read or is of another machine, or an error in cg-bench: git stops

\b
Examples:
  cg-bench check --base main.json -- ./build/parser data.txt
  git bisect start bad-commit good-commit
  git bisect run cg-bench check --base good.json --prepare 'make -s' -- ./parser data.txt
"""


@click.command("check", cls=Command, context_settings={"allow_interspersed_args": False}, epilog=_EPILOG)
@options_group(
    click.option("--base", metavar="FILE", required=True, help="Compare with this result file or saved baseline."),
    heading=COMPARED,
)
@gate_options
@measuring_options
@detail_options
@evidence_option
@size_limit_option
@command_argument
def command(**options: Any) -> int:
    """Measure a command and compare it with a base: both 'run' and 'diff' in one step, made for 'git bisect run'.

    If the base has one benchmark, that one is compared with, whatever its id. If it has several, --id chooses one of them,
    or the id that is made from the command. --prepare runs once more than in 'run', at the start: it may build the program.
    """
    from cachegrind_bench.model.codec import encode
    from cachegrind_bench.render.progress import Display
    from cachegrind_bench.usecases.evidence import Evidence
    from cachegrind_bench.usecases.measurement import measured, prepared_plan

    gates = gates_of(options)
    output.check_result_file(options["output"])
    shown = report_options(options)
    shown.check_files()
    request = measure_request(options)
    base = read_result(resolve(options["base"], request.cwd), limit=options["max_size"], note=output.NOTICES.note)
    known, name = _benchmark_of(base.result, options["base"], request)
    request = replace(request, id=name)
    plan = prepared_plan(request, _existing_plan)
    plan = replace(plan, call_tree=gates.needs_calls(plan.benchmark_id))
    # The one benchmark, whatever it is called in the base.
    renamed = replace(base.result, benchmarks=(replace(base.with_evidence(known), id=plan.benchmark_id),))
    # Who asks only for the exit code, as in a bisection, reads no explanation.
    evidence = Evidence.NEVER if options["quiet"] and not typed("evidence") else Evidence(options["evidence"])
    try:
        with Display(None if options["quiet"] else sys.stderr) as display:
            result = measured(
                request,
                plan,
                display.phase,
                display.write,
                explained=lambda result: bool(evidence.wants(renamed, result, gates)),
            )
    except NoValgrindError as error:  # no commit could be measured here
        raise UsageError(error.message, hint=error.hint) from error
    before = Side(name=options["base"], file=InMemory(renamed))
    is_held = gates.threshold_allocations.get(plan.benchmark_id) is not None
    if (is_held and renamed.benchmarks[0].counts != result.benchmarks[0].counts) or evidence.wants(
        renamed, result, gates
    ):
        before = _explained(before, result.benchmarks[0].id, request)
    made = compared(before, Side(name="this run", file=InMemory(result)), gates, shown)
    code = made.exit_code()
    if code == NotComparableError.exit_code and (gates.force or base.result.env.key == result.env.key):
        code = MeasurementError.exit_code  # it lies with this commit; another may do
    try:
        output.write_file(options["output"], encode(result))
        write = partial(output.write_beside, options["output"])
        if (
            options["quiet"] and not typed("form") and shown.form == "table"
        ):  # in the middle of a bisection, the verdict should not go unseen
            shown.write_files(made)
            write(made.headline())
        else:
            deliver(made, shown, write=write)
    except BrokenPipeError:
        output.forget(sys.stdout)  # that nobody reads on must not make a bad commit a good one
    return code


def _explained(base: Side, name: str, request: MeasureRequest) -> Side:
    """Return the base with its calls, which are recorded at its commit unless it has them."""
    from cachegrind_bench.usecases.evidence import is_explained
    from cachegrind_bench.usecases.worktrees import explained_base

    if all(map(is_explained, base.file.whole().benchmarks)):
        return base
    words = typed_words({*names_of(measuring_options)} - {"output", "quiet", "benchmark_id"})
    return explained_base(base, ["--id", name, *words, "--", *request.command], repository(), output.NOTICES)


def _benchmark_of(base: Result, base_name: str, request: MeasureRequest) -> tuple[Benchmark, str]:
    """Return what to compare with, and the id to measure under. UsageError if the base has nothing to compare with."""
    from cachegrind_bench.measure.command import default_id
    from cachegrind_bench.model.result import Status

    wanted = request.id or default_id(request.command, request.cwd)
    fitting = [item for item in base.benchmarks if item.id == wanted or len(base.benchmarks) == 1]
    if not fitting:
        ids = some([item.id for item in base.benchmarks], _SHOWN) or "none at all"
        hint = f"--id names one of those it has: {ids}"
        raise UsageError(f"the base {base_name} has no benchmark {wanted!r}", hint=hint)
    known = fitting[0]
    if known.status is not Status.OK:
        raise UsageError(
            f"in the base {base_name} the benchmark {known.id!r} is {known.status.value}: {known.error or ''}",
            hint="measure the base again",
        )
    return known, request.id or known.id


def _existing_plan(request: MeasureRequest) -> Plan:
    """Return the plan. MeasurementError if the program is one of this commit, and not there or not to be executed."""
    from cachegrind_bench.usecases.measurement import plan_of

    program = request.command[0]
    if os.sep not in program:  # one that is looked up on PATH is not of this commit
        return plan_of(request)
    if not os.path.exists(program):
        raise MeasurementError(f"there is no {program} here", hint="use --prepare to build it")
    try:
        return plan_of(request)
    except UsageError as error:  # it cannot be executed, or its input is not there: another commit may do
        raise MeasurementError(error.message, hint=error.hint) from error
