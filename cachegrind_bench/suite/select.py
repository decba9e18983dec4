"""Which benchmarks of a suite to run: an expression on ids (as pytest's -k), tags, and one of several equal shards.

Knows ids, tags and wall times; must not know where times are kept.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median_low

from cachegrind_bench.config.benchmarks import BenchmarkSpec
from cachegrind_bench.errors import UsageError

Fits = Callable[[str], bool]

# Ids hold brackets, commas, dashes, dots and '=', so all but blanks and parentheses makes a word.
_TOKEN = re.compile(r"""[()]|\s+|'([^']+)'|"([^"]+)"|((?!["'])[^\s()]+)""")
_OPERATORS = ("and", "or", "not", "(", ")")
_HINT = """as in: -k "json and not (slow or n=1000)"; put words with blanks or parentheses in quotes"""
_SHARD = re.compile(r"([0-9]{1,6})/([0-9]{1,6})", re.ASCII)
_SHARD_HINT = "as in --shard 2/5: the second of five parts, counted from 1"


def matcher(expression: str) -> Fits:
    """Return whether an id fits: words it has (in any case), combined by and, or, not and parentheses. UsageError.

    Python parses it, with every word replaced by a name of the same length, so that places stay as they are.
    """
    import ast

    words: dict[int, str] = {}
    code = ""
    while len(code) < len(expression):
        match = _TOKEN.match(expression, len(code))
        if match is None:
            place = len(code) + 1
            problem = f"the quote at character {place} is not closed, or there is nothing in it"
            raise UsageError(f"-k {expression!r}: {problem}", hint=_HINT)
        token, word = match[0], match[1] or match[2] or match[3]
        if word is None or token in _OPERATORS:  # in quotes, 'and' is a word
            code += token if token in _OPERATORS else " " * len(token)
        else:
            words[len(code)] = word.casefold()
            code += "_" * len(token)
    blanks = len(code) - len(code.lstrip())

    def fits(node: ast.expr) -> Fits:
        match node:
            case ast.Name(col_offset=place):
                word = words[blanks + place]
                return lambda text: word in text
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                refused = fits(operand)
                return lambda text: not refused(text)
            case ast.BoolOp(op=operator, values=values):
                parts = [fits(value) for value in values]
                combined = all if isinstance(operator, ast.And) else any
                return lambda text: combined(part(text) for part in parts)
            case _:  # as of two words side by side, the second in parentheses
                raise SyntaxError

    try:
        whole = fits(ast.parse(code.lstrip(), mode="eval").body)
    except SyntaxError as error:
        raise UsageError(f"-k {expression!r}: words go with and, or, not and parentheses", hint=_HINT) from error
    except (RecursionError, MemoryError) as error:
        raise UsageError("-k: it nests too deeply", hint="simplify it") from error
    return lambda identity: whole(identity.casefold())


def tagged(tags: Collection[str]) -> Callable[[Collection[str]], bool]:
    """Return whether a benchmark with such tags is wanted: one of them is among `tags`, or none is asked for."""
    wanted = frozenset(tags)
    return lambda found: not wanted or not wanted.isdisjoint(found)


def parse_shard(text: str) -> tuple[int, int]:
    """Return index and count of a shard written as in 2/5, the index counted from 1. UsageError."""
    match = _SHARD.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--shard {text!r}: that is not a part such as 2/5", hint=_SHARD_HINT)
    index, count = int(match[1]), int(match[2])
    if not 1 <= index <= count:
        raise UsageError(f"--shard {text!r}: there is no part {index} of {count}", hint=_SHARD_HINT)
    return index, count


def shards(items: Sequence[BenchmarkSpec], count: int, wall_ms: Mapping[str, int]) -> list[list[BenchmarkSpec]]:
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
    parts: list[list[BenchmarkSpec]] = [[] for _ in range(count)]
    for item in items:
        parts[part_of[item.id]].append(item)
    return parts


def plan_of(parts: Sequence[Sequence[BenchmarkSpec]]) -> str:
    """Return 8 hex digits that differ for each way to cut a suite."""
    ids = json.dumps([[item.id for item in part] for part in parts])
    return hashlib.sha256(ids.encode()).hexdigest()[:8]
