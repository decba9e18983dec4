"""`cg-bench ci measure`: measure what the job is for, with 'run' or 'ab', into the job's folder."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import click

from cachegrind_bench.ci.artifact import BASE, RESULT
from cachegrind_bench.cli import output
from cachegrind_bench.cli.ci_job import command_words, data, folder_option, own_command, say, unheard
from cachegrind_bench.config.command import shell_sign
from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.usecases.result_files import read_result
from cachegrind_bench.vcs.revisions import Repository

_ENDED_WELL = (0, MeasurementError.exit_code)  # 4: some benchmarks failed, which the result tells
_COMPARED = (0, 1, 3, MeasurementError.exit_code)


@click.command(
    "measure",
    epilog="""\b
Examples:
  cg-bench ci measure --folder "$FOLDER"
  cg-bench ci measure --folder "$FOLDER" --command './build/parser data.txt' --id parser
  cg-bench ci measure --folder "$FOLDER" --result "$RUNNER_TEMP/cg-bench.json"
""",
)
@click.option(
    "--command", "text", metavar="TEXT", help="The command to measure. [default: the suite of the configuration]"
)
@click.option("--id", "identity", metavar="TEXT", help="Name of the command's benchmark.")
@click.option(
    "--result",
    metavar="FILE",
    help="Measure nothing: take this result, as 'pytest --cg-bench --cg-bench-output' makes it.",
)
@click.option("--shard", metavar="K/N", help="Measure the K-th of N parts of the suite.")
@click.option("-j", "--jobs", metavar="N", help="Measured at once. [default: all CPUs]")
@click.option("--base", metavar="COMMIT", help="Measure this commit too, and compare with it.")
@folder_option
def command(text: str | None, folder: str, **options: str | None) -> None:
    """Measure, and leave the result in the folder. Needs no token, and should not have one.

    Benchmarks that fail are in the result, and do not end the job here: they are reported first.
    """
    place, base = data(folder), options["base"]
    if options["result"]:
        others = {"command": text, "id": options["identity"], "shard": options["shard"], "jobs": options["jobs"]}
        others["baseline: ab"] = base
        _take(options["result"], place / RESULT, [name for name, value in others.items() if value])
        return
    words = _words(text, options["identity"], options["shard"], options["jobs"])
    if not base:
        _run(["run", "-o", str(place / RESULT), *words], _ENDED_WELL, [place / RESULT])
        return
    if options["shard"]:
        raise UsageError("baseline: ab measures both commits whole", hint="leave out 'shard', or take another baseline")
    kept = Path(folder) / "ab"
    sides = kept / "candidate.json", kept / "base.json"
    _run(["ab", "--keep", str(kept), base, *words], _COMPARED, list(sides))
    for side, name in zip(sides, (RESULT, BASE), strict=True):
        os.replace(side, place / name)


def _take(path: str, place: Path, others: list[str]) -> None:
    """Copy a result that an earlier step made. UsageError if it cannot be read, or there are inputs for measuring."""
    if others:
        raise UsageError(
            f"result and {others[0]} exclude each other",
            hint="what made the result has measured; leave out one of the two",
        )
    found = read_result(path).result
    count, commit = len(found.benchmarks), found.commit
    head = Repository(cwd=Path.cwd(), environ=dict(os.environ)).commit("HEAD")
    if commit is not None and head is not None and commit.sha != head:
        raise UsageError(
            f"{path} is of commit {commit.sha[:12]}, and {head[:12]} is checked out",
            hint="measure in this job, after checkout",
        )
    shutil.copyfile(path, place)
    say(f"taken from {path}: {count} benchmark(s)")


def _words(text: str | None, identity: str | None, shard: str | None, jobs: str | None) -> list[str]:
    """Return the options and the command for `run`. UsageError where the command is none, or one for a shell."""
    options = [word for name, value in (("--shard", shard), ("--jobs", jobs)) if value for word in (name, value)]
    if not text or not text.strip():
        if identity:
            raise UsageError("id names the benchmark of a command, and there is none", hint="add the input 'command'")
        return options
    if "\n" in text.strip():
        raise UsageError("command: there are several lines", hint="one command; several are a suite: 'cg-bench init'")
    try:
        words = command_words(text, identity)
    except ValueError as error:
        raise UsageError(f"command: {error}: {text}", hint="as in a shell, quotes come in pairs") from error
    sign = shell_sign(text)
    if sign is not None:
        raise UsageError(
            f"command: it has {sign!r}, but no shell runs it", hint=f"write: sh -c {shlex.quote(text.strip())}"
        )
    return [*options, *words]


def _run(words: list[str], ended_well: tuple[int, ...], made: list[Path]) -> None:
    output.write(f"$ cg-bench {shlex.join(words)}\n")
    with unheard():
        status, told = own_command(words)
    if status not in ended_well or not all(path.exists() for path in made):
        hint = "all that was said is in the log"
        if words[0] == "ab":
            hint += "; what the job has built is not in the worktrees that 'ab' measures: a suite's set-up commands build there"
        raise MeasurementError(f"nothing was measured: {told}", hint=hint)
