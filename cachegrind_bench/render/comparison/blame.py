"""Where: the function that explains most, and its place in the project."""

from __future__ import annotations

import os
import re
from fractions import Fraction
from typing import TYPE_CHECKING

from cachegrind_bench.compare.verdict import Cause, Difference
from cachegrind_bench.model.symbols import UNKNOWN
from cachegrind_bench.model.text import below, percent
from cachegrind_bench.render.comparison.names import function_name, shown_name

if TYPE_CHECKING:
    from cachegrind_bench.compare.call_split import CallCause, Label
    from cachegrind_bench.compare.explain import Details, FunctionDelta
    from cachegrind_bench.compare.python_blame import PythonDelta

_MOST = Fraction(1, 2)
# Where the sources of glibc and musl have what programs call most, as debug information says; or it says nothing.
_OF_LIBC = re.compile(r"^(?:\?\?\?)?$|(?:^|/)(?:malloc|string|sysdeps)/")


def interpreted(difference: Difference, details: Details | None) -> str | None:
    """Return the name of the interpreter whose functions a profile's rows are, None for a program of its own.

    None as well where the function to blame is one of the script, which the compiler of the interpreter has logged.
    """
    side = difference.candidate or difference.base
    blamed = None if details is None else details.blamed
    if side is not None and side.iterations is not None and blamed is not None and blamed.file != UNKNOWN:
        return None
    if side is None or side.key_fields.get("interpreter", "none") == "none":
        return None
    from cachegrind_bench.compare.pairing import is_library

    programs = [os.path.basename(item.path) for item in side.objects if not is_library(item.path)]
    return programs[0] if programs else "the interpreter"


def chief(details: Details | None) -> PythonDelta | None:
    """Return the Python function to name first, if there is one."""
    return None if details is None or details.python is None else details.python.chief


def blamed_place(item: Difference, details: Details | None, root: str) -> tuple[str, int] | None:
    """Return file and line (0 if unknown) of the function to blame, as GitHub wants them; None where it is not of the project.

    The project is what is below `root`.
    """
    row = chief(details)
    worst = None if item.growth is None else item.growth.candidate.worst
    hunk = None if details is None or details.hunks is None else details.hunks.chief
    if worst is not None:
        path, line = below(worst.file, root), worst.line
        inside = worst.file.startswith("/") and "site-packages" not in path.split("/")
    elif {*item.causes} == {Cause.ALLOCATIONS} and item.allocations is not None:
        found = item.allocations
        label = found.user or found.made.callers[0].label
        path, line = below(label.file, root), label.line
        inside = label.file.startswith("/") or os.path.isfile(os.path.join(root, path))
    elif hunk is not None:  # what a reviewer looks at
        path, line, inside = hunk.file, hunk.first, True
    elif row is not None:
        path, line = below(row.function.file, root), row.function.line
        inside = path.endswith(".py") and "site-packages" not in path.split("/")
    elif details is None or details.blamed is None or interpreted(item, details) is not None:
        return None
    else:
        own = details.user if details.cause is None else _own(details.cause)
        file, line = (details.blamed.file, 0) if own is None else (own.file, own.line)
        path = below(file, root)
        # Rust's compiler writes relative paths, and so do those who build a distribution's libraries.
        inside = file.startswith("/") or os.path.isfile(os.path.join(root, path))
    return (path, line) if inside and path.isprintable() and not path.startswith(("/", "../")) else None


def lacks_debug_information(item: Difference, details: Details) -> bool:
    """Return whether the file of the native function to blame is unknown."""
    return details.blamed is not None and details.blamed.file == UNKNOWN and interpreted(item, details) is None


def _own(found: CallCause) -> Label:
    """Return the function whose code did it, or the caller of one of the system's."""
    return found.caller.label if found.caller is not None and found.culprit.code.is_system else found.culprit


def culprit(details: Details | None) -> str:
    """Return the function that explains most, Python's before the program's, with its share where that is small; or nothing."""
    found = found_culprit(details)
    if found is None:
        return ""
    name, _place, part = found
    return name if part > _MOST else f"{name} ({percent(part)})"


def found_culprit(details: Details | None) -> tuple[str, str, Fraction] | None:
    """Return the name of the function that explains most, its place where it is Python's, and its share."""
    if details is None:
        return None
    row = chief(details)
    if row is not None and details.python is not None:
        total = details.python.total
        return row.function.name, row.function.place, abs(Fraction(row.blame, total)) if total else Fraction(0)
    found = details.cause
    if found is not None and details.calls is not None:
        from cachegrind_bench.compare.call_split import Kind

        name = function_name(found.culprit)
        if found.caller is not None and found.kind is Kind.OWN:
            name += f" (from {function_name(found.caller.label)})"
        return name, "", Fraction(found.ir, details.calls.total)
    if details.blamed is None:
        return None
    return shown_name(details.blamed.name) + _user(details.blamed, details.user), "", details.blamed_share


def _user(blamed: FunctionDelta, user: Label | None) -> str:
    """Say who called a function of the system, or that it is of libc, where a row of its own says little."""
    from cachegrind_bench.model.call_graph import Code

    if user is not None:
        return f" (from {function_name(user)})"
    of_libc = Code("", blamed.file, blamed.name).is_system and _OF_LIBC.search(blamed.file)
    return " (libc)" if of_libc else ""
