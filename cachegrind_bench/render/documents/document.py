"""What all JSON documents have in common."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from cachegrind_bench.model.symbols import Symbol
from cachegrind_bench.valgrind.demangling import demangled

if TYPE_CHECKING:
    from fractions import Fraction


Given = TypeVar("Given")
Made = TypeVar("Made")


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A whole document. Its field `schema` names its layout.

    Structs of lower layers are in it with all their fields, so a new field of one is a new key.
    """

    def text(self) -> str:
        """Return it as JSON, indented, with sorted keys: the same text for the same values."""
        return (
            json.dumps(msgspec.to_builtins(self, enc_hook=_plain), indent=2, sort_keys=True, ensure_ascii=True) + "\n"
        )


def fields(value: object, *names: str) -> dict[str, Any]:
    """Return these attributes of a value by their names."""
    return {name: getattr(value, name) for name in names}


def optional(value: Given | None, make: Callable[[Given], Made]) -> Made | None:
    """Return what `make` makes of a value; None of None."""
    return None if value is None else make(value)


def _plain(value: Symbol | Fraction) -> str | int:
    """Return a name demangled, and a share as parts per million."""
    return str(demangled(value)) if isinstance(value, Symbol) else round(value * 1_000_000)
