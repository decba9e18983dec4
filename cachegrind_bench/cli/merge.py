"""`cg-bench merge`: the results of a suite's shards as one file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.help import Command
from cachegrind_bench.cli.options import size_limit_option, working_directory
from cachegrind_bench.usecases.comparison_inputs import resolve_all
from cachegrind_bench.usecases.result_files import read_result

if TYPE_CHECKING:
    from cachegrind_bench.model.codec import ResultFile

_EPILOG = """\b
The files must belong together: measured on the same commit, by the same version of cg-bench, on machines that compare.
Other facts about the machines are kept if all files agree; the date is the earliest. A benchmark that is in
several files must be the same in all, except for the time it took.

\b
Exit code: 0 if the merged file was written, 2 if a file cannot be read or written, 3 if they do not belong together.

\b
Examples:
  cg-bench merge shard-1.json shard-2.json -o all.json
  cg-bench merge shard-*.json -o - | cg-bench diff main -
"""


@click.command("merge", cls=Command, epilog=_EPILOG)
@click.option(
    "-o", "--output", "target", metavar="FILE", required=True, help="Write the merged result here; '-' is stdout."
)
@size_limit_option
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def command(files: tuple[str, ...], target: str, max_size: int) -> None:
    """Merge result FILEs into one, such as those of all shards of a suite.

    Each is a result file, '-' for stdin, or a saved baseline. Benchmarks keep the order of the files. Says what each
    file holds: on stdout, or on stderr if the result goes to stdout.
    """
    from cachegrind_bench.model.codec import encode
    from cachegrind_bench.suite.merge import merged

    output.check_result_file(target)
    opened = [read_result(name, limit=max_size) for name in resolve_all(files, working_directory())]
    data, report = encode(merged([(file.name, file.whole()) for file in opened])), _report(opened)
    output.write_file(target, data)
    output.write_beside(target, report)


def _report(files: Sequence[ResultFile]) -> str:
    """Return one line for each file."""
    from cachegrind_bench.model.text import counted, plain
    from cachegrind_bench.suite.merge import missing_from

    known: set[str] = set()
    lines: list[str] = []
    for file in files:
        benchmarks = file.result.benchmarks
        failed = len(file.result.failed)
        again = len(known.intersection(item.id for item in benchmarks))
        known.update(item.id for item in benchmarks)
        parts = [counted(len(benchmarks), "benchmark")]
        parts += [f"{failed} failed"] * bool(failed)
        parts += [f"{again} of an earlier file"] * bool(again)
        lines.append(f"{plain(file.name)}: {', '.join(parts)}\n")
    lines.append(f"together: {counted(len(known), 'benchmark')}\n")
    missing = missing_from([file.result for file in files])
    if missing:
        lines.append(f"! {counted(missing, 'benchmark')} of the suite missing: did you leave out a shard's file?\n")
    return "".join(lines)
