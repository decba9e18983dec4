"""Which benchmarks must not run side by side: those that make or remove the same files around their executions.

Knows jobs' commands; must not know what these commands do. It goes by their words alone.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


class Surrounded(Protocol):
    """A benchmark with its place, its command, and the shell commands around every execution."""

    @property
    def id(self) -> str:
        """The id of the benchmark."""
        ...

    @property
    def cwd(self) -> Path:
        """The folder all these commands are executed in."""
        ...

    @property
    def command(self) -> tuple[str, ...]:
        """What is measured."""
        ...

    @property
    def prepare(self) -> str | None:
        """The shell command before."""
        ...

    @property
    def cleanup(self) -> str | None:
        """The shell command after."""
        ...


def lanes(benchmarks: Iterable[Surrounded]) -> dict[str, int]:
    """Return a number for each benchmark that has `prepare` or `cleanup`; those with one number run one after the other.

    They have it in common if they are executed in one folder and share one of these two or the command: 'rm -f out' of two
    benchmarks means the same file, and so does the `in` that one command reads and each `prepare` makes anew.
    """
    lane_of: dict[str, int] = {}
    first_of: dict[tuple[str, ...], int] = {}
    for number, item in enumerate(benchmarks):
        if item.prepare is None and item.cleanup is None:
            continue
        texts = [("shell", text) for text in (item.prepare, item.cleanup) if text is not None]
        traits = [(str(item.cwd), *trait) for trait in (*texts, ("command", *item.command))]
        joined = {first_of[trait] for trait in traits if trait in first_of}
        lane = min(joined, default=number)
        lane_of[item.id] = lane
        first_of |= dict.fromkeys(traits, lane)
        first_of = {trait: lane if known in joined else known for trait, known in first_of.items()}
        lane_of = {name: lane if known in joined else known for name, known in lane_of.items()}
    return lane_of


class InLane(Protocol):
    """A job; those with the same lane run one after the other, those with None whenever there is room."""

    @property
    def lane(self) -> int | None:
        """The lane."""
        ...


Item = TypeVar("Item", bound=InLane)


class Queue(Generic[Item]):
    """Jobs in their order: what may run at once, and what may when one has ended."""

    def __init__(self, jobs: Sequence[Item]) -> None:
        self._jobs = jobs
        self._waiting: dict[int, deque[Item]] = {}

    def first(self) -> Iterator[Item]:
        """Yield all jobs without a lane, and the first of each lane."""
        for job in self._jobs:
            if job.lane is None or job.lane not in self._waiting:
                if job.lane is not None:
                    self._waiting[job.lane] = deque()
                yield job
            else:
                self._waiting[job.lane].append(job)

    def after(self, job: Item) -> Item | None:
        """Return the job that may begin now that this one has ended, if there is one."""
        waiting = None if job.lane is None else self._waiting[job.lane]
        return waiting.popleft() if waiting else None
