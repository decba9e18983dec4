"""Event counts as Cachegrind spells them, and the profile that adds up to them.

Knows the nine events of the cache simulation; must not know how they are written in a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_Key = TypeVar("_Key", tuple[str, str], tuple[str, str, int])


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The nine event counts of one run, or the difference of two runs, in events; names are Cachegrind's.

    I = instruction, D = data; r = read, w = write; 1 = first level, L = last level; m = miss.
    """

    Ir: int
    I1mr: int
    ILmr: int
    Dr: int
    D1mr: int
    DLmr: int
    Dw: int
    D1mw: int
    DLmw: int

    def __add__(self, other: Counts) -> Counts:
        return Counts.of([a + b for a, b in zip(self.as_tuple(), other.as_tuple(), strict=True)])

    def __sub__(self, other: Counts) -> Counts:
        return Counts.of([a - b for a, b in zip(self.as_tuple(), other.as_tuple(), strict=True)])

    def as_tuple(self) -> tuple[int, ...]:
        """Return the counts in the order of `EVENTS`."""
        return self.Ir, self.I1mr, self.ILmr, self.Dr, self.D1mr, self.DLmr, self.Dw, self.D1mw, self.DLmw

    def as_dict(self) -> dict[str, int]:
        """Return the counts by event name, in the order of `EVENTS`."""
        return dict(zip(EVENTS, self.as_tuple(), strict=True))

    @classmethod
    def of(cls, values: Sequence[int]) -> Counts:
        """Build from nine values in the order of `EVENTS`."""
        return cls(**dict(zip(EVENTS, values, strict=True)))

    @classmethod
    def from_mapping(cls, values: Mapping[str, int]) -> Counts:
        """Build from a mapping that holds at least the nine events; others are left out. KeyError if one is missing."""
        return cls(**{name: values[name] for name in EVENTS})

    # The three derived hits are those of cg_annotate's authors' and Itamar Turner-Trauring's articles: an access that
    # misses the first level and not the last is an LL hit; one that misses the last level goes to RAM.
    @property
    def ram_hits(self) -> int:
        """Accesses that missed every cache level."""
        return self.ILmr + self.DLmr + self.DLmw

    @property
    def ll_hits(self) -> int:
        """Accesses that missed the first level and hit the last."""
        return self.I1mr + self.D1mr + self.D1mw - self.ram_hits

    @property
    def l1_hits(self) -> int:
        """Accesses (instruction fetches, reads and writes) that hit the first level."""
        return self.Ir + self.Dr + self.Dw - self.ll_hits - self.ram_hits


EVENTS: tuple[str, ...] = Counts.__struct_fields__
ZERO = Counts.of([0] * len(EVENTS))


class FunctionCost(msgspec.Struct, frozen=True):
    """Self cost of one function: `counts` are in the order of the profile's `events`.

    `file` and `name` are raw, as the out file has them ("???" where Valgrind knows no name); bytes that are not UTF-8
    stand as `\\xNN`.
    """

    file: str
    name: str
    counts: tuple[int, ...]


class LineCost(msgspec.Struct, frozen=True):
    """Self cost of one source line of a function; `file`, `name` and `counts` as in `FunctionCost`, `line` 0 if unknown."""

    file: str
    name: str
    line: int
    counts: tuple[int, ...]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What each function cost itself, sorted by file and name, one row for each pair.

    `lines` is empty unless source lines were asked for; then they are sorted alike, and add up to the functions.
    """

    events: tuple[str, ...]
    functions: tuple[FunctionCost, ...]
    lines: tuple[LineCost, ...] = ()

    def totals(self) -> tuple[int, ...]:
        """Sum the rows, in the order of `events`."""
        return tuple(sum(column) for column in zip(*(row.counts for row in self.functions), strict=True)) or (0,) * len(
            self.events
        )

    def counts(self) -> Counts:
        """Return the totals as the nine counts. KeyError where an event is missing."""
        return Counts.from_mapping(dict(zip(self.events, self.totals(), strict=True)))


def merge_profiles(profiles: Sequence[Profile]) -> Profile:
    """Add several profiles of the same events into one; either all of them have source lines, or none."""
    if len(profiles) == 1:
        return profiles[0]
    events = profiles[0].events
    for profile in profiles:
        if profile.events != events:
            message = f"profiles of different events: {profile.events} and {events}"
            raise ValueError(message)
    if len({bool(profile.lines) for profile in profiles if profile.functions}) > 1:
        message = "profiles with source lines and without: the lines would no longer add up"
        raise ValueError(message)
    functions = _summed(((row.file, row.name), row.counts) for profile in profiles for row in profile.functions)
    lines = _summed(((row.file, row.name, row.line), row.counts) for profile in profiles for row in profile.lines)
    return Profile(
        events=events,
        functions=tuple(FunctionCost(*key, counts) for key, counts in functions),
        lines=tuple(LineCost(*key, counts) for key, counts in lines),
    )


def _summed(rows: Iterable[tuple[_Key, tuple[int, ...]]]) -> list[tuple[_Key, tuple[int, ...]]]:
    """Add up rows of the same key, and sort them."""
    sums: dict[_Key, tuple[int, ...]] = {}
    for key, counts in rows:
        seen = sums.get(key)
        sums[key] = counts if seen is None else tuple(map(int.__add__, seen, counts))
    return sorted(sums.items())
