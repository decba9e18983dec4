"""Which benchmarks of a suite to run: an expression on ids (as pytest's -k), tags, and one of several equal shards.

Knows ids, tags and wall times; must not know what a benchmark does, or where times are kept.
"""

from __future__ import annotations

import hashlib
import json
import re
from statistics import median_low
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeVar

import msgspec

from cachegrind_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    Fits = Callable[[str], bool]


class Identified(Protocol):
    """Whatever has an id."""

    @property
    def id(self) -> str:
        """The id of a benchmark."""
        ...


Item = TypeVar("Item", bound=Identified)

# Ids hold brackets, commas, dashes, dots and '=', so all but blanks and parentheses makes a word.
_TOKEN = re.compile(r"""([()])|'([^']+)'|"([^"]+)"|((?!["'])[^\s()]+)""")
_BLANKS = re.compile(r"\s*")
_OPERATORS = ("and", "or", "not")
_DEEPEST = 50  # expressions are typed; what nests deeper would only exhaust Python's stack
_HINT = """as in: -k "json and not (slow or n=1000)"; put words with blanks or parentheses in quotes"""
_SHARD = re.compile(r"([0-9]{1,6})/([0-9]{1,6})", re.ASCII)
_SHARD_HINT = "as in --shard 2/5: the second of five parts, counted from 1"


def matcher(expression: str) -> Fits:
    """Return whether an id fits: words it has (in any case), combined by and, or, not and parentheses. UsageError."""
    parser = _Parser(expression, _tokens(expression))
    fits = parser.whole()
    return lambda identity: fits(identity.casefold())


def tagged(tags: Collection[str]) -> Callable[[Collection[str]], bool]:
    """Return whether a benchmark with such tags is wanted: one of them is among `tags`, or none is asked for."""
    wanted = frozenset(tags)
    return lambda found: not wanted or not wanted.isdisjoint(found)


def parse_shard(text: str) -> tuple[int, int]:
    """Return index and count of a shard written as in 2/5, the index counted from 1. UsageError."""
    match = _SHARD.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--shard {text!r}: that is not a part of a whole", hint=_SHARD_HINT)
    index, count = int(match[1]), int(match[2])
    if not 1 <= index <= count:
        raise UsageError(f"--shard {text!r}: there is no part {index} of {count}", hint=_SHARD_HINT)
    return index, count


def shards(items: Sequence[Item], count: int, wall_ms: Mapping[str, int]) -> list[list[Item]]:
    """Return `count` parts; together they are all items, each in one part only, in their order.

    The longest goes first, each to the part that has least to do; an id without a time takes the median of the others.
    Which part an id is in depends on the ids and their times only, so all machines must know the same times.
    """
    ids = sorted({item.id for item in items})
    known = [wall_ms[identity] for identity in ids if identity in wall_ms]
    usual = median_low(known) if known else 0
    times = {identity: wall_ms.get(identity, usual) for identity in ids}
    loads = [(0, 0, part) for part in range(count)]  # what it has to do: milliseconds, then benchmarks
    part_of: dict[str, int] = {}
    for identity in sorted(ids, key=lambda identity: -times[identity]):
        least, number, part = min(loads)
        loads[part] = (least + times[identity], number + 1, part)
        part_of[identity] = part
    parts: list[list[Item]] = [[] for _ in range(count)]
    for item in items:
        parts[part_of[item.id]].append(item)
    return parts


def plan_of(parts: Sequence[Sequence[Identified]]) -> str:
    """Return 8 hex digits that tell one way to cut a suite from any other."""
    ids = json.dumps([[item.id for item in part] for part in parts])
    return hashlib.sha256(ids.encode()).hexdigest()[:8]


class _Token(msgspec.Struct, frozen=True):
    """`kind` is a parenthesis, an operator, `word` or `end`; `place` counts characters from 1."""

    kind: str
    text: str
    place: int


def _tokens(expression: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while (at := _end_of_blanks(expression, at)) < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            raise UsageError(
                f"-k {expression!r}: the quote at character {at + 1} is not closed, or there is nothing in it",
                hint=_HINT,
            )
        sign, single, double, bare = match.groups()
        kind = sign or (bare if bare in _OPERATORS else "word")  # in quotes, 'and' is a word
        found.append(_Token(kind, sign or single or double or bare, at + 1))
        at = match.end()
    return [*found, _Token("end", "", len(expression) + 1)]


def _end_of_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return at if match is None else match.end()


class _Parser:
    """Recursive descent; as in Python, `not` binds most and `or` least."""

    def __init__(self, expression: str, tokens: list[_Token]) -> None:
        self._expression = expression
        self._tokens = tokens
        self._at = 0

    def whole(self) -> Fits:
        """Read the expression to its end."""
        fits = self._either(0)
        if not self._accept("end"):
            self._fail("'and', 'or' or the end")
        return fits

    def _either(self, depth: int) -> Fits:
        parts = [self._both(depth)]
        while self._accept("or"):
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else lambda text: any(part(text) for part in parts)

    def _both(self, depth: int) -> Fits:
        parts = [self._one(depth)]
        while self._accept("and"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else lambda text: all(part(text) for part in parts)

    def _one(self, depth: int) -> Fits:
        token = self._tokens[self._at]
        if depth > _DEEPEST:
            raise UsageError(
                f"-k: at character {token.place} it nests deeper than {_DEEPEST} levels", hint="write it simpler"
            )
        if self._accept("not"):
            refused = self._one(depth + 1)
            return lambda text: not refused(text)
        if self._accept("("):
            inner = self._either(depth + 1)
            if not self._accept(")"):
                self._fail("'and', 'or' or ')'")
            return inner
        if not self._accept("word"):
            self._fail("a word, 'not' or '('")
        word = token.text.casefold()
        return lambda text: word in text

    def _accept(self, kind: str) -> bool:
        """Step over the next token if it is of this kind."""
        if self._tokens[self._at].kind != kind:
            return False
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return True

    def _fail(self, expected: str) -> NoReturn:
        token = self._tokens[self._at]
        found = "it ends there" if token.kind == "end" else f"found {token.text!r}"
        raise UsageError(
            f"-k {self._expression!r}: expected {expected} at character {token.place}, but {found}", hint=_HINT
        )
