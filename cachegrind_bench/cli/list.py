"""`cg-bench list`: what the suite of this project would run."""

from __future__ import annotations

import os
from typing import Any

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.help import Command
from cachegrind_bench.cli.options import format_option, selection_options, struct_of, working_directory
from cachegrind_bench.errors import UsageError

_EPILOG = """\b
Examples:
  cg-bench list
  cg-bench list -k 'json and not slow' --tag quick
  cg-bench list --format json
"""


@click.command("list", cls=Command, epilog=_EPILOG)
@selection_options
@format_option
def command(**options: Any) -> int:
    """Show what the suite would run: each benchmark's id, command, tags and parameters.

    Benchmarks are in cg-bench.toml, or in [tool.cg-bench] of pyproject.toml, in the working directory or the nearest
    folder above it, up to the top of the git work tree. Nothing is run but what lists the benchmarks of a harness, as pytest,
    after its set-up command. Mistakes in the configuration are reported.

    Exit code: 0; 2 if there is no benchmark; 4 if a harness could not list its own.
    """
    from cachegrind_bench.config.load import load
    from cachegrind_bench.config.source import find, ignored, shown
    from cachegrind_bench.model.text import plain
    from cachegrind_bench.render import listings
    from cachegrind_bench.store.baselines import Baselines
    from cachegrind_bench.usecases.selection import NO_BENCHMARKS, SelectRequest, selected, with_listed

    cwd = working_directory()
    path = find(cwd)
    if path is None:
        raise UsageError(
            f"there is no configuration in {cwd} or above it: no cg-bench.toml, no [tool.cg-bench] in pyproject.toml",
            hint="'cg-bench init' writes one to start from",
        )
    found, other, origin = load(path), ignored(path), plain(shown(path))
    if other is not None:
        output.write_error(f"cg-bench: {origin} is used, the cg-bench tables of {plain(shown(other))} are ignored\n")
    found = with_listed(found, dict(os.environ))
    if not found.benchmarks:
        output.write_error(f"cg-bench: {origin} has no benchmarks; {NO_BENCHMARKS}\n")
    request = struct_of(SelectRequest, options)
    is_whole = not found.benchmarks or request == SelectRequest()
    store = Baselines.find(found.root).store
    specs = found.benchmarks if is_whole else selected(found.benchmarks, request, store).specs
    width = output.terminal_width()
    output.write(listings.benchmarks(specs, len(found.benchmarks), shown(path), options["form"], width=width))
    return 0 if found.benchmarks else UsageError.exit_code
