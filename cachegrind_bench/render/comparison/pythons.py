"""The Python functions of a comparison in words: which one did it, where it is, and a table of those that moved.

Knows their numbers; must not know the formats. What it returns is not yet harmless text.
"""

from __future__ import annotations

import posixpath
from fractions import Fraction
from typing import TYPE_CHECKING

from cachegrind_bench.model.python_profile import NATIVE
from cachegrind_bench.model.text import change, counted, grouped, percent, share, signed

if TYPE_CHECKING:
    from cachegrind_bench.compare.details import Details
    from cachegrind_bench.compare.python_blame import PythonBlame, PythonDelta
    from cachegrind_bench.model.python_profile import PythonFunction

_MOST = Fraction(1, 2)


def chief(details: Details | None) -> PythonDelta | None:
    """Return the Python function to name first, if there is one."""
    return None if details is None or details.python is None else details.python.chief


def annotated(function: PythonFunction) -> tuple[str, int] | None:
    """Return file and line (0 if unknown) where they are of the project, as GitHub wants them; None for any other file."""
    path = posixpath.normpath(function.file)
    installed = "site-packages" in path.split("/")
    inside = path.endswith(".py") and not path.startswith(("/", "../")) and not installed and path.isprintable()
    return (path, function.line) if inside else None


def culprit(details: Details | None) -> str:
    """Return the function that explains most, Python's before the program's, with its share where that is small; or nothing."""
    found = _culprit(details)
    if found is None:
        return ""
    name, _place, part = found
    return name if part > _MOST else f"{name} ({percent(part)})"


def verdict(details: Details | None) -> str:
    """Say which function explains most, and whether it explains more than half of the difference; empty without one."""
    found = _culprit(details)
    if found is None:
        return ""
    name, where, part = found
    at = f" ({where})" if where else ""
    return f"most of it in {name}{at}" if part > _MOST else f"largest share: {name}{at}, {percent(part)}"


def _culprit(details: Details | None) -> tuple[str, str, Fraction] | None:
    """Return the name of the function that explains most, its place where it is Python's, and its share."""
    if details is None:
        return None
    row = chief(details)
    if row is not None and details.python is not None:
        total = details.python.total
        return row.function.name, row.function.place, abs(Fraction(row.blame, total)) if total else Fraction(0)
    if details.blamed is None:
        return None
    from cachegrind_bench.render.demangling import demangled

    return demangled(details.blamed.name), "", details.blamed_share


def remarks(details: Details | None) -> list[str]:
    """Say which function did it, and how."""
    row = chief(details)
    if details is None or details.python is None or row is None:
        return []
    total = details.python.base_total
    share_of_all = f"{change(Fraction(row.blame, total))} " if total else ""
    often = f"by calling others {'more' if row.called > 0 else 'less'} often"
    how = f"{signed(row.blame)} instructions"
    if not row.called:
        how += " of its own"
    else:
        how += f", of which {signed(row.called)} {often}" if row.own else f" {often}"
    calls = f"{grouped(row.base.calls)} → {counted(row.candidate.calls, 'call')}"
    return [f"in Python: {row.function.name}, {row.function.place}, {share_of_all}({how}; {calls})"]


def table(found: PythonBlame) -> list[tuple[str, ...]]:
    """Return the heading and the rows of a table; the last row is the sum of the others."""
    total = found.total

    def cells(blame: int, own: int, *texts: str) -> tuple[str, ...]:
        return signed(blame), share(blame, total), signed(own), *texts

    rows: list[tuple[str, ...]] = [("blame", "of Δ", "own code", "calls", "Python function", "line")]
    for row in found.rows:
        before, after = grouped(row.base.calls), grouped(row.candidate.calls)
        calls = after if before == after else f"{before} → {after}"
        rows.append(cells(row.blame, row.own, calls, row.function.name, row.function.place))
    if found.rest_functions:
        others = f"everything else ({grouped(found.rest_functions)} more)"
        rows.append(cells(found.rest_blame, found.rest_own, "", others))
    if found.native or found.native_blame:
        rows.append(cells(found.native_blame, found.native, "", NATIVE))
    own = sum(row.own for row in found.rows) + found.rest_own + found.native
    return [*rows, cells(total, own, "", "total")]
