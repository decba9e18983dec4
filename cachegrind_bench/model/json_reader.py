"""Typed access to a parsed JSON document, with the path of the offending value in every error.

Knows JSON types; must not know what a result file is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import StrEnum

    Choice = TypeVar("Choice", bound=StrEnum)

# Far above any count a simulated program can reach (a century of Cachegrind), far below what makes arithmetic slow.
_LARGEST = 1 << 63
_LONGEST_TEXT = 300


class SchemaError(ValueError):
    """A value that is missing or of the wrong kind; the text begins with its path."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A list of numbers that was left in the file: the bytes from `offset` on."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Node:
    """One JSON value and the path that leads to it."""

    value: object
    path: str

    def fail(self, message: str) -> NoReturn:
        """Raise SchemaError about this value."""
        raise SchemaError(f"{_cut(self.path) or 'the document'}: {_cut(message)}")

    def _expected(self, kind: str) -> NoReturn:
        self.fail(f"expected {kind}, found {_describe(self.value)}")

    def _object(self) -> dict[str, object]:
        if not isinstance(self.value, dict):
            self._expected("an object")
        return cast("dict[str, object]", self.value)  # pyright: ignore[reportUnknownMemberType]

    def has(self, key: str) -> bool:
        """Tell whether this object has the key."""
        return key in self._object()

    def get(self, key: str) -> Node:
        """Return the value at this key."""
        members = self._object()
        if key not in members:
            self.fail(f"{key!r} is missing")
        return Node(members[key], f"{self.path}.{key}" if self.path else key)

    def members(self) -> Iterator[tuple[str, Node]]:
        """Yield the keys and values of this object."""
        for key in self._object():
            node = self.get(key)
            yield Node(key, node.path.encode("utf-8", "backslashreplace").decode()).text(), node

    def items(self) -> Iterator[Node]:
        """Yield the values of this list."""
        if not isinstance(self.value, list):
            self._expected("a list")
        values = cast("list[object]", self.value)  # pyright: ignore[reportUnknownMemberType]
        for index, item in enumerate(values):
            yield Node(item, f"{self.path}[{index}]")

    def is_null(self) -> bool:
        """Tell whether this is null."""
        return self.value is None

    def text(self) -> str:
        """Return this string."""
        if not isinstance(self.value, str):
            self._expected("a string")
        if not self.value.isascii():
            try:
                self.value.encode()
            except UnicodeEncodeError:  # a lone surrogate, which nothing can print
                self.fail("the string is not valid Unicode")
        return self.value

    def optional_text(self) -> str | None:
        """Return this string or null."""
        return None if self.value is None else self.text()

    def boolean(self) -> bool:
        """Return this boolean."""
        if not isinstance(self.value, bool):
            self._expected("true or false")
        return self.value

    def integer(self) -> int:
        """Return this whole number."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            self._expected("a whole number")
        if abs(self.value) >= _LARGEST:
            self.fail("the number is absurdly large")
        return self.value

    def optional_integer(self) -> int | None:
        """Return this whole number or null."""
        return None if self.value is None else self.integer()

    def count(self) -> int:
        """Return this whole number, which must not be negative."""
        number = self.integer()
        if number < 0:
            self.fail(f"{number} is negative")
        return number

    def counts(self) -> list[int]:
        """Return this list of whole numbers that are not negative (checked in bulk: profiles have thousands)."""
        if not isinstance(self.value, list):
            self._expected("a list")
        numbers = cast("list[int]", self.value)  # pyright: ignore[reportUnknownMemberType]
        if numbers and not (set(map(type, numbers)) == {int} and min(numbers) >= 0 and max(numbers) < _LARGEST):
            self.fail("expected whole numbers that are not negative")
        return numbers

    def choice(self, kind: type[Choice]) -> Choice:
        """Return the member of this enumeration."""
        text = self.text()
        for member in kind:
            if member.value == text:
                return member
        self.fail(f"{text!r} is none of {', '.join(member.value for member in kind)}")

    def texts(self) -> dict[str, str]:
        """Return this object whose values are strings."""
        return {key: node.text() for key, node in self.members()}

    def scalars(self) -> dict[str, str | int]:
        """Return this object whose values are strings or whole numbers."""
        return {key: node.text() if isinstance(node.value, str) else node.integer() for key, node in self.members()}


def _cut(text: str) -> str:
    """Return text of a length that one can read: keys and values of a hostile file may have megabytes."""
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."


def _describe(value: object) -> str:
    if value is None:
        return "null"
    names: dict[type, str] = {dict: "an object", str: "a string", bool: "a boolean", int: "a number"}
    names |= {list: "a list", Hole: "a list"}
    return names.get(type(value), type(value).__name__)
