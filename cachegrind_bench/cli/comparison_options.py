"""What the commands that compare have in common: what a comparison is held to, how it is shown, and writing it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.help import options_group
from cachegrind_bench.cli.options import (
    REPORT,
    color_option,
    configured_benchmarks,
    format_options,
    project_root,
    repository,
    struct_of,
    typed,
)
from cachegrind_bench.errors import UsageError
from cachegrind_bench.usecases.comparison import GateOptions, ReportOptions

if TYPE_CHECKING:
    from cachegrind_bench.compare.explained import Explained
    from cachegrind_bench.compare.verdict import Gates
    from cachegrind_bench.config.benchmarks import BenchmarkSpec

# Formats that can be written to a file as well.
_FILES = {
    "markdown": "the report as Markdown",
    "json": "the report as JSON",
    "code-quality": "GitLab's code quality report",
    "html": "a page with flame graphs of what moved",
}

gate_options = options_group(
    click.option(
        "--threshold",
        multiple=True,
        metavar="[PATTERN=]PERCENT",
        help="A larger change of the score, or of Ir in the same direction, is a regression or improvement. Repeatable. [default: 0.5%]",
    ),
    click.option(
        "--threshold-ir",
        multiple=True,
        metavar="[PATTERN=]PERCENT",
        help="Use this threshold for growth of Ir instead. Repeatable.",
    ),
    click.option(
        "--threshold-allocations",
        multiple=True,
        metavar="[PATTERN=]PERCENT",
        help="More allocations of memory than this are a regression, where calls are recorded. Repeatable.",
    ),
    click.option(
        "--threshold-cache",
        default="2%",
        metavar="PERCENT",
        help="A score change above this counts even if Ir did not change.",
    ),
    click.option(
        "--max-drop",
        multiple=True,
        metavar="[PATTERN=]PERCENT",
        help="A larger drop of Ir is suspicious. Repeatable. [default: 50%]",
    ),
    click.option(
        "--limit",
        multiple=True,
        metavar="[PATTERN:]NAME=COUNT",
        help="Upper limit for the score, an event, L1, LL or RAM (hits), or allocations. Repeatable.",
    ),
    click.option(
        "--metric",
        type=click.Choice(["score", "Ir"], case_sensitive=False),
        default="score",
        metavar="score|Ir",
        help="The number that decides whether a benchmark regressed.",
    ),
    click.option(
        "--force",
        is_flag=True,
        help="Compare even what was measured in different environments (another Valgrind, libc, ...).",
    ),
    heading="When a change counts",
)

fail_on_option = options_group(
    click.option(
        "--fail-on",
        type=click.Choice(["regression", "any-change", "never"]),
        default="regression",
        help="When to exit with code 1.",
    ),
    heading="When a change counts",
)

detail_options = options_group(
    click.option(
        "--explain",
        type=click.IntRange(0, 100_000),
        default=10,
        metavar="N",
        help="Number of rows in each explanation; 0 for none.",
    ),
    click.option(
        "--by", type=click.Choice(["function", "file"]), default="function", help="Group rows by function or file."
    ),
    click.option("--lines", is_flag=True, help="Add the source lines that moved (needs 'run --lines')."),
    format_options(
        *("table", "markdown", "json", "github", "code-quality", "html"),
        help="Format of the report; 'github' is workflow annotations, 'code-quality' GitLab's JSON.",
    ),
    color_option,
    *(
        click.option(
            f"--{form}",
            type=Path,
            metavar="FILE",
            help=f"Also write {what}; '-' is stdout, instead of the table.",
        )
        for form, what in _FILES.items()
    ),
    heading=REPORT,
)


evidence_option = options_group(
    click.option(
        "--evidence",
        type=click.Choice(["regressions", "always", "never"]),
        default="regressions",
        help="Record calls and Python functions of these benchmarks on both sides, in further executions, to explain them.",
    ),
    heading=REPORT,
)


def gates_of(options: Mapping[str, Any], benchmarks: Sequence[BenchmarkSpec] = ()) -> Gates:
    """Return what `gate_options` ask for; UsageError on anything that is not a threshold or limit.

    These `benchmarks` may have thresholds and limits of their own, which hold unless others are typed.
    """
    given = frozenset(name for name in ("threshold", "limit") if typed(name))
    return struct_of(GateOptions, options).gates(benchmarks, typed=given)


def report_options(options: Mapping[str, Any]) -> ReportOptions:
    """Return how `detail_options`, and --rows where a command has it, want a comparison to be shown.

    A file that is `-` is the report on stdout, in its format. UsageError if several reports would be there.
    """
    files = {form: path for form in _FILES if (path := options[form.replace("-", "_")]) is not None}
    printed = [form for form, path in files.items() if str(path) == "-"]
    forms = {options["form"], *printed} - {"table"}
    if len(forms) > 1:
        raise UsageError("only one report can go to stdout", hint="name files for the others")
    options = {**options, "form": next(iter(forms), "table")}
    files = {form: path for form, path in files.items() if form not in printed}
    places = {spec.id: spec.place for spec in configured_benchmarks()}
    return struct_of(ReportOptions, options, files=files, places=places, root=project_root(), git=repository())


def deliver(made: Explained, options: ReportOptions, *, write: Callable[[str], None] = output.write) -> None:
    """Write the report, in the colours that --color asks for, then the files that were asked for, also where the report cannot be written."""
    colour = output.wants_colour(click.get_current_context().params["color"])
    try:
        write(_text(made, options.form, width=output.terminal_width(), colour=colour))
    except BrokenPipeError:
        output.forget(sys.stdout)  # that nobody reads on must not make a regression green
    finally:
        write_files(made, options)


def write_files(made: Explained, options: ReportOptions) -> None:
    """Write the files that were asked for."""
    from cachegrind_bench.store.durable import write_atomic

    for form, path in options.files.items():
        write_atomic(path, _text(made, form).encode(), in_place=True)


def _text(made: Explained, form: str, *, width: int | None = None, colour: bool = False) -> str:
    """Return the comparison in this format; a table is cut to this `width`, and may have `colour`."""
    from cachegrind_bench.render.comparison.view import view

    match form:
        case "table":
            from cachegrind_bench.render.comparison import table

            return table.render(view(made), width=width, colour=colour)
        case "markdown":
            from cachegrind_bench.render.comparison import markdown

            return markdown.render(view(made))
        case "json":
            from cachegrind_bench.render.documents.comparisons import comparison

            return comparison(made.comparison, made.details)
        case "github":
            from cachegrind_bench.render.comparison import github

            return github.render(view(made, whole=True))  # it counts for itself what it leaves out
        case "code-quality":
            from cachegrind_bench.render.comparison import code_quality

            return code_quality.render(view(made, whole=True), made.places)
        case "html":
            from cachegrind_bench.render.comparison import html

            return html.page(made)
        case _:
            raise ValueError(form)
