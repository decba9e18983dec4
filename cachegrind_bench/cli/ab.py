"""`cg-bench ab`: measure two commits here and now, and compare them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cachegrind_bench.cli.comparison_options import (
    deliver,
    detail_options,
    evidence_option,
    gate_options,
    gates_of,
    report_options,
)
from cachegrind_bench.cli.help import options_group
from cachegrind_bench.cli.options import (
    MEASURED,
    REPORT,
    TrailingCommand,
    configured_benchmarks,
    filter_options,
    id_option,
    jobs_option,
    names_of,
    refuse_options_of_a_suite,
    repetition_options,
    repository,
    size_limit_option,
    struct_of,
    trailing_words,
    typed_words,
)
from cachegrind_bench.usecases.comparison import compared, same_program

_EPILOG = """\b
Both commits are checked out into a temporary git worktree, at the same path, one after the other; your own work tree is
left alone. In each, the suite of that commit's configuration is measured, set-up commands first, or the command after --.
A commit that has no configuration, or none of the benchmarks that are chosen, is measured by that of your checkout.
Without CANDIDATE, what is measured are your tracked files as they are, committed or not. Files that git does not track are
not there, and submodules are empty: a set-up command can fill them.

Programs must be those of the worktree. What Python would import from your checkout, as after 'pip install -e .', comes from the
worktree; a copy ('pip install .') is the same in both. A set-up command can build or install what belongs to the commit.

\b
Exit code: as for 'diff'; 4 if a commit could not be measured.

\b
Examples:
  cg-bench ab main
  cg-bench ab v1.2 v1.3 -k parser
  cg-bench ab HEAD~1 --prepare 'make -s' -- ./build/parser data.txt
"""

# The options among these that are typed go to the measuring side.
_run_options = options_group(
    filter_options,
    options_group(jobs_option, heading=MEASURED),
    options_group(id_option, heading=REPORT),
    repetition_options,
)
_keep_option = options_group(
    click.option(
        "--keep", type=Path, metavar="DIR", help="Keep both result files here, as base.json and candidate.json."
    ),
    heading=REPORT,
)


@click.command("ab", cls=TrailingCommand, epilog=_EPILOG)
@gate_options
@_run_options
@detail_options
@evidence_option
@_keep_option
@size_limit_option
@click.argument("base")
@click.argument("candidate", required=False)
def command(base: str, candidate: str | None, **options: Any) -> int:
    """Measure the commits BASE and CANDIDATE here and now, and compare them: 'cg-bench ab main'.

    Use it when there is no history to compare with, or when that was measured in another environment.
    """
    from cachegrind_bench.cli.run import measured_in
    from cachegrind_bench.usecases.evidence import Evidence
    from cachegrind_bench.usecases.selection import SelectRequest
    from cachegrind_bench.usecases.worktrees import AbRequest, measured_sides

    if trailing_words():
        refuse_options_of_a_suite()
    gates = gates_of(options, configured_benchmarks())
    shown = report_options(options)
    shown.check_files()
    choosing = names_of(filter_options)
    words = *typed_words({*names_of(_run_options), "lines"}.difference(choosing)), *trailing_words()
    asked = {"evidence": Evidence(options["evidence"]), "gates": gates, "select": struct_of(SelectRequest, options)}
    request = struct_of(
        AbRequest, options, base=base, candidate=candidate, words=words, choosing=(*typed_words(choosing),), **asked
    )
    before, after = measured_sides(request, repository(), measured_in)
    made = compared(before, after, gates, shown)
    made = made.with_remarks((*made.comparison.remarks, *same_program(made.comparison)))
    deliver(made, shown)
    return made.exit_code()
