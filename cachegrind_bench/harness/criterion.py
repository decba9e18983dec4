"""Benchmarks of Criterion (Rust), from 0.3 on: `Bencher` starts and ends its `Measurement` around what it measures.

**How many iterations.** With --profile-time T, `Bencher` is called with one iteration, and with two as a second has not
passed; then once more, with as many as its clock says are left of T; no statistics follow. The clock is pinned and jumps in the
second call, by J: the first two calls, three iterations, took J + s, where s is what the clock moved else. So what is left is
(T - J - s) / ((J + s) / 3) = 3 T / (J + s) - 3 iterations, rounded down. T is 4212 s, and that is 102.92, 12.51 and 3.50 for the J
below, and for s = 1 s it is 102.04, 12.49 and 3.50: so s does not matter below a second. The second call, two iterations, is subtracted:
what a benchmark does in the first iteration of each call is in both. A reading of the clock moves it
by 0.1 ms, which is 10,000 readings by whatever else reads it. What sleeps moves it as well; the clock does not jump if 0.3 s
have passed before it would, in at least half of what s is made of, and without a jump nothing is counted.

**Which readings are Bencher's.** Code of a benchmark, a profiler and tokio's threads read `Instant` as well, so neither the order nor
the number of readings says which are Bencher's, and Callgrind cannot tell readings by their caller. But Bencher reads it in
`WallTime::start` and `WallTime::end`, which nothing else calls. The compiler inlines neither, since they are in another crate than the
generic functions that call them, unless LTO does. What lies between the two is counted. The functions of `Bencher` itself are
never inlined: they say where the second call begins, for the jump, and where the third does.

`iter_custom` has no start and no end: the benchmark reads `Instant` itself. There the order has to do: the one of Bencher, those of
the benchmark in pairs, and the one of Bencher. With one iteration there is one pair. If there are more, one of them may be
set-up, and nothing is counted.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cachegrind_bench.harness.cargo import Cargo
from cachegrind_bench.harness.engine.jumping_clock import HOOK, Jumps
from cachegrind_bench.harness.engine.loop import Loop, Sections, triggers
from cachegrind_bench.harness.protocol import exactly
from cachegrind_bench.hermetic.launch import PINNED_CLOCK

if TYPE_CHECKING:
    from mmap import mmap

# In the symbol table, mangled in the old way (with a hash at its end) or in the new one.
_HASH = rb"(?:17h[0-9a-f]{16}E)?(?=\0)"
_WALL_TIME = re.compile(
    rb"\0(_(?:ZN|R)[\w.$]*criterion[\w.$]*WallTime[\w.$]*Measurement[\w.$]*(5start|3end)" + _HASH + rb")"
)
_INSTANT = re.compile(rb"\0(_(?:ZN|R)[\w.$]*3std4time[\w.$]*7Instant(3now|7elapsed)" + _HASH + rb")")
# Not closures in them, where AsyncBencher's futures are.
_BENCHER = re.compile(
    rb"\0(_ZN9criterion7bencher[\w.$]*Bencher[\w.$]*\d+iter\w*17h[0-9a-f]{16}E(?:\.llvm\.\d+)?"
    rb"|_RINvM\w*9criterion7bencher\w*Bencher\w*)(?=\0)"
)
_WHEN = {b"5start": "after", b"3end": "before", b"3now": "after", b"7elapsed": "before"}
_ODD = (
    "a set-up of iter_custom that is timed as well, a benchmark that sleeps, reads the clock thousands of times or ends its program, and a "
    "measurement of its own (not wall time) cannot be counted"
)
_LONGEST_NAME = 100
_NUMBERED = re.compile(r"(.+) #\d+")
_SECONDS = 4212
_JUMPS = {100: 119.3, 10: 814.5, 1: 1943.5}  # by numbers of iterations beyond two, in seconds
_MOST_IR = 20_000_000  # of two iterations (of one if each is a batch), as many times
_CLOCK = PINNED_CLOCK._replace(step_ns=10**5, hook=HOOK)
_MOST_NS = 3 * 10**8
_EACH = tuple(
    (_MOST_IR // number if number > 1 else sys.maxsize, int(seconds * 10**9)) for number, seconds in _JUMPS.items()
)


class Criterion(Cargo):
    """What lies between two readings of the clock is counted."""

    key = "criterion"
    title = "Criterion"
    tested = ("0.3", "0.5", "0.7", "0.8")
    package = b"(codspeed-criterion-compat|criterion)"
    choosing = ("--exact", "--ignored")
    with_value = re.compile(
        "-[sb]|--(color|save-baseline|baseline|baseline-lenient|load-baseline|sample-size|warm-up-time|measurement-time|nresamples"
        "|noise-threshold|confidence-level|significance-level|profile-time|plotting-backend|output-format)"
    )
    without_value = re.compile("-[vqn]|--(bench|verbose|quiet|quick|noplot|discard-baseline|nocapture|show-output)")

    def words(self, name: str) -> tuple[str, ...]:
        """Choose by a regular expression. A name that is longer than 100 bytes is listed cut, with three dots."""
        cut = name.removesuffix("...")
        long = cut != name and len(cut.encode()) > _LONGEST_NAME - 4  # as a letter of up to four bytes is not cut
        return ("--bench", f"{exactly(cut).removesuffix('$')}.+" if long else exactly(name))

    def unfit(self, names: Sequence[str]) -> Mapping[str, str]:
        """A name that is listed once more gets a number, and the filter does not know it so."""
        numbered = {name: match[1] for name in names if (match := _NUMBERED.fullmatch(name)) and match[1] in names}
        return dict.fromkeys([*numbered.values(), *numbered], "its name, or the first 100 bytes of it, is listed twice")

    def loop(self, program: mmap | bytes) -> Loop | None:
        """Look for the clock in the symbol table."""
        if program.find(b"9criterion7bencher") < 0:
            return None
        wall_time, instant = _places(program, _WALL_TIME), _places(program, _INSTANT)
        reset = tuple(sorted({f"before:{match[1].decode()}" for match in _BENCHER.finditer(program)}))
        begin, end, order = instant[b"3now"], instant[b"7elapsed"], "rb(be)e(rb(be)+e){2}"
        by_instant = Sections(
            begin=begin, end=end, reset=reset, order=order, differs=True, odd=_ODD, unseen=self.unseen
        )
        begin, end, order = wall_time[b"5start"], wall_time[b"3end"], "rbe(r(be)+){2}"
        by_measurement = replace(by_instant, begin=begin, end=end, order=order, other=by_instant)
        sections = by_measurement if by_measurement.begin and by_measurement.end else by_instant
        kinds = [sections, *([] if sections.other is None else [sections.other])]
        words = ("--profile-time", str(_SECONDS))
        jumps = Jumps(
            each=_EACH,
            calls=triggers(reset),
            kinds=tuple((triggers(kind.begin), triggers(kind.end)) for kind in kinds),
            most_ns=_MOST_NS,
        )
        return Loop(
            words=dict.fromkeys(_JUMPS, words),
            rehearsal=(*self.words(""), *words),
            native=("--test",),
            sections=sections,
            clock=_CLOCK._replace(data=jumps),
        )


def _places(program: mmap | bytes, names: re.Pattern[bytes]) -> dict[bytes, tuple[str, ...]]:
    """Return where the clock is read, by the functions' own names."""
    found: dict[bytes, set[str]] = {name: set() for name in _WHEN}
    for match in names.finditer(program):
        found[match[2]].add(f"{_WHEN[match[2]]}:{match[1].decode()}")
    return {name: tuple(sorted(places)) for name, places in found.items()}


HARNESS = Criterion()
