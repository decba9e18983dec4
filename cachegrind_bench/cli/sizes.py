"""The option that limits the size of result files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    _Bytes = click.ParamType[int]
else:
    _Bytes = click.ParamType  # generic since click 8.4 only

Function = TypeVar("Function", bound="Callable[..., Any]")

_SIZE = re.compile(r"([0-9]{1,15})\s*(?:([kmgt])(i?)b|b)?", re.ASCII | re.IGNORECASE)


class Size(_Bytes):
    """A number of bytes, as in 500MB, 2GB, 1GiB or 1000000."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return bytes."""
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(str(value).strip())
        size = 0
        if match:
            power = " kmgt".index((match[2] or " ").lower())
            size = int(match[1]) * (1024 if match[3] else 1000) ** power
        if size <= 0:
            self.fail(f"{value!r} is not a size: write bytes, or as in 500MB, 2GB or 1GiB", param, ctx)
        return size


def size_limit_option(function: Function) -> Function:
    """Take the size up to which a result file is read, as `max_size`."""
    return click.option(
        "--max-size", type=Size(), default="1GB", show_default=True, help="Refuse result files larger than this."
    )(function)
