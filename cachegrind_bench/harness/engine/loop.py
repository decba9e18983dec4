"""How a framework loops, and what of that is counted: values that the adapters make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from cachegrind_bench.valgrind.options import WHOLE, Collect, Scope

if TYPE_CHECKING:
    from cachegrind_bench.hermetic.execution import Clock

# What the iterations of a number that is kept may cost: as much as a minute. An iteration may become a hundred times dearer before
# results do not compare.
MOST_KEPT_IR = 1_000_000_000
REPORT = "report"


class Sections(msgspec.Struct, frozen=True, kw_only=True):
    """Where a framework starts and stops its clock: functions by their names in the symbol table.

    Each place is `before:NAME` or `after:NAME`, the entry of a function or its return. A section is what is executed between the last
    `begin` and the next `end`.
    """

    begin: tuple[str, ...]
    end: tuple[str, ...]
    settle: tuple[str, ...] = ()  # where one of these follows a `begin`, the section begins there
    reset: tuple[str, ...] = ()  # all sections so far are forgotten
    differs: bool = False  # those before the last `reset` are subtracted instead
    finish: tuple[str, ...] = ()  # nothing counts until the next `reset`
    share: tuple[int, int] = (0, 1)  # the place of this benchmark among all with equally many sections, and how many
    skip: int = 0  # the first sections of this benchmark do not count
    regular: bool = False  # each iteration must have equally many sections, as Callgrind may not see some
    order: str = ""  # a regular expression for what must happen, by the first letters of these fields
    odd: str = (  # what may have happened instead
        "code that reads the clock or sleeps itself, a program that ends in its benchmark, or a measurement of its own (not "
        "wall time), cannot be distinguished"
    )
    # Wildcards that cover these places, for names that have a `*` or `?`: of two patterns that begin alike, Callgrind 3.19 finds one only.
    patterns: tuple[str, ...] = ()
    other: Sections | None = None  # what holds in a process where no section began
    unseen: str = (  # what a user can do about a program that called none of these functions
        "the program is stripped, or LTO has inlined the functions by which the framework starts and stops its clock: build it "
        "without -s and -flto"
    )

    @property
    def dumps(self) -> tuple[str, ...]:
        """Callgrind's options that have it write out what it counted there."""
        own = triggers(self.patterns or (*self.begin, *self.settle, *self.end, *self.reset, *self.finish))
        return tuple(dict.fromkeys((*own, *(() if self.other is None else self.other.dumps))))


def triggers(places: Iterable[str]) -> tuple[str, ...]:
    """Return what Callgrind calls these places, in its options and in the parts that it writes."""
    return tuple(f"--dump-{when}={name}" for when, _, name in (place.partition(":") for place in places))


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How a framework is made to write the file REPORT about a measured execution: by `words` that end its command, with {} for the folder.

    `read` gets the file's contents, how many iterations were asked for, and how many sections were counted. It returns how many
    iterations the last one of these had. MeasurementError if the framework says that the benchmark failed, or cannot be understood.
    """

    words: tuple[str, ...]
    read: Callable[[bytes, int, int], int]


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """How a framework is made to loop: the `words` that end its command, by the number of iterations that are counted then.

    What an execution with the words for 0 iterations costs is subtracted, if there are any: a framework that calls the benchmark anew for
    each number must have some, since what the benchmark then does once would count. Else only `sections` count.
    """

    words: Mapping[int, tuple[str, ...]]
    native: tuple[str, ...]  # the words of an execution that is not measured
    sections: Sections | None = None
    most_ir: int = 10_000_000  # of all iterations, which takes some tenths of a second
    kept: int | None = None  # the number of an earlier result, unless its iterations cost more than MOST_KEPT_IR
    clock: Clock | None = None  # with a hook it decides which of the numbers it is, and one execution is enough
    reported: str = ""  # a regular expression for a line of its output that says how many it executed
    report: Report | None = None
    log: tuple[
        str, ...
    ] = ()  # words after the program's name that have its compiler write a log, with {} for the folder
    # Words, as many as follow the program's name else, with which it runs no benchmark: it is executed so first, and then in a child
    # that it forks (see `forks`).
    rehearsal: tuple[str, ...] = ()
    method: str = "iterations/2"  # in the key, of what is counted without a difference

    @property
    def collect(self) -> Collect:
        """What Callgrind counts, and the words that the program gets for it."""
        words = (self.log, () if self.report is None else self.report.words)
        # Sections end before a process does something else, and what a child has from its parent is not in one.
        dumps = WHOLE.dumps if self.sections is None else self.sections.dumps
        return Collect(scope=Scope.PARTS, dumps=dumps, words=words, by_instruction=bool(self.log))

    def suitable(self, each: float) -> int:
        """Return how many iterations to count where each costs this many instructions."""
        if self.kept is not None and self.kept * each <= MOST_KEPT_IR:
            return self.kept
        numbers = sorted(filter(None, self.words))
        return max((number for number in numbers if number * each <= self.most_ir), default=numbers[0])
