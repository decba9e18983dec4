"""`cg-bench completion`: what a shell needs to complete our commands and options, which is click's own script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from cachegrind_bench.cli import output
from cachegrind_bench.cli.help import Command
from cachegrind_bench.cli.main import COMPLETE

_EPILOG = """\b
For every new shell, add a line to its start file:
  ~/.bashrc                   eval "$(cg-bench completion bash)"
  ~/.zshrc                    eval "$(cg-bench completion zsh)"
  ~/.config/fish/config.fish  cg-bench completion fish | source

\b
Examples:
  cg-bench completion bash > ~/.local/share/bash-completion/completions/cg-bench
  cg-bench completion fish > ~/.config/fish/completions/cg-bench.fish
"""


@click.command("completion", cls=Command, epilog=_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script by which a shell completes commands and options of cg-bench.

    Bash must be 4.4 or newer.
    """
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click knows these three
    root = click.get_current_context().find_root().command
    output.write(found(root, {}, "cg-bench", COMPLETE).source())
