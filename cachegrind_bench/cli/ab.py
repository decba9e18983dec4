"""`cg-bench ab`: measure two commits here and now, and compare them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.comparison_options import deliver, detail_options, gate_options, gates_of, report_options
from cachegrind_bench.cli.defaults import configured_benchmarks
from cachegrind_bench.cli.options import (
    TrailingCommand,
    benchmark_option,
    expression_option,
    id_option,
    jobs_option,
    names_of,
    options_group,
    refuse_options_of_a_suite,
    repetition_options,
    size_limit_option,
    tag_option,
    trailing_words,
    typed_words,
    working_directory,
)
from cachegrind_bench.errors import UsageError
from cachegrind_bench.usecases import Notices
from cachegrind_bench.usecases.comparison import Side, compared, same_program
from cachegrind_bench.usecases.result_files import read_result

if TYPE_CHECKING:
    from cachegrind_bench.vcs.revisions import Repository

_EPILOG = """\b
Both commits are checked out into a temporary git worktree, at the same path, one after the other; your own work tree is
left alone. In each, the suite of that commit's configuration is measured, set-up commands first, or the command after --.
Without CANDIDATE, what is measured are your tracked files as they are, committed or not. Files that git does not track are
not there, and submodules are empty: a set-up command can fill them.

Programs must be those of the worktree: a package installed from elsewhere ('pip install -e .' in your own checkout) is the
same in both. A set-up command can build or install what belongs to the commit.

\b
Exit code: as for 'diff'; 4 if a commit could not be measured.

\b
Examples:
  cg-bench ab main
  cg-bench ab v1.2 v1.3 -k parser
  cg-bench ab HEAD~1 --prepare 'make -s' -- ./build/parser data.txt
"""

_SIDES = "base", "candidate"

# What is typed of these is for those who measure.
_run_options = options_group(
    expression_option, benchmark_option, tag_option, jobs_option, id_option, repetition_options
)


@click.command("ab", cls=TrailingCommand, epilog=_EPILOG)
@gate_options
@_run_options
@detail_options
@size_limit_option
@click.option("--keep", metavar="DIR", help="Keep both result files here, as base.json and candidate.json.")
@click.argument("base")
@click.argument("candidate", required=False)
def command(base: str, candidate: str | None, **options: Any) -> int:
    """Measure the commits BASE and CANDIDATE here and now, and compare them: 'cg-bench ab main'.

    For when there is no history to compare with, or it was measured in another environment.
    """
    from cachegrind_bench.store.durable import check_writable, make_folder, write_atomic
    from cachegrind_bench.usecases.worktrees import opened_worktree
    from cachegrind_bench.vcs.revisions import Repository

    if trailing_words():
        refuse_options_of_a_suite()
    gates = gates_of(options, configured_benchmarks())
    shown = report_options(options)
    shown.check_files()
    repository = Repository(cwd=working_directory(), environ=dict(os.environ))
    shas = _commit(repository, base), _candidate(repository, candidate)
    keep = None if options["keep"] is None else make_folder(Path(options["keep"]))
    if keep is not None:
        for side in _SIDES:
            check_writable(keep / f"{side}.json")
    words = [*typed_words([*names_of(_run_options), "lines"]), *trailing_words()]
    names = base, candidate or "your work tree"
    with opened_worktree(repository, Notices(write=output.write_error)) as place:
        files = [place.folder / f"{side}.json" for side in _SIDES]
        for file, name, sha in zip(files, names, shas, strict=True):
            output.write_error(f"cg-bench: measuring {name}, commit {sha[:12]}\n")
            place.measure(sha, words, file)
            if keep is not None:
                write_atomic(keep / file.name, file.read_bytes())
        sides = [
            Side(name=name, file=read_result(str(file), limit=options["max_size"]))
            for name, file in zip(names, files, strict=True)
        ]
        made = compared(sides[0], sides[1], gates, shown)
        made = made.with_remarks(same_program(made.comparison))
    try:
        deliver(made, shown)
    except BrokenPipeError:
        output.forget(sys.stdout)  # that nobody reads on must not make a regression green
    return made.exit_code()


def _commit(repository: Repository, revision: str) -> str:
    sha = repository.named(revision)
    if sha is None:
        raise UsageError(f"git knows no commit {revision!r}", hint=repository.advice(revision))
    return sha


def _candidate(repository: Repository, revision: str | None) -> str:
    """Return the commit of the candidate: if none is named, one of the tracked files as they are."""
    from cachegrind_bench.vcs.worktree import changes_as_commit

    if revision is not None:
        return _commit(repository, revision)
    return changes_as_commit(repository.cwd, repository.environ) or _commit(repository, "HEAD")
