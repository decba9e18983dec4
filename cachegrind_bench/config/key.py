"""What there is to know about one key of a configuration."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.config import checks

if TYPE_CHECKING:
    from collections.abc import Callable


class Kind(StrEnum):
    """What a value may be written as; the text is how the documentation calls it."""

    TEXT = "text"
    TEXTS = "text, or list of texts"
    COUNT = "whole number"
    SWITCH = "true or false"
    DURATION = "seconds, or text with a unit"
    COMMAND = "list of texts, or text"
    ENV = "list of texts, or table"
    PARAMETERS = "table of lists"
    EXCLUDE = "list of tables"
    BENCHMARKS = "list of tables, made by double brackets"


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key. `example` is a value as it is written in TOML; `also` are words that people try first."""

    name: str
    kind: Kind
    meaning: str
    example: str
    default: str = ""
    check: Callable[[str, str], object] = checks.text
    smallest: int = 1
    largest: int = 1
    choices: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    required: bool = False

    @property
    def option(self) -> str:
        """The name under which the command line knows it."""
        return self.name.lower().replace("-", "_")
