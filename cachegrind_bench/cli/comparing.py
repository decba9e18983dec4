"""What the commands that compare have in common: the options that say how a comparison is shown, and writing it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cachegrind_bench.cli import output
from cachegrind_bench.usecases.comparison import ReportOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cachegrind_bench.usecases.comparison import Report

Function = TypeVar("Function", bound="Callable[..., Any]")


def detail_options(function: Function) -> Function:
    """Take how much is explained, and in which format."""
    for option in reversed(
        (
            click.option(
                "--explain",
                type=click.IntRange(0, 100_000),
                default=10,
                show_default=True,
                metavar="N",
                help="Rows in each explanation; 0 for none.",
            ),
            click.option(
                "--by",
                type=click.Choice(["function", "file"]),
                default="function",
                show_default=True,
                help="Group rows by function or file.",
            ),
            click.option("--lines", is_flag=True, help="Add the source lines that moved (needs 'run --lines')."),
            click.option(
                "--format",
                "form",
                type=click.Choice(["table", "markdown", "json", "github"]),
                default="table",
                show_default=True,
                help="Report's format; github is workflow annotations.",
            ),
            click.option("--markdown", metavar="FILE", help="Write the report as Markdown, too."),
            click.option("--json", metavar="FILE", help="Write the report as JSON, too."),
        )
    ):
        function = option(function)
    return function


def report_options(options: Mapping[str, Any]) -> ReportOptions:
    """Return how `detail_options`, and --rows where a command has it, want a comparison to be shown."""
    return ReportOptions(
        rows=options.get("rows", 0),
        explain=options["explain"],
        by_file=options["by"] == "file",
        lines=options["lines"],
        form=options["form"],
        markdown=None if options["markdown"] is None else Path(options["markdown"]),
        json=None if options["json"] is None else Path(options["json"]),
    )


def deliver(made: Report, options: ReportOptions, *, write: Callable[[str], None] = output.write) -> None:
    """Write the files that were asked for, then the report."""
    options.write_files(made)
    write(made.text(options.form, width=output.terminal_width()))
