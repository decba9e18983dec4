"""Numbers as people read them; the only place where integers become floats."""

from __future__ import annotations


def grouped(number: int) -> str:
    """Return 1234567 as 1,234,567."""
    return f"{number:,}"


def share(part: int, whole: int) -> str:
    """Return a part of a whole in percent, as 12.3 %."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def spread(low: int, high: int) -> str:
    """Return how far apart two counts of one thing are, (high - low) / low, in percent; exactly 0 only if equal."""
    if low == high:
        return "0"
    if not low:
        return "-"
    percent = 100 * (high - low) / low
    return f"{percent:.2g} %" if percent < 99.5 else f"{percent:,.0f} %"


def duration(milliseconds: int) -> str:
    """Return 1234 as 1.2 s, 75000 as 1 min 15 s."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes} min {seconds:02} s"


def small_share(part: int, whole: int) -> str:
    """Return a small part of a whole in percent with two significant digits, as 0.00046 %."""
    return f"{100 * part / whole:.2g} %" if whole else "-"


def is_number(cell: str) -> bool:
    """Tell whether a cell of a table is a number or a percentage, which stand right-aligned."""
    return cell[:1].isdigit() and cell[-1:] in "0123456789%"
