"""`cg-bench diff`: compare two results."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.comparing import (
    check_files,
    deliver,
    detail_options,
    exit_code,
    report,
    wanted_of,
)
from cachegrind_bench.cli.configured import configured_benchmarks
from cachegrind_bench.cli.gating import gate_options, gates_of
from cachegrind_bench.cli.inputs import open_result_file, size_limit_option
from cachegrind_bench.cli.options import working_directory
from cachegrind_bench.cli.references import resolve
from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from cachegrind_bench.cli.comparing import Report
    from cachegrind_bench.compare.gates import Gates
    from cachegrind_bench.model.resultfile import ResultFile

_EPILOG = """\b
States, worst first:
  ✗ regression           the score grew by more than the threshold, or a limit was exceeded
  ! failed               the benchmark failed on a side
  ? suspicious drop      more than half of the instructions are gone: does it still do its work?
  ≠ not comparable       measured under another Valgrind, cache geometry, libc, interpreter, ...
  – missing              the candidate lacks it
  ~ noisy                repeated runs differ too much to tell (three times the noise is the least threshold)
  ≈ cache/layout shift   only misses moved: things lie elsewhere in memory; a regression beyond --threshold-cache,
                         unless several layouts were measured and disagree
  ✓ improvement          would be a regression the other way round
  + new                  the base lacks it
  = unchanged            within the threshold

\b
Exit code: 1 if there is a regression; else 4 if a candidate failed; else 3 if any is missing, suspicious or not
comparable, or nothing was compared; else 0. Bad usage or input: 2.

\b
Examples:
  cg-bench diff main.json pr.json
  cg-bench diff main.json pr.json --threshold 0.1% --threshold 'json-*=2%' --limit 'startup:Ir=150_000_000'
  cg-bench diff main.json pr.json --markdown summary.md --format github
  cg-bench run -o - -- ./prog | cg-bench diff main.json - --explain 30 --by file
"""


@click.command("diff", epilog=_EPILOG)
@gate_options
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "any-change", "never"]),
    default="regression",
    show_default=True,
    help="What ends in exit code 1.",
)
@click.option("--model", metavar="NAME", help="Weights of the score. [default: the base's]")
@click.option("--benchmark", "pattern", metavar="PATTERN", help="Only benchmarks with this id (* and ? are wildcards).")
@click.option(
    "--rows",
    type=click.IntRange(0, 1_000_000),
    default=50,
    show_default=True,
    metavar="N",
    help="Benchmarks in the table; 0 for all.",
)
@detail_options
@size_limit_option
@click.argument("base")
@click.argument("candidate")
def command(base: str, candidate: str, **options: Any) -> int:
    """Compare the results BASE and CANDIDATE: what moved, by how much, and which function did it.

    Each is a result file, '-' for stdin, or a saved baseline (see 'cg-bench baseline'); file:NAME and baseline:NAME say
    which is meant.
    """
    gates = gates_of(options, configured_benchmarks())
    if base == candidate == "-":
        raise UsageError("base and candidate cannot both be stdin", hint="save one of them to a file first")
    cwd = working_directory()
    check_files(options)
    inputs = [resolve(name, cwd) for name in (base, candidate)]
    check_files(options, inputs)
    with ExitStack() as stack:
        sides = [stack.enter_context(open_result_file(name, limit=options["max_size"])) for name in inputs]
        made = _compared(sides[0], sides[1], (base, candidate), gates, options)
    try:
        deliver(made, options)
    except BrokenPipeError:
        output.forget(sys.stdout)  # that nobody reads on must not make a regression green
    return exit_code(made.comparison)


def _compared(
    base: ResultFile,
    candidate: ResultFile,
    names: tuple[str, str],
    gates: Gates,
    options: dict[str, Any],
) -> Report:
    from cachegrind_bench.compare.comparison import compare
    from cachegrind_bench.model.patterns import matches

    pattern = options["pattern"]
    comparison = compare(
        base.result, candidate.result, gates, wanted=lambda name: pattern is None or matches(name, pattern)
    )
    if pattern is not None and not comparison.differences:
        known = ", ".join(item.id for item in candidate.result.benchmarks[:10]) or "no benchmarks at all"
        raise UsageError(f"neither side has a benchmark {pattern!r}", hint=f"the candidate has {known}")
    return report(
        comparison, base.profile, candidate.profile, wanted=wanted_of(options), rows=options["rows"], names=names
    )
