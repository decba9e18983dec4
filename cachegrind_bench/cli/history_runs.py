"""Dates on the command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _Text = click.ParamType[str]
else:
    _Text = click.ParamType  # generic since click 8.4 only

_AGO = re.compile(r"([0-9]{1,5})\s*([dw])", re.ASCII)


class Date(_Text):
    """A day, a time, or how long ago, as in 2026-01-31, 2026-01-31T12:00:00Z or 30d; the value is UTC, with a Z."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the time as records have it."""
        text = str(value).strip()
        ago = _AGO.fullmatch(text)
        try:
            if ago:
                days = int(ago[1]) * (7 if ago[2] == "w" else 1)
                found = datetime.now(UTC) - timedelta(days=days)
            else:
                found = datetime.fromisoformat(text)
                found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is not a date: write 2026-01-31, 2026-01-31T12:00:00Z, or 30d for 30 days ago", param, ctx
            )
        return found.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


since_option = click.option(
    "--since", type=Date(), metavar="DATE", help="Only runs measured since then: 2026-01-31, or 30d for 30 days ago."
)
