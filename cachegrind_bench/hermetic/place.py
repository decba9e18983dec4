"""Where the program sees its files: the project, a virtual environment and the run's directory at paths of constant text.

Paths are data: Python hashes and copies them. Knows paths and their translation, also in files of Python environments; how
they are mounted is in `program`. Runs in cg-bench and inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from cachegrind_bench.hermetic.files import opened
from cachegrind_bench.startup.exchange import WORKTREE

# Every Linux has /mnt (Filesystem Hierarchy Standard). It is covered in the program's mount namespace alone.
BASE = "/mnt"
NAME = "cg-bench"
ROOT = f"{BASE}/{NAME}"
BESIDE = f"{ROOT}/checkout"  # has links to what lies next to the project
PROJECT, VENV, RUN, PLUGIN = f"{BESIDE}/project", f"{ROOT}/venv", f"{ROOT}/run", f"{ROOT}/cachegrind_bench"

Pair = tuple[str, str]  # the real path of a folder, and where the program sees it

# Where a path may begin within a word, and what may follow it: --file=/here/x, -I/here/x, a:/here/x; never /else/here.
_BEFORE, _AFTER = r"(^(?:-[A-Za-z])?|[=:,;\s\"'(])", r"(?=/|$|[:,;\s\"')])"


def pairs_of(
    cwd: str, executable: str, home: str | None, scratch: str | None = None, *, plugin: str | None = None
) -> tuple[Pair, ...]:
    """Return the folders to be seen at constant paths by this program, the innermost first; `plugin` is our package, where it is imported."""
    found = {folder: seen for folder, seen in ((scratch, RUN), (plugin, PLUGIN)) if folder is not None}
    project = project_of(cwd, home)
    if project is not None:
        found[project] = PROJECT
    venv = venv_of(executable)
    if venv is not None:  # inside of the project, too: a worktree has none, and uses the checkout's
        found.setdefault(venv, VENV)
    return tuple(sorted(found.items(), key=_innermost_first))


def _innermost_first(pair: Pair) -> tuple[int, Pair]:
    return -len(pair[0]), pair


def venv_of(executable: str) -> str | None:
    """Return the virtual environment that this is the Python of, None if it is of none."""
    folder = os.path.dirname(os.path.dirname(executable))
    return folder if os.path.isfile(f"{folder}/pyvenv.cfg") else None


def project_of(cwd: str, home: str | None) -> str | None:
    """Return the top of the checkout that holds this directory, else the directory; None if that holds much more."""
    top = cwd
    while not os.path.lexists(f"{top}/.git") and top != os.sep:
        top = os.path.dirname(top)
    needed = (ROOT, "/tmp")  # noqa: S108 - never written to
    for folder, more in ((top, (home or os.sep,)), (cwd, ())):
        if not any(is_below(place, folder) for place in (*needed, *more)):
            return folder
    return None


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is this folder or in it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


class Translation:
    """Translates text with paths: `seen` into what the program gets, `real` back."""

    def __init__(self, pairs: tuple[Pair, ...]) -> None:
        self.pairs = pairs
        self._real = [(os.fsencode(seen), os.fsencode(real)) for real, seen in pairs]
        self._real += [
            (BESIDE.encode(), os.path.dirname(real).rstrip(b"/"))
            for seen, real in self._real
            if seen == PROJECT.encode()
        ]

    def seen(self, text: str) -> str:
        """Return a word of the command, or a variable's value, as the program gets it."""
        for real, seen in self.pairs:
            if real in text:
                text = re.sub(_BEFORE + re.escape(real) + _AFTER, r"\1" + seen.replace("\\", r"\\"), text)
        return text

    def real(self, text: str) -> str:
        """Return text of the program with the real paths."""
        return os.fsdecode(self.real_bytes(os.fsencode(text))) if ROOT in text else text

    def real_bytes(self, data: bytes) -> bytes:
        """Return bytes of the program with the real paths."""
        for seen, real in self._real:
            data = data.replace(seen, real)
        return data


NOWHERE = Translation(())


class Restored:
    """Passes a program's output on with the real paths; a part that may be the beginning of one waits for the rest."""

    def __init__(self, places: Translation, echo: Callable[[bytes], None]) -> None:
        self.places, self._echo, self._waiting = places, echo, b""
        self._seen = [os.fsencode(seen) for _real, seen in places.pairs]

    def __call__(self, chunk: bytes) -> None:
        """Take the next part."""
        data = self._waiting + chunk
        room = max((n for seen in self._seen for n in range(1, len(seen)) if data.endswith(seen[:n])), default=0)
        self._waiting = data[len(data) - room :]
        if data := data[: len(data) - room]:
            self._echo(self.places.real_bytes(data))

    def finish(self) -> None:
        """Pass on what waits, as nothing follows."""
        if self._waiting:
            self._echo(self._waiting)


