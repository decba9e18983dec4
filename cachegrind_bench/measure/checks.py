"""What the doctor says about one part of a machine. Values, and the lines that install something."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench import process
from cachegrind_bench.valgrind.tool import INSTALL

if TYPE_CHECKING:
    from collections.abc import Sequence


class Level(StrEnum):
    """How bad it is: nothing to do, a loss of exactness or comfort, or no measuring at all."""

    OK = "ok"
    WARNING = "warning"
    BAD = "bad"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at: what was found, and the commands or hints that mend it."""

    name: str
    level: Level = Level.OK
    found: str
    fixes: tuple[str, ...] = ()


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """All checks under their headings. `works` if a program could be measured."""

    sections: tuple[tuple[str, tuple[Check, ...]], ...]
    works: bool

    @property
    def checks(self) -> tuple[Check, ...]:
        """All checks, in order."""
        return tuple(check for _title, checks in self.sections for check in checks)


def install_lines(packages: Sequence[str], path: str, *, root: bool) -> tuple[str, ...]:
    """Return the lines that install those of our packages whose name contains one of these words.

    One line for the package manager found on `path`, or one for each where none is.
    """
    managers = [name for name in INSTALL if process.which(name, path)] or list(INSTALL)
    found: list[str] = []
    for manager in managers:
        program, action, *names = INSTALL[manager].split()
        wanted = [name for name in names if any(word in name for word in packages)]
        if wanted:
            found.append(" ".join((*([] if root else ["sudo"]), program, action, *wanted)))
    return tuple(found)
