"""`cg-bench check`: measure a command or the suite, compare it with a base, and report to `git bisect run` by the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager, nullcontext
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
    write_files,
)
from cachegrind_bench.cli.help import Command, options_group
from cachegrind_bench.cli.options import (
    BENCHMARKS,
    COMPARED,
    configured_benchmarks,
    filter_options,
    harness_option,
    is_suite,
    jobs_option,
    measure_request,
    measuring_options,
    names_of,
    optional_command_argument,
    repository,
    size_limit_option,
    struct_of,
    typed,
    typed_words,
)
from cachegrind_bench.errors import MeasurementError, NotComparableError, NoValgrindError, UsageError
from cachegrind_bench.log import LOG
from cachegrind_bench.model.text import some
from cachegrind_bench.usecases.comparison import InMemory, Side, compared
from cachegrind_bench.usecases.comparison_inputs import resolve
from cachegrind_bench.usecases.result_files import read_result

if TYPE_CHECKING:
    from cachegrind_bench.compare.verdict import Gates
    from cachegrind_bench.measure.plan import Plan
    from cachegrind_bench.model.codec import ResultFile
    from cachegrind_bench.model.result import Benchmark, Result
    from cachegrind_bench.usecases.evidence import Evidence
    from cachegrind_bench.usecases.measurement import MeasureRequest

_SHOWN = 10

_EPILOG = """\b
Exit code, as 'git bisect run' expects it:
  0    good: no regression
  1    bad: a regression
  125  cannot be measured in this commit: --prepare, the build or the command fails, times out or is missing, lost more
       than half of its work, or runs under another libc or interpreter; or there is no suite, or it lacks a benchmark that
       the base has and no other regressed; or in a bisection the commit's configuration is wrong; git tries another commit
  128  bad usage, a base that cannot be read or is of another machine, or an error in cg-bench: git stops

\b
Examples:
  cg-bench check --base main.json -- ./build/parser data.txt
  git bisect start bad-commit good-commit
  git bisect run cg-bench check --base good.json --prepare 'make -s' -- ./parser data.txt
  git bisect run cg-bench check --base good.json -k words
  git bisect run cg-bench check --base good.json --harness criterion -- cargo bench
