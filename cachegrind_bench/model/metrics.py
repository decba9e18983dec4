"""Event counts as Cachegrind spells them, the score made of them, the profile that adds up to them, and sums of profiles.

Knows the nine events of the cache simulation; must not know how they are written in a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, TypeVar

import msgspec

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.described import Events, Instructions, doc

_MODEL = re.compile(r"(?:(\d{1,6})?l1)\+(\d{1,6})ll\+(\d{1,6})ram")
_Key = TypeVar("_Key", tuple[str, str], tuple[str, str, int])


class Counts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The nine event counts of one run, or the difference of two runs, in events; names are Cachegrind's.

    I = instruction, D = data; r = read, w = write; 1 = first level, L = last level; m = miss.
    """

    Ir: Annotated[Instructions, doc("instructions executed")]
    I1mr: Annotated[Events, doc("instruction reads that missed the first-level cache")]
    ILmr: Annotated[Events, doc("instruction reads that missed the last-level cache")]
    Dr: Annotated[Events, doc("data reads")]
    D1mr: Annotated[Events, doc("data reads that missed the first-level cache")]
    DLmr: Annotated[Events, doc("data reads that missed the last-level cache")]
    Dw: Annotated[Events, doc("data writes")]
    D1mw: Annotated[Events, doc("data writes that missed the first-level cache")]
    DLmw: Annotated[Events, doc("data writes that missed the last-level cache")]

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

    def counted(self) -> dict[str, int]:
        """Return by event name what was counted: Ir alone where no caches were simulated."""
        return self.as_dict() if self.with_caches else {"Ir": self.Ir}

    @classmethod
    def of(cls, values: Sequence[int]) -> Counts:
        """Build from nine values in the order of `EVENTS`."""
        return cls(**dict(zip(EVENTS, values, strict=True)))

    @classmethod
    def from_mapping(cls, values: Mapping[str, int]) -> Counts:
        """Build from a mapping that holds at least the nine events; others are left out. KeyError if one is missing."""
        return cls(**{name: values[name] for name in EVENTS})

    def without_caches(self) -> Counts:
        """Return Ir alone, as where no caches were simulated."""
        return Counts.of((self.Ir, *[0] * (len(EVENTS) - 1)))

    @property
    def with_caches(self) -> bool:
        """Whether caches were simulated. If not, all counts but Ir are 0."""
        return any(self.as_tuple()[1:])

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


