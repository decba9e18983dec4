"""What a user may name a result by: a file, `-`, or a saved baseline. Finds the file to open, and opens nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cachegrind_bench.errors import UsageError
from cachegrind_bench.store.baselines import Baselines

if TYPE_CHECKING:
    from pathlib import Path

_FILE, _BASELINE = "file:", "baseline:"


def is_known(text: str, cwd: Path) -> bool:
    """Tell whether `resolve` would find something: stdin, a file or a saved baseline."""
    if text == "-" or text.startswith((_FILE, _BASELINE)):
        return True
    return (os.path.lexists(cwd / text) and not os.path.isdir(cwd / text)) or Baselines.find(cwd).exists(text)


def resolve(text: str, cwd: Path) -> str:
    """Return the path of the result that `text` names, `-` being stdin. UsageError if it names none.

    An existing file comes before a baseline of the same name; `file:` and `baseline:` force one of them.
    """
    if text == "-":
        return text
    if text.startswith(_FILE):
        path = text.removeprefix(_FILE)
        return path if path != "-" else f".{os.sep}-"
    saved = Baselines.find(cwd)
    if text.startswith(_BASELINE):
        name = text.removeprefix(_BASELINE)
        if saved.exists(name):
            return str(saved.path(name))
        raise UsageError(f"there is no baseline {name!r}", hint=saved.known())
    # A folder cannot be meant: `main` may well be both a baseline and a folder of the sources.
    if os.path.exists(cwd / text) and not os.path.isdir(cwd / text):
        return text
    if saved.exists(text):
        return str(saved.path(text))
    if text and os.path.lexists(cwd / text):
        return text  # what is wrong with it is told by whoever opens it
    raise UsageError(f"{text!r} is neither a result file nor a saved baseline", hint=saved.known())