"""


@click.command("check", cls=Command, context_settings={"allow_interspersed_args": False}, epilog=_EPILOG)
@options_group(
    click.option("--base", metavar="FILE", required=True, help="Compare with this result file or saved baseline."),
    heading=COMPARED,
)
@gate_options
@filter_options
@options_group(jobs_option, harness_option, heading=BENCHMARKS)
@measuring_options
@detail_options
@evidence_option
@size_limit_option
@optional_command_argument
def command(**options: Any) -> int:
    """Measure a command, or without one the project's suite, and compare it with a base: both 'run' and 'diff' in one step,
    made for 'git bisect run'.

    A command is compared with the only benchmark of the base, whatever its id. If the base has several, --id chooses one of
    them, or the id that is made from the command. --prepare runs once more than in 'run', at the start: it may build the
    program. In a suite, only benchmarks that are also in the base are measured; they are compared by id.
    """
    from cachegrind_bench.render.comparison.view import headline
    from cachegrind_bench.usecases.evidence import Evidence

    suite = is_suite(options)
    with _of_this_commit():
        configured = configured_benchmarks() if suite and not options["harness"] else ()
    gates = gates_of(options, configured)
    output.check_result_file(options["output"])
    shown = report_options(options)
    shown.check_files()
    request = measure_request(options)
    base = read_result(resolve(options["base"], request.cwd), limit=options["max_size"])
    # Who asks only for the exit code, as in a bisection, reads no explanation.
    evidence = Evidence.NEVER if options["quiet"] and not typed("evidence") else Evidence(options["evidence"])
    measure = _measured_suite if suite else _measured_command
    try:
        before, after = measure(options, request, base, gates, evidence)
    except NoValgrindError as error:  # no commit could be measured here
        raise UsageError(error.message, hint=error.hint) from error
    result = after.file.result
    made = compared(before, after, gates, shown)
    code = made.exit_code()
    if code == NotComparableError.exit_code and (gates.force or base.result.env.key == result.env.key):
        code = MeasurementError.exit_code  # it lies with this commit; another may do
    try:
        output.write_result(options["output"], after.file.whole(), request.cwd)
        write = partial(output.write_beside, options["output"])
        if (
            options["quiet"] and not typed("form") and shown.form == "table"
        ):  # in the middle of a bisection, the verdict should not go unseen
            write_files(made, shown)
            write(f"{headline(made)}\n")
        else:
            deliver(made, shown, write=write)
    except BrokenPipeError:
        output.forget(sys.stdout)  # that nobody reads on must not make a bad commit a good one
    return code


def _measured_command(
    options: dict[str, Any], request: MeasureRequest, base: ResultFile, gates: Gates, evidence: Evidence
) -> tuple[Side, Side]:
    """Return the one benchmark as it is in the base, by the id that it has here, and measured."""
    from cachegrind_bench.render.progress import Display
    from cachegrind_bench.usecases.measurement import measured, prepared_plan

    known, name = _benchmark_of(base.result, options["base"], request)
    request = replace(request, id=name)
    plan = prepared_plan(request, _existing_plan)
    plan = replace(plan, call_tree=gates.needs_calls(plan.benchmark_id))
    renamed = replace(base.result, benchmarks=(replace(base.with_evidence(known), id=plan.benchmark_id),))
    with Display(None if options["quiet"] else sys.stderr) as display:
        result = measured(
            request,
            plan,
            display.phase,
            display.write,
            explained=lambda result: bool(evidence.wants(renamed, result, gates)),
        )
    before, after = Side(name=options["base"], file=InMemory(renamed)), Side(name="this run", file=InMemory(result))
    if _to_explain(before, after, gates, evidence):
        before = _explained(before, (plan.benchmark_id,), ["--id", plan.benchmark_id, "--", *request.command])
    return before, after


def _measured_suite(
    options: dict[str, Any], request: MeasureRequest, base: ResultFile, gates: Gates, evidence: Evidence
) -> tuple[Side, Side]:
    """Return the chosen benchmarks of the suite as they are in the base, and measured. MeasurementError if this commit has none."""
    from cachegrind_bench.render.progress import SuiteDisplay
    from cachegrind_bench.store.baselines import Baselines
    from cachegrind_bench.usecases.evidence import with_evidence
    from cachegrind_bench.usecases.numbers import numbers_of
    from cachegrind_bench.usecases.selection import Selection, SelectRequest, chooses, suite_of
    from cachegrind_bench.usecases.suite import SuiteRequest, measure_suite

    name = options["base"]
    known = _chosen(base.result, name, chooses(struct_of(SelectRequest, options)))
    ids = {item.id for item in known}
    with _of_this_commit() if options["harness"] is None else nullcontext():  # else it is what was typed
        found = suite_of(request, options["harness"])
    specs = [spec for spec in found.benchmarks if spec.id in ids]
    if not specs:
        raise MeasurementError(f"the suite has none of the benchmarks to compare: {some(sorted(ids), _SHOWN)}")
    given = frozenset(filter(typed, names_of(measuring_options)))
    suite = struct_of(SuiteRequest, options, each=request, typed=given, needs_calls=gates.needs_calls)
    suite = replace(suite, iterations=numbers_of(known))
    show = partial(SuiteDisplay, None if options["quiet"] else sys.stderr)

    def measure(chosen: Collection[str], **more: bool) -> Side:
        selection = Selection(specs=[spec for spec in specs if spec.id in chosen], partial=True, info={})
        asked = replace(suite, each=replace(request, **more))
        run = measure_suite(asked, selection, found.root, Baselines.find(found.root).store, show)
        if run.outcome.interrupted:
            raise KeyboardInterrupt
        return Side(name="this run", file=InMemory(run.result))

    before = Side(name=name, file=InMemory(replace(base.result, benchmarks=tuple(map(base.with_evidence, known)))))
    after = measure(ids)
    unclear = evidence.wants(before.file.result, after.file.result, gates)
    if unclear:
        LOG.info(f"again, with calls: {some(unclear, _SHOWN)}")
        try:
            after = with_evidence(after, measure(unclear, call_tree=True, python_profile=True))
        except MeasurementError as error:
            LOG.warning(f"it could not be measured again with calls: {error.message}")
    wanted = _to_explain(before, after, gates, evidence)
    if wanted:
        command = ["--", *request.command] if request.command else []
        before = _explained(before, wanted, [word for name in wanted for word in ("--benchmark", name)] + command)
    return before, after


@contextmanager
def _of_this_commit() -> Generator[None]:
    """Take a configuration that is not there, or has no suite, for what cannot be measured in this commit: another one may have it."""
    try:
        yield
    except UsageError as error:
        raise MeasurementError(error.message, hint=error.hint) from error


def _to_explain(before: Side, after: Side, gates: Gates, evidence: Evidence) -> list[str]:
    """Return the ids of the benchmarks of which the base's calls are needed, to explain them or to count allocations."""
    wanted = set(evidence.wants(before.file.result, after.file.result, gates))
    counts = {item.id: item.counts for item in before.file.result.benchmarks}
    return [
        item.id
        for item in after.file.result.benchmarks
        if item.id in wanted
        or (gates.threshold_allocations.get(item.id) is not None and counts.get(item.id) != item.counts)
    ]


