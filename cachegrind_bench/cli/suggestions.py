"""What may have been meant where a command or an option does not exist; imported only then, as it looks at all commands."""

from __future__ import annotations

import difflib
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence

import click

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import joined, some

_LIKE = 0.65  # the least likeness of two words, of 1
_SHOWN = 4
# What other tools call it.
_OTHER_WORDS = {"bench": "run", "measure": "run", "stat": "run", "record": "run", "compare": "diff", "report": "show"}


def usage_error(error: click.ClickException) -> UsageError:
    """Return an error of click's in our words, with the usage of the command, and what may have been meant."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return UsageError(_sentence(error.format_message()))
    if isinstance(error, click.NoSuchOption):
        return _no_such_option(error.option_name, context)
    usage = context.get_usage().replace("Usage: ", "usage: ", 1)
    return UsageError(
        _sentence(error.format_message()), hint=f"{' '.join(usage.split())}\n'{context.command_path} --help' says more"
    )


def no_such_command(context: click.Context, words: Sequence[str]) -> UsageError:
    """Return the error about a command that does not exist."""
    name, path = words[0], context.command_path
    known = context.command.list_commands(context) if isinstance(context.command, click.Group) else []
    everywhere = dict(_commands(context.find_root()))
    meant = [f"{path} {near}" for near in _near(name, known)]
    meant += [f"cg-bench {_OTHER_WORDS[name]}"] if name in _OTHER_WORDS else []
    meant += [f"cg-bench {other}" for other in everywhere if other.split()[-1] == name]
    hints = [f"did you mean {' or '.join(map(repr, meant))}?"] * bool(meant)
    if context.parent is None and ("/" in name or shutil.which(name)):
        hints.append(f"to measure a program: cg-bench run -- {shlex.join(words)}")
    hint = "\n".join(hints) or f"'{path} --help' lists the commands"
    return UsageError(f"{_subject(context)} no command {name!r}", hint=hint)


def _no_such_option(name: str, context: click.Context) -> UsageError:
    own = [option for item in context.command.params for option in (*item.opts, *item.secondary_opts)]
    near = _near(name, own)
    others: dict[str, list[str]] = {}
    for path, command in _commands(context.find_root()):
        for option in (option for item in command.params for option in item.opts if option not in own):
            others.setdefault(option, []).append(f"'cg-bench {path}'")
    hints = [f"did you mean {' or '.join(near)}?"] * bool(near)
    for option in [name] if name in others else [] if near else _near(name, others)[:1]:
        having = others[option]
        hints.append(f"{option} is an option of {joined(having) if len(having) <= _SHOWN else some(having, _SHOWN)}")
    hints.append(f"'{context.command_path} --help' lists its options")
    return UsageError(f"{_subject(context)} no option {name}", hint="\n".join(hints))


def _subject(context: click.Context) -> str:
    words = context.command_path.split()[1:]
    return f"'{' '.join(words)}' has" if words else "there is"


def _near(name: str, known: Iterable[str]) -> list[str]:
    """Return the names that are most like this one, the nearest first."""
    plain = {item.lstrip("-"): item for item in known if item.startswith("--") == name.startswith("--")}
    return [plain[item] for item in difflib.get_close_matches(name.lstrip("-"), plain, n=2, cutoff=_LIKE)]


def _commands(root: click.Context, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield every command below this one, with the words that call it."""
    group = root.command
    assert isinstance(group, click.Group)  # noqa: S101 - it is only called with one
    for name in group.list_commands(root):
        command = group.get_command(root, name)
        if isinstance(command, click.Group):
            yield from _commands(click.Context(command, info_name=name, parent=root), f"{before}{name} ")
        elif command is not None:
            yield f"{before}{name}", command


def _sentence(text: str) -> str:
    """Return a sentence of click's as our errors are written: without capital letter and full stop."""
    text = " ".join(text.split())
    return f"{text[:1].lower()}{text[1:].removesuffix('.')}"
