"""Saved baselines: result files under a name, in the folder `.cg-bench/baselines` of the checkout.

Knows folders and names; must not know what a result holds.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

import msgspec

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import some
from cachegrind_bench.store.durable import check_writable, is_there, make_folder, store_errors, write_atomic
from cachegrind_bench.vcs.git import folders_up, top_folder

STORE = ".cg-bench"

_LONGEST = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SUFFIX = ".json"
_SHOWN = 20


class Baselines(msgspec.Struct, frozen=True, kw_only=True):
    """The baselines of one checkout; `store` need not exist before the first is saved."""

    store: Path

    @classmethod
    def find(cls, cwd: Path) -> Baselines:
        """Return those of the nearest store from `cwd` up to the top of the work tree, else of that top, else of `cwd`.

        Outside a work tree no folder above is asked: a store in a home directory is not meant for all below it.
        """
        within = [cwd] if top_folder(cwd) is None else folders_up(cwd)
        return cls(store=next((place for place in within if _is_meant(place / STORE)), within[-1]) / STORE)

    def path(self, name: str) -> Path:
        """Return where this baseline is or would be; UsageError if nothing can have that name."""
        check_name(name, "a baseline")
        return self.store / "baselines" / f"{name}{_SUFFIX}"

    def exists(self, name: str) -> bool:
        """Return whether there is a baseline of this name. StoreError if nobody may look."""
        folder = self.store / "baselines"
        with store_errors(folder, "read"), suppress(FileNotFoundError, NotADirectoryError):
            os.stat(f"{folder}/.")  # from Python 3.14 on, Path's own questions have no error where it is closed
        return _is_name(name) and os.path.isfile(self.path(name))

    def names(self) -> list[str]:
        """Return the names of all baselines, sorted. UsageError if the folder cannot be read."""
        return [*filter(self.exists, names_in(self.store / "baselines"))]

    def known(self) -> str:
        """Return a sentence that names the baselines, as advice where another one was asked for."""
        names = self.names()
        return f"saved baselines: {some(names, _SHOWN) or 'none'}"

    def prepare(self, name: str) -> None:
        """Make the folder and find out whether `save` will work, before any work; UsageError if not.

        A folder that appeared between two runs would change the counts of programs that list their directory.
        """
        path = self.path(name)
        make_store(self.store, path.parent)
        check_writable(path)

    def save(self, name: str, data: bytes) -> None:
        """Save the bytes of a result file under this name, in place of an older one; whole or not at all."""
        self.prepare(name)
        write_atomic(self.path(name), data)

    def remove(self, name: str) -> None:
        """Remove this baseline. UsageError if there is none."""
        try:
            self.path(name).unlink()
        except FileNotFoundError:
            raise UsageError(f"there is no baseline {name!r}", hint=self.known()) from None
        except OSError as error:
            raise UsageError(f"cannot remove the baseline {name!r}: {error.strerror}") from error


def names_in(folder: Path) -> list[str]:
    """Return the names of the JSON files in a folder of the store, sorted. UsageError if the folder cannot be read."""
    with store_errors(folder, "read"):
        files = os.listdir(folder) if is_there(folder) else []
    return sorted(name.removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX))


def check_name(name: str, what: str) -> None:
    """UsageError if this cannot be the name of a file of the store."""
    if not _is_name(name):
        raise UsageError(
            f"{name[: _LONGEST + 1]!r} cannot name {what}",
            hint=f"a name has letters, digits and . _ - and begins with a letter or digit, {_LONGEST} at most",
        )


def make_store(store: Path, folder: Path | None = None) -> None:
    """Make the store, make git ignore it, and this folder in it. UsageError if that is not possible."""
    new = not os.path.lexists(store)
    make_folder(store)
    if new:  # only then, so that whoever wants baselines under version control can remove it
        try:
            write_atomic(store / ".gitignore", b"*\n")
        except UsageError:
            with suppress(OSError):  # else it would not be new the next time
                store.rmdir()
            raise
    if folder is not None:
        make_folder(folder)


def _is_meant(store: Path) -> bool:
    """Return whether this is a store, or a link to one that is not there now: no other one may be used instead."""
    return os.path.isdir(store) or (store.is_symlink() and not os.path.exists(store))


def _is_name(text: str) -> bool:
    return len(text) <= _LONGEST and _NAME.fullmatch(text) is not None
