"""The end of a report: how to do it again elsewhere, and on what it was done."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress

import msgspec

from cachegrind_bench._version import __version__
from cachegrind_bench.ci.artifact import PAGE
from cachegrind_bench.compare.verdict import Comparison
from cachegrind_bench.model.result import Result, SealState, is_pytests
from cachegrind_bench.model.text import plain, shortened
from cachegrind_bench.render.markdown import escape, fold
from cachegrind_bench.usecases.ci.job import Job, command_words
from cachegrind_bench.vcs.git import COMMIT_ID, top_folder

_MOST_FAILURES, _MOST_LINES, _LONGEST_LINE = 5, 15, 120
_LONGEST_COMMAND, _LONGEST_PROVENANCE = 500, 400


def failures(comparison: Comparison) -> str:
    """Return what is known of why benchmarks failed, as Markdown that is folded; empty if none did."""
    failed = [item for item in comparison.candidate.benchmarks if item.error is not None and "\n" in item.error]
    parts: list[str] = []
    for item in failed[:_MOST_FAILURES]:
        lines = [shortened(plain(line), _LONGEST_LINE) for line in (item.error or "").splitlines()[1:][:_MOST_LINES]]
        code = "\n".join(lines).replace("`", "'")
        title = escape(shortened(plain(item.id), _LONGEST_LINE))
        parts.append(fold("Why a benchmark failed", f"{title}\n\n```text\n{code}\n```"))
    return "".join(parts)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What a job measured: the command `text` with its `identity`, else a suite; `given`: it took the result of an earlier step.

    Of a suite that `builds`, the commands are known that do. Else the job has built it, or installed it, and whoever does it
    again must do so, too. `both`: `ab` measured the base as well.
    """

    text: str | None
    identity: str | None
    given: bool
    builds: bool
    both: bool


def again(job: Job, comparison: Comparison, measured: Measured) -> str:
    """Return how to do it again elsewhere, as Markdown that is folded, and where it was done."""
    event, lines = job.event, _commands(job, comparison, measured)
    if any(len(line) > _LONGEST_COMMAND or "\n" in line for line in lines):  # cut short, a command would be another one
        lines = ["# the command is too long to be shown: see the workflow"]
    code = "\n".join(lines)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", code))])
    url = event.run_url if re.fullmatch(r"https?://[\w.:/-]+", event.run_url, re.ASCII) else None
    link = f" · [the job's log]({url})" if url and event.run_id else ""
    if link and event.run is None and (job.data / PAGE).exists():
        link += f", whose artifact has all details on one page, `{PAGE}`"
    steps = fold("Repeat it on your machine", f"{fence}sh\n{code}\n{fence}")
    return f"{steps}\n{_environment(comparison.candidate)}{link}\n"


def _commands(job: Job, comparison: Comparison, measured: Measured) -> list[str]:
    event, words = job.event, ""
    with suppress(ValueError):  # what was measured was no command, and said so
        words = "".join(f" {shlex.quote(word)}" for word in command_words(measured.text, measured.identity))
    base, commit = comparison.base.commit, comparison.candidate.commit
    # Of a pull request GitHub's merge of it was measured, but what an artifact says of another run is not to be checked out.
    head = event.run.head_sha if event.run else commit.sha if commit else event.sha
    before = base.sha if base is not None and COMMIT_ID.fullmatch(base.sha) and COMMIT_ID.fullmatch(head) else ""
    top = top_folder(job.cwd)
    within = "." if top is None or event.run is not None else os.path.relpath(job.cwd.resolve(), top.resolve())
    with_pytest = measured.given and is_pytests(comparison.candidate)
    lines = [f"# with cachegrind-bench {__version__}{', installed next to pytest' * with_pytest}"]
    lines += [f"cd {shlex.quote(plain(within))}"] if within != "." else []
    lines += [" ".join(["git fetch origin", *filter(None, (before, head))])] if event.pull or event.run else []
    if before and not with_pytest and (measured.both or (measured.builds and not words)):
        return [*lines, f"cg-bench ab {before[:12]} {head[:12]}{words}"]
    sides = [(before, "base", comparison.base)] if before else []
    for sha, name, result in (*sides, (head, "candidate", comparison.candidate)):
        build = "" if measured.builds and not with_pytest else "  # then build or install it, and:"
        lines += [f"git checkout {sha[:12]}{build}"] if COMMIT_ID.fullmatch(sha) else []
        into = f"../{name}.json" if before else ""
        if with_pytest:
            lines.append(f"pytest --cg-bench{f' --cg-bench-output={into}' if into else ''}{_tests(result)}")
        else:
            lines.append(f"cg-bench run{f' -o {into}' if into else ''}{words}")
    return [*lines, "cg-bench diff ../base.json ../candidate.json"] if before else lines


def _tests(result: Result) -> str:
    """Return the words of pytest for the files that have these benchmarks, and for their Python profile."""
    files = sorted({item.command[-1].partition("::")[0] for item in result.benchmarks})
    profile = " --cg-bench-python-profile" * any(item.python is not None for item in result.benchmarks)
    return profile + "".join(f" {shlex.quote(plain(name))}" for name in files)


def _environment(result: Result) -> str:
    """Return on what was measured, as Markdown."""
    fields, sealed = result.env.fields, [item.seal for item in result.benchmarks if item.seal]
    # The clock is the real one unless that was asked for.
    lacking = {name for seal in sealed for name, part in seal.items() if part.state is SealState.UNAVAILABLE}
    parts = [
        f"Valgrind {fields.get('valgrind', '?')} on {fields.get('architecture', '?')}",
        f"environment {result.env.key}",
        f"not sealed: {', '.join(sorted(lacking))}" if lacking else "fully sealed",
        f"cachegrind-bench {result.tool_version}",
    ]
    return escape(shortened(plain(" · ".join(parts)), _LONGEST_PROVENANCE))