class Branches(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulated branch predictor counted in one run, where the time is estimated; names are Cachegrind's."""

    Bc: Annotated[Events, doc("conditional branches executed")]
    Bcm: Annotated[Events, doc("conditional branches mispredicted")]
    Bi: Annotated[Events, doc("indirect branches executed")]
    Bim: Annotated[Events, doc("indirect branches mispredicted")]


BRANCHES: tuple[str, ...] = Branches.__struct_fields__
EVERY_EVENT = EVENTS + BRANCHES


class CostModel(msgspec.Struct, frozen=True):
    """Weights for L1, LL and RAM hits, or (`l1` None) plain instruction counts.

    `l1+5ll+30ram` is the formula of Itamar Turner-Trauring, "CI for performance: Reliable benchmarking in noisy
    environments" (https://pythonspeed.com/articles/consistent-benchmarking-in-ci/).
    """

    l1: int | None
    ll: int = 0
    ram: int = 0

    @property
    def name(self) -> str:
        """The canonical name; two scores compare only under the same one."""
        if self.l1 is None:
            return "ir"
        return f"{'' if self.l1 == 1 else self.l1}l1+{self.ll}ll+{self.ram}ram"

    def score(self, counts: Counts) -> int:
        """Return the score of these counts, an integer without unit."""
        if self.l1 is None:
            return counts.Ir
        return self.l1 * counts.l1_hits + self.ll * counts.ll_hits + self.ram * counts.ram_hits

    @classmethod
    def parse(cls, text: str) -> CostModel:
        """Read a name such as `l1+5ll+30ram`, `2l1+7ll+40ram` or `ir`; UsageError on anything else."""
        plain = text.strip().lower()
        if plain == "ir":
            return IR_MODEL
        match = _MODEL.fullmatch(plain)
        if match is None:
            raise UsageError(
                f"{text!r} is not a cost model",
                hint="write weights for the three kinds of hits, as in l1+5ll+30ram, or 'ir' for plain instruction counts",
            )
        l1, ll, ram = match.groups()
        return cls(1 if l1 is None else int(l1), int(ll), int(ram))


def estimate(counts: Counts, branches: Branches) -> int:
    """Return what the time of a run is estimated by, a number without unit; less is faster. The weights are those of docs/truth.md."""
    return sum(estimate_terms(counts, branches).values())


def estimate_terms(counts: Counts, branches: Branches) -> dict[str, int]:
    """Return the parts that the estimate is the sum of."""
    return {name: WEIGHTS[name] * number for name, number in weighed_events(counts, branches).items()}


def weighed_events(counts: Counts, branches: Branches) -> dict[str, int]:
    """Return how often each event happened that takes time, by the names of `WEIGHTS`."""
    numbers = counts.Ir, branches.Bcm, counts.I1mr + counts.D1mr + counts.D1mw, counts.ram_hits
    return dict(zip(WEIGHTS, numbers, strict=True))


WEIGHTS: Mapping[str, int] = {"instructions": 1, "mispredicted branches": 80, "L1 misses": 10, "LL misses": 100}


IR_MODEL = CostModel(None)
DEFAULT_MODEL = CostModel(1, 5, 30)


class FunctionCost(msgspec.Struct, frozen=True, gc=False):  # there may be millions, and none has a reference back
    """Self cost of one function: `counts` are in the order of the profile's `events`.

    `file` and `name` are raw, as the out file has them ("???" where Valgrind knows no name); bytes that are not UTF-8
    are written `\\xNN`.
    """

    file: str
    name: str
    counts: tuple[int, ...]


class LineCost(msgspec.Struct, frozen=True, gc=False):
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
        sums = tuple(map(sum, zip(*(row.counts for row in self.functions), strict=True)))
        return sums or (0,) * len(self.events)

    def counts(self) -> Counts:
        """Return the totals as the nine counts. KeyError where an event is missing."""
        return Counts.from_mapping(dict(zip(self.events, self.totals(), strict=True)))

    def branches(self) -> Branches | None:
        """Return the totals of what a branch predictor counted, None where there was none."""
        if self.events != EVERY_EVENT:  # nothing is summed up for those who ask for no estimate
            return None
        return Branches(**dict(zip(BRANCHES, self.totals()[len(EVENTS) :], strict=True)))


def merge_profiles(profiles: Sequence[Profile]) -> Profile:
    """Add several profiles of the same events into one; either all of them have source lines, or none."""
    if len(profiles) == 1:
        return profiles[0]
    events = profiles[0].events
    for profile in profiles:
        if profile.events != events:
            raise ValueError(f"profiles of different events: {profile.events} and {events}")
    if len({bool(profile.lines) for profile in profiles if profile.functions}) > 1:
        raise ValueError("profiles with source lines and without: the lines would no longer add up")
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


# Callgrind books an instruction that reads and writes back as both; which of the two a miss belongs to can depend on what
# came before. So what one of them lacks, the other has too much.
_INSTRUCTIONS, _READS, _WRITES = (0, 1, 2), (3, 4, 5), (6, 7, 8)  # places in `EVENTS`: accesses, misses of each level
_LEVELS = (_INSTRUCTIONS, _READS, _WRITES)
_PREDICTED = ((9, 10), (11, 12))  # places in `EVERY_EVENT`: branches, and those mispredicted
_TWINS = tuple(zip(_READS, _WRITES, strict=True))


def without(profile: Profile, empty: Profile, times: int = 1) -> Profile:
    """Return `profile` less `times` times `empty`, function by function; both have the nine events, or every event, and no lines.

    No count becomes negative: what a row cannot give is taken from its twin (reads for writes), then from the row that
    has most of it. Nor are there more misses than accesses: what is left of a function that did nothing but measure is
    that its lines lie elsewhere in the caches. Where nothing was executed or accessed beyond the empty ones, nothing is left
    at all. Rows of zeros are left out.
    """
    totals, less = profile.totals(), empty.totals()
    if all(totals[accesses] == times * less[accesses] for accesses, *_misses in _LEVELS):
        return Profile(events=profile.events, functions=())
    width = len(profile.events)
    left = {(row.file, row.name): list(row.counts) for row in profile.functions}
    owed = [0] * width
    for row in empty.functions:
        counts = left.setdefault((row.file, row.name), [0] * width)
        for place, count in enumerate(row.counts):
            counts[place] -= times * count
        for pair in _TWINS:
            for short, other in (pair, pair[::-1]):
                taken = max(0, min(-counts[short], counts[other]))
                counts[short] += taken
                counts[other] -= taken
        for place, count in enumerate(counts):
            if count < 0:
                owed[place] -= count
                counts[place] = 0
    for place, debt in enumerate(owed):
        if debt:
            _pay(left, place, debt)
    levels = _LEVELS if width == len(EVENTS) else (*_LEVELS, *_PREDICTED)
    for counts in left.values():
        for before, after in (pair for level in levels for pair in pairwise(level)):
            counts[after] = min(counts[after], counts[before])
    rows = (FunctionCost(*key, tuple(counts)) for key, counts in sorted(left.items()) if any(counts))
    return Profile(events=profile.events, functions=tuple(rows))


def _pay(left: dict[tuple[str, str], list[int]], place: int, debt: int) -> None:
    """Take so much of an event, then of its twin, from the rows that have most; what none has is forgiven."""
    for event in (place, *(sum(pair) - place for pair in _TWINS if place in pair)):  # itself, then its twin
        for key in sorted(left, key=lambda key: (-left[key][event], key)):
            taken = min(debt, left[key][event])
            left[key][event] -= taken
            debt -= taken
            if not debt:
                return
