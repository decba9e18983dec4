"""`cg-bench init`: a configuration to start from, with one benchmark that works."""

from __future__ import annotations

import click

from cachegrind_bench.cli import output
from cachegrind_bench.cli.help import Command
from cachegrind_bench.cli.options import working_directory
from cachegrind_bench.errors import UsageError

_EPILOG = """\b
Examples:
  cg-bench init --dry-run
  cg-bench init && cg-bench run
"""


@click.command("init", cls=Command, epilog=_EPILOG)
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
def command(*, dry_run: bool) -> None:
    """Write a commented configuration with one benchmark that works in this project.

    A Python project's pyproject.toml gets [tool.cg-bench] tables after what it has; Rust, C and other projects get a
    cg-bench.toml. The benchmark's small program is written too, unless the project has benchmarks already, of a framework
    that cg-bench knows, as Criterion or Catch2: then these are what is measured. No existing file is replaced, and nothing
    is done where there is a configuration already.
    """
    from cachegrind_bench.config.source import find, shown
    from cachegrind_bench.config.starter import project, starter
    from cachegrind_bench.harness.protocol import detected
    from cachegrind_bench.store.durable import check_writable, make_folder, write_atomic

    root = project(working_directory())
    known = find(root)
    if known is not None and known.is_file():
        raise UsageError(
            f"there is a configuration already: {shown(known)}",
            hint="'cg-bench list' shows what 'cg-bench run' would measure",
        )
    harnesses = detected(root)
    files = starter(root, harnesses)
    if dry_run:
        output.write("\n".join(f"==> {shown(file.path)}\n{file.added}" for file in files))
        return
    for file in files:  # that all can be written is known before the first one is
        make_folder(file.path.parent)
        check_writable(file.path)
    for file in files:
        write_atomic(file.path, file.data)
    done = "".join(f"{'extended' if file.is_extended else 'wrote'} {shown(file.path)}\n" for file in files)
    found = f"this project has benchmarks already: {', '.join(harnesses)}\n" if harnesses else ""
    what, which = ("them", "them") if harnesses else ("the benchmark", "it")
    output.write(f"{done}{found}'cg-bench list' shows {what}, 'cg-bench run' measures {which}\n")
