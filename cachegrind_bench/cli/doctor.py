"""`cg-bench doctor`: examine this machine."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.help import Command
from cachegrind_bench.cli.options import format_options, valgrind_option
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.waiting import Waiting

_EPILOG = """\b
Marks: ✓ in order, ! works, but less exactly or comfortably, ✗ measuring is impossible.

Exit code: 0 if programs can be measured here, 4 if not.

\b
Examples:
  cg-bench doctor
  cg-bench doctor --valgrind /opt/valgrind/bin/valgrind --format json
"""


@click.command("doctor", cls=Command, epilog=_EPILOG)
@valgrind_option
@format_options("table", "json")
def command(valgrind: str | None, form: str) -> int:
    """Examine this machine: Valgrind, each part of the seal, git; and say how to fix what is missing.

    Small programs are really started and measured, so it takes a few seconds.
    """
    from cachegrind_bench.measure.doctor import examine
    from cachegrind_bench.render import diagnosis

    try:
        cwd = Path.cwd()
    except FileNotFoundError:
        cwd = Path("/")
    found = examine(dict(os.environ), cwd, valgrind=valgrind, waiting=Waiting())
    output.write(diagnosis.machine(found, form, width=output.terminal_width()))
    return 0 if found.works else MeasurementError.exit_code
