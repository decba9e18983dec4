"""`cg-bench trend`: how costs have developed, as a report."""

from __future__ import annotations

import os
from typing import Any

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.help import Command, options_group
from cachegrind_bench.cli.options import (
    REPORT,
    color_option,
    date,
    history_options,
    opened_store,
    repository,
    struct_of,
)
from cachegrind_bench.errors import UsageError
from cachegrind_bench.history.values import Trend
from cachegrind_bench.log import LOG
from cachegrind_bench.usecases.result_files import check_outputs
from cachegrind_bench.usecases.trend import HistoryQuery, find_all

_EPILOG = """\b
The series of each benchmark follows the first parents of --branch; runs of dirty checkouts are left out. A step of the cost
that two readings confirm is a finding, with the commits that may have caused it; so are slow growth (creep) and benchmarks
that cannot be trusted. 'cg-bench bisect FINDING' narrows several commits down to one. Intended changes are in
cg-bench-accepted.toml, with the reason.

\b
Exit code: with --fail-on new-regression 1 if there is one that is confirmed, 3 if nothing was measured; 2 for bad usage or
input, and if some of the history cannot be read, which is left out with a warning; else 0.

\b
Examples:
  cg-bench trend
  cg-bench trend --html trend.html --json trend.json --previous last.json --fail-on new-regression
  cg-bench trend --store git:cg-bench-data@origin --since 90d --benchmark 'parse-*'
"""


_FORMS = ("json", "markdown", "html")
_UNDECIDED = 3


_report_options = options_group(
    click.option(
        "--html", metavar="FILE", help="Write the report as a page: one HTML file that needs no network; '-' is stdout."
    ),
    click.option("--markdown", metavar="FILE", help="Write the report as Markdown, for example for a job summary."),
    click.option("--json", metavar="FILE", help="Write the report as JSON; the next one takes it as --previous."),
    click.option("--title", metavar="TEXT", help="Heading of the report. [default: the folder's name]"),
    click.option(
        "--commit-url", metavar="URL", help="Address of a commit, with {sha} in it. [default: GitHub's, in its CI]"
    ),
    color_option,
    click.option("-q", "--quiet", is_flag=True, help="Do not print the report."),
    click.option(
        "--fail-on", type=click.Choice(["new-regression", "never"]), default="never", help="When to exit with code 1."
    ),
    heading=REPORT,
)
_shown_options = options_group(
    click.option(
        "--since", type=date, metavar="DATE", help="Show commits since then: 2026-01-31, or 30d for 30 days ago."
    ),
    click.option("--last", type=click.IntRange(1), metavar="N", help="Show the last N commits."),
    click.option(
        "--model", metavar="MODEL", help="Weights of the score; 'ir' judges instructions. [default: as measured]"
    ),
    heading="Which runs",
)


@click.command("trend", cls=Command, epilog=_EPILOG)
@_report_options
@history_options
@_shown_options
def command(**options: Any) -> int:
    """Report how costs have developed: every step with its commits, creep, and what makes the report less certain.

    Prints the report as text, and writes the files you ask for.
    """
    url = options["commit_url"]
    if url is not None and not (url.startswith(("https://", "http://")) and "{sha}" in url):
        raise UsageError(
            f"--commit-url {url!r} is not a web address with {{sha}}",
            hint="as in https://example.org/project/commit/{sha}",
        )
    check_outputs({f"--{kind}": options[kind] for kind in _FORMS})
    found = find_all(struct_of(HistoryQuery, options), repository(), opened_store(options))
    view = found.trend(
        title=options["title"], commit_url=url or _commit_url(), since=options["since"], last=options["last"]
    )
    for entry in found.idle:
        where = f"benchmark {entry.benchmark!r}, commit {entry.commit}"
        LOG.warning(f"line {entry.line} of the accepted changes concerns nothing here: {where}")
    _write(view, options)
    if options["fail_on"] == "new-regression" and found.has_new_regression:
        return 1
    if found.damaged:
        return UsageError.exit_code
    if not view.headline.measured:
        which = "in which any benchmark succeeded" if found.set.series else "of these commits"
        where = (
            "" if found.branch is not None else "; there are none here, as this is not a git repository with commits"
        )
        LOG.warning(f"{found.store} has no run {which}{where}")
        return _UNDECIDED if options["fail_on"] != "never" else 0
    return 0


def _commit_url() -> str | None:
    """Return the address of a commit in GitHub's CI."""
    server, project = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return f"{server}/{project}/commit/{{sha}}" if server and project and server.startswith("https://") else None


def _json(view: Trend) -> str:
    from cachegrind_bench.render.documents.trends import trend  # its structs cost what few reports need

    return trend(view)


def _write(view: Trend, options: dict[str, Any]) -> None:
    """Write the reports that are asked for; where one goes to stdout, the text does not."""
    from cachegrind_bench.render.trend import html, text

    makers = {"json": _json, "markdown": text.markdown, "html": html.page}
    for kind in _FORMS:
        if options[kind] is not None:
            with output.watched(f"the report as {kind}"):
                report = makers[kind](view).encode()
            output.write_file(options[kind], report)
    if not options["quiet"] and "-" not in (options[kind] for kind in _FORMS):
        colour = output.wants_colour(options["color"])
        with output.watched("the report"):
            shown = text.render(view, width=output.terminal_width(), colour=colour)
        output.write(shown)
