"""A pinned clock that decides how many iterations a framework executes, for one that measures for a number of seconds.

It jumps once, by what Callgrind has counted so far. Runs inside the launcher, as a hook of the clock: only the standard library, and
little of it.
"""

# No `from __future__ import annotations`: as texts, all annotations would be compiled at each start of the launcher.

from typing import NamedTuple

from cachegrind_bench.hermetic.clock import PinnedTime
from cachegrind_bench.hermetic.execution import Clock
from cachegrind_bench.hermetic.images import Process

HOOK = f"{__name__}:JumpingTime"
_TRIGGER = b"\ndesc: Trigger: "
_HEAD_BYTES = 1 << 16  # of a file of Callgrind's, which begins with the command and the sums


class Jumps(NamedTuple):
    """When the clock jumps: in the second of the calls that begin with a part of Callgrind's for one of the triggers `calls`.

    It jumps where the first section of that call ends, by what the section cost. `each` has for each jump the most instructions that
    it is for, and nanoseconds. `kinds` are the triggers that begin and end a section; of several, the first that ends one in the
    first call. It does not jump where more than `most_ns` have passed since the first call began.
    """

    each: tuple[tuple[int, int], ...]
    calls: tuple[str, ...]
    kinds: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    most_ns: int


class _Seen:
    """Findings in Callgrind's parts of one process: the number of calls, when the first began (ns), and the cost of a section (Ir)."""

    def __init__(self) -> None:
        self.parts = self.calls = self.called_ns = self.cost = 0
        self.kind: int | None = None


class JumpingTime(PinnedTime):
    """The pinned clocks of a run whose clock jumps."""

    ignores_cpu_timers = True  # a profiler's: on such a clock it never ends, and interrupts no benchmark

    def __init__(self, clock: Clock, out: str) -> None:
        super().__init__(clock, out)
        self._jumps = Jumps(*clock.data)
        self._seen: dict[Process, _Seen] = {}

    def forked(self, process: Process) -> None:
        """Forget what was waited for: it is not what the next child of the program begins with."""
        if process.image.parent == 0:
            self.waited_ns = 0

    def read(self, process: Process, clock_id: int) -> int | None:
        """Return what a clock shows at one more reading."""
        process.ticks += 1
        if process.image.jump is None:
            self._look_at_parts(process, self._seen.setdefault(process, _Seen()))
        return self.now(process, clock_id)

    def _look_at_parts(self, process: Process, seen: _Seen) -> None:
        """Jump if Callgrind has written the part of this process that says by how much."""
        while (head := _head(f"{self.out}/out.{process.image.pid}.{seen.parts + 1}")) is not None:
            seen.parts += 1
            counts = head.partition(b"\nsummary: ")[2].split(None, 1)
            seen.cost += int(counts[0]) if counts and counts[0].isdigit() else 0
            if self._ends_section(process, seen, head.partition(_TRIGGER)[2].partition(b"\n")[0].decode()):
                if self.passed(process) - seen.called_ns <= self._jumps.most_ns:
                    jump = next(place for place, (most, _) in enumerate(self._jumps.each) if seen.cost <= most)
                    process.image.jump = jump
                    process.jumped_ns = self._jumps.each[jump][1]
                return

    def _ends_section(self, process: Process, seen: _Seen, trigger: str) -> bool:
        """Note what this part of Callgrind's says; return whether a section of the second call ends with it."""
        kinds = self._jumps.kinds
        if trigger in self._jumps.calls:
            seen.calls += 1
            if seen.calls == 1:
                seen.called_ns = self.passed(process)
        elif seen.calls == 1:
            known = len(kinds) if seen.kind is None else seen.kind
            seen.kind = next((n for n, (_, ends) in enumerate(kinds[:known]) if trigger in ends), seen.kind)
        elif seen.calls == 2 and seen.kind is not None:
            begins, ends = kinds[seen.kind]
            if trigger in begins:
                seen.cost = 0
            return trigger in ends
        return False


def _head(path: str) -> bytes | None:
    """Return the beginning of a file, or None before Callgrind has written it."""
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return None
