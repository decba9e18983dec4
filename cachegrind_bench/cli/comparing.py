"""What the commands that compare have in common: their options, and a comparison as text and as exit code."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click
import msgspec
from msgspec.structs import replace

from cachegrind_bench.cli import output
from cachegrind_bench.errors import MeasurementError, NotComparableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cachegrind_bench.compare.comparison import Comparison
    from cachegrind_bench.compare.details import Details, Wanted
    from cachegrind_bench.model.metrics import Profile
    from cachegrind_bench.model.pythonprofile import PythonProfile
    from cachegrind_bench.render.comparison.view import View

    # A profile by the id of its benchmark; None where the result has none.
    Profiles = Callable[[str], Profile | None]
    Pythons = Callable[[str], PythonProfile | None]

Function = TypeVar("Function", bound="Callable[..., Any]")

FINE, REGRESSION = 0, 1

# How many benchmarks are explained at length; the others only name the function that explains most.
_EXPLAINED = 10


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
                help="What the rows are.",
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


def wanted_of(options: Mapping[str, Any]) -> Wanted:
    """Return how much `detail_options` ask for."""
    from cachegrind_bench.compare.details import Wanted

    return Wanted(rows=options["explain"], by_file=options["by"] == "file", lines=options["lines"])


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison with its explanations, ready to be written in any format."""

    comparison: Comparison
    details: Mapping[str, Details]
    names: tuple[str, str]
    rows: int
    explained: tuple[str, ...]

    def text(self, form: str, *, width: int | None = None) -> str:
        """Return the comparison as table (cut to this width, if there is one), markdown, json or github."""
        from cachegrind_bench.render.comparison import document, github, markdown, table

        text = io.StringIO()
        if form == "json":
            document.render(self.comparison, self.details, text)
        elif form == "table":
            table.render(self._view(self.rows), text, width=width)
        elif form == "markdown":
            markdown.render(self._view(self.rows), text)
        else:
            github.render(self._view(0), text)  # it counts for itself what it leaves out
        return text.getvalue()

    def markdown(self, most: int) -> str:
        """Return the comparison as markdown of at most so many characters."""
        from cachegrind_bench.render.comparison import markdown

        text = io.StringIO()
        markdown.render(self._view(self.rows), text, most=most)
        return text.getvalue()

    def annotations(self) -> str:
        """Return the comparison as workflow annotations that say nothing twice."""
        from cachegrind_bench.render.comparison import github

        text = io.StringIO()
        github.render(self._view(0), text, brief=True)
        return text.getvalue()

    def with_remarks(self, remarks: tuple[str, ...]) -> Self:
        """Return the same with these remarks on where base and candidate come from."""
        return replace(self, comparison=replace(self.comparison, remarks=remarks))

    def _view(self, rows: int) -> View:
        from cachegrind_bench.render.comparison.view import view

        return view(self.comparison, self.details, rows=rows, names=self.names, explained=self.explained)

    def headline(self) -> str:
        """Return the verdict in one line."""
        from cachegrind_bench.render.comparison.words import headline
        from cachegrind_bench.render.names import plain

        return plain(headline(self.comparison, self.details)) + "\n"


def report(
    comparison: Comparison,
    base: Profiles,
    candidate: Profiles,
    *,
    wanted: Wanted,
    rows: int,
    names: tuple[str, str],
    pythons: tuple[Pythons, Pythons] | None = None,
) -> Report:
    """Recognise what layout alone did, and explain what will be shown: profiles are read for these benchmarks only.

    `pythons` are those of Python functions, of base and candidate.
    """
    from cachegrind_bench.compare.comparison import recognise_layout
    from cachegrind_bench.compare.details import details
    from cachegrind_bench.compare.verdict import State

    comparison = recognise_layout(comparison, base, candidate)
    found: dict[str, Details] = {}
    for item in comparison.differences[:rows] if rows else comparison.differences:
        if item.change is None or item.change.base == item.change.candidate:
            continue
        before, after = base(item.id), candidate(item.id)
        if before is not None and after is not None:
            python = None if pythons is None else (pythons[0](item.id), pythons[1](item.id))
            found[item.id] = details(before, after, comparison, wanted, python=_both(python))
    worth = [
        item.id
        for item in comparison.differences
        if item.id in found and (item.state is not State.UNCHANGED or len(comparison.differences) == 1)
    ]
    explained = tuple(worth[:_EXPLAINED]) if wanted.rows else ()
    return Report(comparison=comparison, details=found, names=names, rows=rows, explained=explained)


def _both(
    python: tuple[PythonProfile | None, PythonProfile | None] | None,
) -> tuple[PythonProfile, PythonProfile] | None:
    """Return the profiles if there are two to compare."""
    if python is None or python[0] is None or python[1] is None:
        return None
    return python[0], python[1]


def check_files(options: Mapping[str, Any], inputs: Sequence[str] = ()) -> None:
    """Find out before the work whether the files that `detail_options` name can be written; UsageError if not.

    None of them may be one of the `inputs`, nor both the same.
    """
    from cachegrind_bench.store.atomic import check_writable

    for kind in ("markdown", "json"):
        name = options[kind]
        if name == "-":
            raise UsageError(f"--{kind} takes a file", hint=f"--format {kind} writes to stdout")
        if name is not None:
            check_writable(Path(name))
            if os.path.realpath(name) in {os.path.realpath(item) for item in inputs if item != "-"}:
                raise UsageError(f"--{kind} {name} would overwrite what is compared", hint="name another file")
    names = [os.path.realpath(options[kind]) for kind in ("json", "markdown") if options[kind] is not None]
    if len(set(names)) < len(names):
        raise UsageError("--json and --markdown name the same file")


def write_files(made: Report, options: Mapping[str, Any]) -> None:
    """Write the files that were asked for."""
    from cachegrind_bench.store.atomic import write_atomic

    for kind in ("markdown", "json"):
        if options[kind] is not None:
            write_atomic(Path(options[kind]), made.text(kind).encode())


def deliver(made: Report, options: Mapping[str, Any], *, write: Callable[[str], None] = output.write) -> None:
    """Write the files that were asked for, then the report."""
    write_files(made, options)
    write(made.text(options["form"], width=output.terminal_width()))


def exit_code(comparison: Comparison) -> int:
    """Return the exit code of a comparison."""
    from cachegrind_bench.compare.comparison import Conclusion

    return {
        Conclusion.FINE: FINE,
        Conclusion.REGRESSION: REGRESSION,
        Conclusion.FAILED: MeasurementError.exit_code,
        Conclusion.INCOMPLETE: NotComparableError.exit_code,
    }[comparison.conclusion()]
