"""Help pages: options and commands under headings, wrapped to the terminal. Click has neither headings nor lists that wrap."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeVar, cast

import click

from cachegrind_bench.cli.output import cannot_write

Function = TypeVar("Function", bound="Callable[..., Any]")
Row = tuple[str, str]

_OTHER = "Other options"
_VERBATIM = "\b"  # click's mark of a paragraph whose lines are kept
_ITEM = re.compile(r" {2}(\S+(?: \S+)*) {2,}(\S.*)")  # of a list in such a paragraph: a term, two spaces, what it means
_HYPHEN = "\N{NON-BREAKING HYPHEN}"
_DEFAULT = re.compile(r" *\[default: ([^\]]*)\]")


def options_group(*options: Callable[[Any], Any], heading: str = "") -> Callable[[Function], Function]:
    """Return several options as one decorator; the help page has them in this order, and under this heading."""

    def decorate(function: Function) -> Function:
        before = len(vars(function).get("__click_params__", ()))
        done = reduce(lambda inner, option: option(inner), reversed(options), function)
        for option in cast("list[click.Parameter]", vars(done)["__click_params__"])[before:]:
            if heading:
                vars(option).setdefault("heading", heading)
        return done

    return decorate


def term_of(option: click.Option) -> str:
    """Return an option as it is typed, with what stands for its value."""
    names = ", ".join(sorted((*option.opts, *option.secondary_opts), key=len))
    return names if option.is_flag else f"{names} {value_of(option)}"


def value_of(option: click.Option) -> str:
    """Return what stands for an option's value."""
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(str(choice) for choice in cast("Iterable[object]", option.type.choices))
    return "N" if isinstance(option.type, click.types.IntParamType) else option.type.name.upper()


def meaning_of(option: click.Option) -> tuple[str, str]:
    """Return the help of an option and its default: the real one, or what the help says in brackets; else an empty text."""
    text = option.help or ""
    said = _DEFAULT.search(text)
    if said:
        return _DEFAULT.sub("", text), said[1]
    value = option.default
    shown = not option.is_flag and option.show_default is not False and isinstance(value, str | int)
    return text, str(value) if shown else ""


def options_of(command: click.Command, context: click.Context) -> dict[str, list[click.Option]]:
    """Return the options of a command under their headings, those without one last."""
    found: dict[str, list[click.Option]] = {}
    for option in command.get_params(context):
        if isinstance(option, click.Option) and not option.hidden:
            found.setdefault(vars(option).get("heading", _OTHER), []).append(option)
    other = found.pop(_OTHER, [])
    return {**found, (_OTHER if found else "Options"): other}


def _row(option: click.Option) -> Row:
    text, default = meaning_of(option)
    return term_of(option), f"{text} [default: {default}]" if default else text


class _Formatter(click.HelpFormatter):
    """Wraps text, but not at hyphens: `cg-bench` and the names of options stay whole."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(text.replace("-", _HYPHEN))

    def write_dl(self, rows: Iterable[Row], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write a list of terms and what they mean."""
        super().write_dl([(term, text.replace("-", _HYPHEN)) for term, text in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        """Return all that was written."""
        return super().getvalue().replace(_HYPHEN, "-")


class _Context(click.Context):
    formatter_class = _Formatter


class Command(click.Command):
    """A command whose help page has its options under headings."""

    context_class = _Context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the options; where one of them prints a page, that stdout cannot take it is an error as it is elsewhere."""
        try:
            return super().parse_args(ctx, args)
        except OSError as error:
            raise cannot_write(error) from error

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        write_sections(formatter, {title: [*map(_row, options)] for title, options in options_of(self, ctx).items()})

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what follows the options; lists in it are wrapped, too."""
        del ctx
        write_epilog(formatter, self.epilog or "")


class Group(Command, click.Group):
    """Commands below a command."""

    command_class = Command

    def sections(self) -> Mapping[str, Mapping[str, str]]:
        """Return the commands under their headings, with their summaries."""
        return {"Commands": {name: summary_of(command) for name, command in self.commands.items()}}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the help page."""
        del ctx
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, then the options."""
        write_sections(formatter, {title: list(rows.items()) for title, rows in self.sections().items()})
        super().format_options(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: the commands are above the options."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called. UsageError with what may have been meant if it does not exist."""
        if not ctx.resilient_parsing and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from cachegrind_bench.cli.suggestions import no_such_command

            raise no_such_command(ctx, args)
        return super().resolve_command(ctx, args)


def summary_of(command: click.Command) -> str:
    """Return the first sentence of a command's help."""
    text = " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.:?]) |: ", text)[0].rstrip(".:") + "."


def write_sections(formatter: click.HelpFormatter, sections: Mapping[str, Sequence[Row]]) -> None:
    """Write lists under their headings, in the same columns; a term that is too long is on a line of its own."""
    longest = max((len(term) for rows in sections.values() for term, _ in rows), default=0)
    width = min(longest, formatter.width // 3)
    for title, rows in sections.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl([(term.ljust(width), text) for term, text in rows], col_max=width)


def write_epilog(formatter: click.HelpFormatter, text: str) -> None:
    """Write paragraphs: what follows a colon is a list, which is wrapped, or examples, which keep their lines."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text).strip()):
        head, *rest = paragraph.removeprefix(f"{_VERBATIM}\n").splitlines()
        items = _items(rest) if head.endswith(":") else None
        formatter.write_paragraph()
        if items is not None:
            formatter.write_text(head)
            with formatter.indentation():
                formatter.write_dl(items, col_max=formatter.width // 3)
        elif head.endswith(":"):
            formatter.write("".join(f"{line}\n" for line in (head, *rest)))
        else:
            formatter.write_text(" ".join((head, *rest)))


def _items(lines: Sequence[str]) -> list[Row] | None:
    """Return the terms of a list and what they mean, from lines that begin with a term or go on; None if it is not a list."""
    rows: list[Row] = []
    for line in lines:
        if match := _ITEM.fullmatch(line):
            rows.append((match[1], match[2]))
        elif rows and line.startswith("    "):
            term, meaning = rows[-1]
            rows[-1] = term, f"{meaning} {line.strip()}"
        else:
            return None
    return rows or None