def _explained(base: Side, ids: Sequence[str], words: Sequence[str]) -> Side:
    """Return the base with the calls of these benchmarks, which are recorded at its commit by these words unless it has them."""
    from cachegrind_bench.cli.run import measured_in
    from cachegrind_bench.usecases.evidence import is_explained
    from cachegrind_bench.usecases.worktrees import explained_base

    if all(is_explained(item) for item in base.file.whole().benchmarks if item.id in ids):
        return base
    names = {*names_of(measuring_options, jobs_option, harness_option)} - {"output", "quiet", "benchmark_id"}
    return explained_base(base, ids, [*typed_words(names), *words], repository(), run=measured_in)


def _benchmark_of(base: Result, base_name: str, request: MeasureRequest) -> tuple[Benchmark, str]:
    """Return what to compare with, and the id to measure under. UsageError if the base has nothing to compare with."""
    from cachegrind_bench.measure.command import default_id

    wanted = request.id or default_id(request.command, request.cwd)
    fitting = [item for item in base.benchmarks if item.id == wanted or len(base.benchmarks) == 1]
    if not fitting:
        ids = some([item.id for item in base.benchmarks], _SHOWN) or "none at all"
        hint = f"--id names one of those it has: {ids}"
        raise UsageError(f"the base {base_name} has no benchmark {wanted!r}", hint=hint)
    _check_measured(fitting, base_name)
    return fitting[0], request.id or fitting[0].id


def _chosen(base: Result, base_name: str, chooses: Callable[[Benchmark], bool]) -> tuple[Benchmark, ...]:
    """Return the benchmarks to compare with. UsageError if nothing was chosen, or the base has no counts of one."""
    known = tuple(filter(chooses, base.benchmarks))
    if not known:
        there = some([item.id for item in base.benchmarks], _SHOWN) or "none at all"
        raise UsageError(f"no benchmark of the base {base_name} was selected", hint=f"there are: {there}")
    _check_measured(known, base_name)
    return known


def _check_measured(known: Sequence[Benchmark], base_name: str) -> None:
    """UsageError if one of these has no counts in the base."""
    from cachegrind_bench.model.result import Status

    for item in known:
        if item.status is not Status.OK:
            raise UsageError(
                f"in the base {base_name} the benchmark {item.id!r} is {item.status.value}: {item.error or ''}",
                hint="measure the base again",
            )


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
