"""`cg-bench ci comment` and `ci trend`: what people read on GitHub beside the job itself."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cachegrind_bench.ci.event import read_event
from cachegrind_bench.ci.runner_files import add_summary, set_outputs
from cachegrind_bench.cli.ci_job import (
    REPORT,
    annotate,
    client,
    data,
    folder_option,
    group,
    history_words,
    own_command,
    read_verdict,
    say,
    store_name_option,
    token_option,
    use_token,
)
from cachegrind_bench.errors import CgBenchError, UsageError
from cachegrind_bench.store.durable import write_atomic

if TYPE_CHECKING:
    from cachegrind_bench.ci.event import Event
    from cachegrind_bench.ci.github import Client

_ON_CHANGE, _ALWAYS, _NEVER = "on-change", "always", "never"
_TREND_FILES = {"html": "report.html", "markdown": "report.md", "json": "report.json"}
_LAST = "last.json"
_MOST_LOOKED_AT = 200  # reports of half a year


@click.command("comment", epilog='\b\nExamples:\n  cg-bench ci comment --folder "$FOLDER" --comment on-change')
@click.option(
    "--comment",
    "when",
    type=click.Choice([_ON_CHANGE, _ALWAYS, _NEVER]),
    default=_ON_CHANGE,
    show_default=True,
    help="on-change: if anything moved, or to update a comment there is.",
)
@click.option(
    "--artifact", default="", metavar="NAME", help="Of the job's artifact: what has another, has another comment."
)
@folder_option
@token_option
def comment_command(when: str, folder: str, token: str | None, artifact: str) -> None:
    """Comment the report of 'ci compare' under the pull request, or update the comment there is."""
    from cachegrind_bench.ci.sticky import marker, post

    event = read_event(os.environ)
    if when == _NEVER:
        return
    verdict = read_verdict(folder)
    text = (Path(folder) / REPORT).read_text("utf-8")
    try:
        api = client(event, token)
        number = _pull_of_this_job(event, api) if event.run is None else _pull_of_measuring_run(event, api)
        if number is None:
            return
        names = (event.workflow, event.job, artifact) if event.run is None else (event.run.workflow,)
        outcome = post(api, number, text, marker(*names), wanted=verdict.changed or when == _ALWAYS)
    except CgBenchError as error:
        if event.run is not None:  # here the comment is all there is to do
            raise
        annotate("warning", f"no comment: {error.message} ({error.hint or 'the summary has the report'})")
        return
    say(f"comment under pull request {number}: {outcome.value}")


@click.command("trend", epilog='\b\nExamples:\n  cg-bench ci trend --folder "$FOLDER" --issues')
@click.option("--issues", is_flag=True, help="Keep an issue for each finding: opened, updated and closed.")
@click.option("--artifact", metavar="NAME", help="Where the report before this one is found.")
@store_name_option
@folder_option
@token_option
def trend_command(folder: str, store: str, token: str | None, artifact: str | None, *, issues: bool) -> None:
    """Make the trend report of the history: a page, the job's summary, and issues if asked for."""
    event = read_event(os.environ)
    place = data(folder)
    api = client(event, token) if token else None
    previous = _last_report(event, api, artifact, Path(folder)) if api is not None and artifact else None
    use_token(event, token)
    files = {kind: place / name for kind, name in _TREND_FILES.items()}
    words = ["trend", *(word for kind, path in files.items() for word in (f"--{kind}", str(path)))]
    words += [*history_words(store), "--title", event.repository]
    words += ["--previous", str(previous)] if previous is not None else []
    with group("The report"):
        status, told = own_command(words)
    if status != 0:
        raise UsageError(f"there is no report: {told}", hint="all that was said is in the log")
    add_summary(os.environ, files["markdown"].read_text("utf-8"))
    set_outputs(os.environ, {"report-path": str(files["html"]), "result-path": str(files["json"])})
    if issues:
        _keep_issues(event, api, files["json"])


def _pull_of_this_job(event: Event, api: Client) -> int | None:
    """Return the pull request that this job measured; None, which is told, if there is a newer commit or it was closed."""
    pull = event.pull
    if pull is None:
        say("no pull request, no comment")
        return None
    now = api.pull(pull.number)
    if now is None or now.head_sha != pull.head_sha:
        why = "was closed" if now is None else "has a newer commit, whose job will comment"
        say(f"no comment: pull request {pull.number} {why}")
        return None
    return pull.number


def _pull_of_measuring_run(event: Event, api: Client) -> int | None:
    """Return the pull request whose last commit was measured; GitHub says which, never the artifact.

    A fork's commit is not looked up in the base repository, which does not have it.
    """
    run = event.run
    if run is None:
        return None
    found = [
        pull
        for pull in (api.open_pulls(run.owner, run.head_branch) if run.owner and run.head_branch else ())
        if pull.head_sha == run.head_sha and pull.head_repository == run.repository
    ]
    if len(found) == 1:
        return found[0].number
    why = (
        "no open pull request has the commit that was measured: it was closed, or has a newer one"
        if not found
        else f"{len(found)} pull requests have this commit, and it is not known which was measured"
    )
    annotate("notice", f"no comment: {why}")
    return None


def _last_report(event: Event, api: Client, artifact: str, place: Path) -> Path | None:
    """Fetch the report before this one, of which what is new is told. None, which is told, if there is none."""
    from cachegrind_bench.ci.artifact import MOST_SENT, unpack

    allowed = {name: kind == "json" for kind, name in _TREND_FILES.items()}
    try:
        # A pull request can leave an artifact of any name: only those of the default branch count.
        last = api.last_own(artifact, lambda item: item.branch == event.default_branch, most=_MOST_LOOKED_AT)
        if last is None:
            say("there is no report before this one: what it finds is new")
            return None
        files = unpack(api.download(last, MOST_SENT), last.name, allowed)
    except CgBenchError as error:
        annotate("warning", f"the last report cannot be read, so what was new then is reported again: {error.message}")
        return None
    path = place / _LAST
    write_atomic(path, files[_TREND_FILES["json"]])
    return path


def _keep_issues(event: Event, api: Client | None, report: Path) -> None:
    from cachegrind_bench.ci.issues import update
    from cachegrind_bench.render.documents import findings

    if api is None:
        raise UsageError("there is no token for GitHub's API", hint="the action's input 'token' has one by default")
    content = report.read_bytes()
    found = findings(content, path=str(report))
    # A history that could not be read would look like one in which nothing is wrong.
    complete = bool(json.loads(content)["benchmarks"])
    done = update(api, found, page=event.run_url, complete=complete)
    say(f"issues: {done}")
