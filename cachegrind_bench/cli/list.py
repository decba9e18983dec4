"""`cg-bench list`: what the suite of this project would run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.options import format_option, selection_options, working_directory
from cachegrind_bench.cli.selection import NO_BENCHMARKS, selected
from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cachegrind_bench.config.benchmarks import BenchmarkSpec, Configuration

_EPILOG = """\b
Examples:
  cg-bench list
  cg-bench list -k 'json and not slow' --tag quick
  cg-bench list --format json
"""


@click.command("list", epilog=_EPILOG)
@selection_options
@format_option
def command(**options: Any) -> None:
    """Show what the suite would run: each benchmark's id, command, tags and parameters.

    Benchmarks are in cg-bench.toml, or in [tool.cg-bench] of pyproject.toml, in the working directory or the nearest
    folder above it, up to the top of the git work tree. Nothing is run, but mistakes in the configuration are reported.
    """
    from cachegrind_bench.config.load import load
    from cachegrind_bench.config.source import find, ignored, shown
    from cachegrind_bench.model.text import plain
    from cachegrind_bench.render import listings

    cwd = working_directory()
    path = find(cwd)
    if path is None:
        raise UsageError(
            f"there is no configuration in {cwd} or above it: no cg-bench.toml, no [tool.cg-bench] in pyproject.toml",
            hint="'cg-bench init' writes one to start from",
        )
    found, other, origin = load(path), ignored(path), plain(shown(path))
    if other is not None:
        output.write_error(f"cg-bench: {origin} is used, what {plain(shown(other))} says to cg-bench is ignored\n")
    if not found.benchmarks:
        output.write_error(f"cg-bench: {origin} has no benchmarks; {NO_BENCHMARKS}\n")
    specs = _selected(found, options)
    width = output.terminal_width()
    output.write(listings.benchmarks(specs, len(found.benchmarks), shown(path), options["form"], width=width))


def _selected(found: Configuration, options: Mapping[str, Any]) -> Sequence[BenchmarkSpec]:
    if not found.benchmarks or not any(options[name] for name in ("expression", "patterns", "tags", "shard")):
        return found.benchmarks
    from cachegrind_bench.store.baselines import Baselines

    return selected(found.benchmarks, options, Baselines.find(found.root).store).specs
