"""Commands that take another command to measure behind `--`, after arguments and options of their own."""

from __future__ import annotations

import click


class TrailingCommand(click.Command):
    """Takes what stands behind `--` for the command to measure, as arguments and options may stand before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what stands before `--`."""
        place = args.index("--") if "--" in args else len(args)
        ctx.meta["words"] = args[place:]
        return super().parse_args(ctx, args[:place])


def trailing_words() -> list[str]:
    """Return `--` and what stands behind it; nothing if it was not given."""
    words: list[str] = click.get_current_context().meta["words"]
    return words