_PLACED = tuple(folder.encode() + b"/" for folder in (PROJECT, VENV, PLUGIN))
_TEXTS = (b".pth", b"/pyvenv.cfg", b"/direct_url.json")
# What may not be before a folder's path in a text, and what may follow it, with the rest of the path.
_BEGINS, _GOES_ON = rb"(?<![\w.~+@%\x80-\xff-])", rb"(?=[/\"'\n\r\\ ]|\Z)(?=([^\"'\n\r\\]*))"
# Types of marshal's strings, with and without FLAG_REF: a length of one byte, or of four.
_SHORT, _LONG, _GROWN = frozenset(b"zZ\xfa\xda"), frozenset(b"sautA\xf3\xe1\xf5\xf4\xc1"), {0x7A: 0x61, 0x5A: 0x41}


class Checkout(NamedTuple):
    """The top of the user's checkout, that of the worktree of it which is measured, and the checkout's folders that git does not track."""

    top: str
    worktree: str
    untracked: tuple[str, ...] = ()

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Checkout | None:
        """Return the one that cg-bench has named in these variables; None if no worktree is measured."""
        import json  # only here; the launcher does not read it

        if WORKTREE not in environ:
            return None
        top, worktree, untracked = json.loads(environ[WORKTREE])
        return cls(top, worktree, tuple(untracked))

    def moved(self, path: str) -> str | None:
        """Return where in the worktree an absolute path leads that leads into the checkout, by links or not; None for others and for what is untracked."""
        real = os.path.realpath(path) if os.path.isabs(path) else ""
        others = any(is_below(real, folder) for folder in (self.worktree, *self.untracked))
        return None if others or not is_below(real, self.top) else self.worktree + real[len(self.top) :]

    def replacements(self, pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
        """Return these pairs, and the one by which the checkout is seen as the worktree."""
        found = {self.top: Translation(pairs).seen(self.worktree), **dict(pairs)}
        return tuple(sorted(found.items(), key=_innermost_first))


def rewritten(
    path: bytes, places: Translation, replaced: tuple[Pair, ...], checkout: Checkout | None = None
) -> bytes | None:
    """Return what is to be read at this path, with these folders replaced; None if that is what is there."""
    name = os.path.basename(path)
    editable = b"editable" in name  # the finders of setuptools, hatch, PDM, meson-python and scikit-build-core
    compiled = name.endswith(b".pyc") and (editable or path.startswith(_PLACED))
    if not compiled and not path.endswith(_TEXTS) and not (editable and name.endswith(b".py")):
        return None
    try:
        with opened(places.real_bytes(path)) as descriptor, open(descriptor, "rb", closefd=False) as file:
            data = file.read()
    except OSError:
        return None
    found = data
    if checkout and path.endswith(b".pth"):
        lines = (os.fsdecode(line) for line in data.split(b"\n"))
        found = b"\n".join(os.fsencode(checkout.moved(line) or line) for line in lines)
    for real, seen in replaced:

        def is_meant(named: bytes, real: str = real) -> bool:
            return checkout is None or real != checkout.top or checkout.moved(os.fsdecode(named)) is not None

        found = (_in_marshal if compiled else _in_text)(found, os.fsencode(real), os.fsencode(seen), is_meant)
    if found != data and len(found) == len(data) and name.endswith(b".py"):
        found += b"\n"  # else what is compiled of it here would be taken for what the file itself is compiled to
    return None if found == data else found


def _in_text(data: bytes, real: bytes, seen: bytes, is_meant: Callable[[bytes], bool]) -> bytes:
    def replaced(match: re.Match[bytes]) -> bytes:
        return seen if is_meant(real + match[1]) else real

    return re.sub(_BEGINS + re.escape(real) + _GOES_ON, replaced, data)


def _in_marshal(data: bytes, real: bytes, seen: bytes, is_meant: Callable[[bytes], bool]) -> bytes:
    """Replace where a string begins with the path, and mend its length."""
    found, done, at = bytearray(), 0, data.find(real)
    while at >= 0:
        short = at >= 2 and data[at - 2] in _SHORT
        length = data[at - 1] if short else int.from_bytes(data[at - 4 : at], "little")
        end = at + length
        known = short or (at >= 5 and data[at - 5] in _LONG)
        whole = data[at:end] == real or data[at:end].startswith(real + b"/")
        if known and whole and end <= len(data) and is_meant(data[at:end]):
            text = seen + data[at + len(real) : end]
            kind = data[at - 2] if short else data[at - 5]
            start = at - (2 if short else 5)
            if short and len(text) < 256:
                head = bytes((kind, len(text)))
            else:
                kind = _GROWN[kind & 0x7F] | kind & 0x80 if short else kind
                head = bytes((kind,)) + len(text).to_bytes(4, "little")
            found += data[done:start] + head + text
            done = end
        at = data.find(real, max(at + 1, done))
    return bytes(found + data[done:])
