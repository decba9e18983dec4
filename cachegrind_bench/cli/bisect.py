"""`cg-bench bisect`: measure the commits that a finding may have come with, until one is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.comparison_options import evidence_option
from cachegrind_bench.cli.help import options_group
from cachegrind_bench.cli.options import (
    MEASURED,
    TrailingCommand,
    history_options,
    jobs_option,
    names_of,
    opened_store,
    repetition_options,
    repository,
    struct_of,
    trailing_words,
    typed_words,
)
from cachegrind_bench.errors import UsageError
from cachegrind_bench.history.values import Finding, Kind
from cachegrind_bench.model.text import plain
from cachegrind_bench.usecases.trend import Found, HistoryQuery, find_all

_EPILOG = """\b
Each commit is checked out into a temporary git worktree, its set-up command is run, and the benchmark measured, here and
now; your own work tree is left alone. A commit without a configuration, or without the benchmark in it, is measured by that
of your checkout. The commit before the suspects and the last of them are measured first: if they do not
differ here, nothing else is.

\b
Exit code: 0 if one commit is left, 3 if several are, or the change does not show here; 4 if measuring failed.

\b
Examples:
  cg-bench trend
  cg-bench bisect 3f9a
  cg-bench bisect 3f9a -- python benchmark.py
"""

# The options among these that are typed go to the measuring side.
_run_options = options_group(options_group(jobs_option, heading=MEASURED), repetition_options)
_UNDECIDED = 3


@click.command("bisect", cls=TrailingCommand, epilog=_EPILOG)
@history_options
@_run_options
@evidence_option
@click.argument("finding")
def command(finding: str, **options: Any) -> int:
    """Narrow a FINDING of 'cg-bench trend', named by the beginning of its id, down to the commit that caused it.

    The benchmark is one of the suite, by its former or present name; otherwise give the command to measure after --.
    """
    found = find_all(struct_of(HistoryQuery, options), repository(), opened_store(options))
    item = _named(finding, found)
    if item.kind is Kind.CREEP:
        ends = f"{item.suspects[0][:12]} {item.suspects[-1][:12]}" if item.suspects else "FIRST LAST"
        raise UsageError(f"{item.benchmark} crept up little by little", hint=f"cg-bench ab {ends} shows what grew")
    if item.kind is Kind.UNSTABLE:
        raise UsageError(f"{item.benchmark} is unstable", hint="run 'cg-bench verify' to find the cause")
    if len(item.suspects) > 1 and item.last_good_sha is not None:
        return _narrow(item, item.last_good_sha, found, options["evidence"])
    return _report(item, item.suspects, found)


def _named(text: str, found: Found) -> Finding:
    items = [item for item in found.findings if text and item.id.startswith(text)]
    if len(items) == 1:
        return items[0]
    known = ", ".join(f"{item.id} ({item.kind.value} of {item.benchmark})" for item in (items or found.findings)[:10])
    what = f"{text!r} may be several findings" if items else f"there is no finding {text!r}"
    where = f"nothing was found in {found.store}; give --store and the other options that you gave to 'trend'"
    raise UsageError(what, hint=f"there are: {known}" if known else where)


def _narrow(item: Finding, good: str, found: Found, evidence: str) -> int:
    from cachegrind_bench.cli.run import measured_in
    from cachegrind_bench.compare.verdict import State
    from cachegrind_bench.render.comparison.view import headline
    from cachegrind_bench.usecases.comparison import GateOptions, ReportOptions, compared
    from cachegrind_bench.usecases.evidence import Evidence
    from cachegrind_bench.usecases.worktrees import bisected

    words = [*typed_words(set(names_of(_run_options)) - {"model"}), *trailing_words()]
    done = bisected(item, good, found, words, run=measured_in, evidence=Evidence(evidence))
    if done.left is None:
        output.write(
            f"{item.benchmark} does not show the change here: {done.before:,} at {good[:12]}, "
            f"{done.after:,} at {item.suspects[-1][:12]}\n"
        )
        return _UNDECIDED
    code = _report(item, done.left.suspects, found, done.left.skipped)
    if done.sides is not None:
        made = compared(*done.sides, GateOptions().gates(), ReportOptions())
        if made.comparison.verdict is not State.UNCHANGED:
            output.write(f"{headline(made)}\n")
    return code


def _report(item: Finding, suspects: Sequence[str], found: Found, skipped: Sequence[str] = ()) -> int:
    """Write which commits are left, and return the exit code."""
    notes = {note.sha: note for note in found.set.line}
    what = f"{item.kind.value} of {item.benchmark}, {item.before:,} → {item.after:,}"
    lines = [f"{what}: {'it is' if len(suspects) == 1 else 'it is one of'}"]
    for sha in suspects:
        note = notes.get(sha)
        text = f"{note.author}: {note.subject}" if note is not None else ""
        lines.append(f"  {sha[:12]}  {text}{'  (could not be measured)' if sha in skipped else ''}")
    output.write("".join(f"{plain(line.rstrip())}\n" for line in lines))
    return 0 if len(suspects) == 1 else _UNDECIDED
