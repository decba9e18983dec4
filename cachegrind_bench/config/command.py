"""What a configuration and a command line write as one text: a command, as a shell finds its words, and a duration."""

from __future__ import annotations

import re
import shlex

from cachegrind_bench.config.source import Source
from cachegrind_bench.config.suggestions import as_list, quoted
from cachegrind_bench.errors import UsageError

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(ms|s|m|min|h)?")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, None: 1000}


def milliseconds(text: str) -> int:
    """Read seconds, or a number with a unit (ms, s, min, h), as whole milliseconds; UsageError on anything else."""
    match = _DURATION.fullmatch(text.strip())
    found = round(float(match[1]) * _UNITS_MS[match[2]]) if match else 0
    if found <= 0:
        raise UsageError(f"{text!r} is not a time", hint="write seconds, as in 90, or 1.5min")
    return found


_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_SHELL_SIGN = re.compile(
    r"""[|&;<>`]+
    | \$[A-Za-z_]\w* | \$\{\w[^}]*\} | \$\(
    | (?<!\S)~(?![^\s\w/])[\w/.-]*
    | (?<!\S)(?!-|\S*://)[^\s*?]*[*?]\S*  # as options and addresses, no shell finds files""",
    re.VERBOSE,
)


def split(text: str, at: Source, key: str = "command") -> tuple[str, ...]:
    """Return the words of a command line, the value of this key. FileFormatError where it is not one, or one for a shell."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        problem = "a backslash at its end" if "escaped" in str(error) else "a quote that is not closed"
        at.fail(f"the {key} has {problem}: {text}", hint=f'write it as a list: {key} = ["prog", "it\'s"]')
    sign = shell_sign(text)
    if sign is not None and key != "command":
        at.fail(f"{key} has {sign!r}, but no shell reads it", hint=f"write a list of texts: {key} = {as_list(words)}")
    if sign is not None:
        other = 'stdin = "FILE", or ' if sign.startswith("<") else ""
        at.fail(
            f"the command has {sign!r}, but no shell runs it: quote it if it is part of an argument",
            hint=f'else write {other}command = ["sh", "-c", {quoted(text)}]',
        )
    name, equals, _ = words[0].partition("=") if words else ("", "", "")
    if equals and name.isidentifier():
        at.fail(f"the command begins with a variable, but no shell runs it: write env = [{words[0]!r}]")
    return words


def shell_sign(text: str) -> str | None:
    """Return the first part of a command line that only a shell would understand; None if there is none."""
    # What is quoted means itself, and is of no interest but for its place.
    sign = _SHELL_SIGN.search(_QUOTED.sub(lambda match: "." * len(match[0]), text))
    return None if sign is None else text[slice(*sign.span())]
