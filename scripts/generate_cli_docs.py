"""Write docs/cli.md from the commands' own help: `python scripts/generate_cli_docs.py`, or `--check` to compare only.

Built from click's values, not from its printed help: line breaks and signs of the latter differ between click's versions.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cachegrind_bench.cli.help import meaning_of, options_of, value_of  # noqa: E402 - the checkout, wherever this is started
from cachegrind_bench.cli.main import COMMANDS, cli  # noqa: E402

TARGET = ROOT / "docs" / "cli.md"

_HEAD = """\
# Command line

<!-- Made by scripts/generate_cli_docs.py from the commands' help: change it there, then run that script. -->

{summary}

    cg-bench COMMAND [OPTIONS] …

`-h` or `--help` prints the help of every command; `cg-bench --version` prints the version.

| Command | |
| --- | --- |
{table}

An option beats the environment variable in its row, which beats the default. Lists in a variable are separated by spaces;
flags take `1` or `0`.

## Exit codes

| Code | Meaning |
| --- | --- |
| 0 | fine |
| 1 | `diff`: a regression; `verify`: something moved the counts |
| 2 | bad usage, or input that cannot be read |
| 3 | `diff`: results not comparable, missing or suspicious, or none compared; `merge`: results that do not belong together |
| 4 | measuring failed: the command failed or timed out, or Valgrind did; `doctor`: this machine cannot measure |
| 70 | an error in cg-bench itself; a traceback says where |
| 130 | interrupted |

Ctrl-C is Python's own in the first hundredths of a second, before anything of cg-bench runs: a traceback, and code 130 or, in the first
few milliseconds, 1. Whoever counts on code 1 and may interrupt that early finds the traceback on stderr.

`check` answers `git bisect run`, with [codes of its own](#cg-bench-check).
"""


def page() -> str:
    """Return the whole page."""
    context = click.Context(cli, info_name="cg-bench")
    table = "\n".join(f"| [`{name}`](#cg-bench-{name}) | {_cell(summary)} |" for name, summary in COMMANDS.items())
    parts = [_HEAD.format(summary=_blocks(cli.help or ""), table=table)]
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None, name
        below = click.Context(command, info_name=name, parent=context)
        parts.append(_section(name, command, below))
        if isinstance(command, click.Group):
            parts += [
                _section(f"{name} {inner}", found, click.Context(found, info_name=inner, parent=below), level=3)
                for inner, found in command.commands.items()
            ]
    return "\n".join(parts)


def _section(name: str, command: click.Command, context: click.Context, *, level: int = 2) -> str:
    pieces = [f"{'#' * level} cg-bench {name}", f"    {_usage(name, command)}", _blocks(command.help or "")]
    sections = options_of(command, context)
    for heading, options in sections.items():
        rows = [_row(option) for option in options if "--help" not in option.opts]
        if rows:
            head = [
                f"| {heading if len(sections) > 1 else 'Option'} | Meaning | Default | Variable |",
                "| --- | --- | --- | --- |",
            ]
            pieces.append("\n".join([*head, *rows]))
    if command.epilog:
        pieces.append(_blocks(command.epilog))
    return "\n\n".join(pieces) + "\n"


def _blocks(text: str) -> str:
    r"""Return help text as Markdown: click's `\b` keeps line breaks, and under a line ending in a colon means a list."""
    blocks: list[str] = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text.replace("\f", "")).strip()):
        lines = block.strip("\n").splitlines()
        kept = bool(lines) and lines[0].strip() == "\b"
        lines = lines[1:] if kept else lines
        if kept and len(lines) > 1 and lines[0].endswith(":"):
            blocks += [lines[0], "\n".join(f"    {line.removeprefix('  ')}" for line in lines[1:])]
        elif lines:
            blocks.append("\n".join(line.strip() for line in lines))
    return "\n\n".join(blocks)


def _usage(name: str, command: click.Command) -> str:
    arguments = [item for item in command.params if isinstance(item, click.Argument)]
    if isinstance(command, click.Group):
        return f"cg-bench {name} COMMAND [OPTIONS] …"
    words = [item.metavar or item.make_metavar(click.Context(command)) for item in arguments]
    return " ".join(["cg-bench", name, "[OPTIONS]", *words])


def _row(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in sorted(option.opts, key=len))
    value = "" if option.is_flag else f" `{_cell(value_of(option))}`"
    meaning, default = meaning_of(option)
    if option.default is not None and default == str(option.default):
        default = f"`{default}`"
    variable = f"`{option.envvar}`" if isinstance(option.envvar, str) else ""
    return f"| {names}{value} | {_cell(meaning)} | {_cell(default)} | {variable} |"


def _cell(text: str) -> str:
    """Return text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def main() -> int:
    """Write the page, or with --check say whether it is current."""
    text = page()
    if sys.argv[1:] == ["--check"]:
        if TARGET.read_text(encoding="utf-8") == text:
            return 0
        print(f"{TARGET.relative_to(ROOT)} is not current: run python scripts/generate_cli_docs.py", file=sys.stderr)
        return 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
