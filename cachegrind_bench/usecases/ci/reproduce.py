"""The end of a report: how to do it again elsewhere, and on what it was done."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress

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


def again(job: Job, comparison: Comparison, text: str | None, identity: str | None, *, builds: bool) -> str:
    """Return how to do it again elsewhere, as Markdown that is folded, and where it was done.

    Of a suite that `builds`, the commands are known that do. Else the job has built it, or installed it, and whoever does it
    again has to do so, too.
    """
    event, cwd = job.event, job.cwd
    if is_pytests(comparison.candidate):
        builds, words, tool, into, folder = False, "", "pytest --cg-bench", "--cg-bench-output=", "../"
    else:
        words, tool, into, folder = "", "cg-bench run", "-o ", ""
        with suppress(ValueError):  # what was measured was no command, and said so
            words = "".join(f" {shlex.quote(word)}" for word in command_words(text, identity))
    base, commit = comparison.base.commit, comparison.candidate.commit
    head = (
        event.pull.head_sha if event.pull else event.run.head_sha if event.run else commit.sha if commit else event.sha
    )
    top = top_folder(cwd)
    within = "." if top is None or event.run is not None else os.path.relpath(cwd.resolve(), top.resolve())
    lines = [f"# with cachegrind-bench {__version__}"]
    lines += [f"cd {shlex.quote(plain(within))}"] if within != "." else []
    lines += [f"git fetch origin {head}"] if event.pull or event.run else []
    known = base is not None and COMMIT_ID.fullmatch(base.sha) and COMMIT_ID.fullmatch(head)
    if base is not None and known and builds and not words:
        lines.append(f"cg-bench ab {base.sha[:12]} {head[:12]}")
    elif base is not None and known:
        lines.append(f"git checkout {base.sha[:12]}  # then build or install it, and:")
        lines.append(f"{tool} {into}{folder}base.json{words}")
        lines.append(f"git checkout {head[:12]}  # then build or install it, and:")
        lines.append(f"{tool} {into}{folder}candidate.json{words}")
        lines.append(f"cg-bench diff {folder}base.json {folder}candidate.json")
    else:
        if COMMIT_ID.fullmatch(head):
            lines.append(f"git checkout {head[:12]}{'' if builds else '  # then build or install it, and:'}")
        lines.append(f"{tool}{words}")
    if any(len(line) > _LONGEST_COMMAND or "\n" in line for line in lines):  # cut short, a command would be another one
        lines = ["# the command is too long to be shown: see the workflow"]
    code = "\n".join(lines)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", code))])
    url = event.run_url if re.fullmatch(r"https?://[\w.:/-]+", event.run_url, re.ASCII) else None
    link = f" · [the job's log]({url})" if url and event.run_id else ""
    if link and event.run is None and (job.data / PAGE).exists():
        link += f", whose artifact has flame graphs in `{PAGE}`"
    steps = fold("Repeat it on your machine", f"{fence}sh\n{code}\n{fence}")
    return f"{steps}\n{_environment(comparison.candidate)}{link}\n"


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
