"""Benchmarks of Criterion (Rust), from 0.3 on: counting stops where `WallTime::end` is entered, or with `iter_custom` `Instant::elapsed`.

It starts where `WallTime::start`, or `Instant::now`, returns: `Bencher` calls them around what it measures. `engine.section_parts`
finds the parts that count; `engine.jumping_clock` only decides how many iterations are executed.

**What is executed.** With `--profile-time T`, Criterion makes no statistics. It calls the benchmark with 1 iteration, then with 2, 4 and so on,
until these calls have taken more than a second together (`warm_up` in its routine.rs). If k iterations took E seconds so far, T - E are
left, and an iteration takes E/k. So the last call has (T - E) / (E/k) = kT/E - k iterations, rounded down.

**How many iterations.** Our clock moves by 0.1 ms with each reading, and jumps by J in the second call, which ends these calls: k is
1 + 2, and E is J + s, where s is what the clock moved besides. What the second call costs is subtracted from the cost of the last one, since
both do what a benchmark does once in each call. Its 2 iterations are subtracted, too, so n count if the last call has n + 2:

    n + 2 <= 3T/E - 3 < n + 3, or 3T/(n + 6) < E <= 3T/(n + 5)

For n = 100 this interval is 3T / (105 * 106) wide. That must be more than a second, as s may be up to a second: T > 3710. With T = 4212:

      n    E above    J         E up to
    100     119.21     119.3     120.34
     10     789.75     814.5     842.40
      1    1805.14    1943.5    2106.00

The clock jumps at the end of the first section of the second call, by what that section costs, c. A section has 2 iterations, or 1 where each
is a batch of its own. n is the most for which n * c/2 stays below 10 million instructions. At least half of what makes up s is over
by then: if 0.3 s have passed, by 3000 readings or a sleep, the clock does not jump, and nothing is counted.

**Which readings count.** Code of a benchmark, a profiler and tokio's threads read `Instant` as well, so neither the order nor
the number of readings says which are Bencher's, and Callgrind cannot tell readings by their caller. But Bencher reads it in
`WallTime::start` and `WallTime::end`, which nothing else calls. The compiler inlines neither, since they are in another crate than the
generic functions that call them, unless LTO does. What is executed between the two is a section. The functions of `Bencher` itself are
never inlined, and each call begins with one (`reset`). So by first letters of `Sections`, the order of three calls is rbe r(be)+ r(be)+.

`iter_custom` has no start and no end: the benchmark reads `Instant` itself. There a call is a reading by Bencher, pairs of the
benchmark, and a reading by Bencher: rb(be)+e. With one iteration there is one pair. If the first call has more, one of them may be
set-up, and nothing is counted.

**One start for all.** The start of such a program costs more than most benchmarks. So the program is executed with a filter that no name
matches, and then forks a child for each benchmark (`engine.forks`).
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
_SECONDS = 4212  # T
_JUMPS_S = {100: 119.3, 10: 814.5, 1: 1943.5}  # J by n
_MOST_IR = 20_000_000  # n * c
_CLOCK = PINNED_CLOCK._replace(step_ns=10**5, hook=HOOK)
_MOST_NS = 3 * 10**8
_EACH = tuple(
    (_MOST_IR // number if number > 1 else sys.maxsize, int(seconds * 10**9)) for number, seconds in _JUMPS_S.items()
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
            words=dict.fromkeys(_JUMPS_S, words),
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
