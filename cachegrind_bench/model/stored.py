"""A profile as a result file stores it: rows of numbers, checked one by one when they are wanted.

Knows how rows are written and what must add up; must not know where the lists come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cachegrind_bench.model.json_reader import Hole, Node
from cachegrind_bench.model.metrics import EVENTS, FunctionCost, LineCost, Profile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cachegrind_bench.model.metrics import Counts

    Loader = Callable[[str, Hole], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProfile:
    """The lists of one profile, or the holes where they were; its rows add up to `counts`, or it is refused."""

    node: Node
    events: tuple[str, ...]
    functions: Node
    lines: Node | None
    counts: Counts

    @classmethod
    def of(cls, node: Node, counts: Counts) -> StoredProfile:
        """Read all but the rows."""
        events = tuple(item.text() for item in node.get("events").items())
        if len(set(events)) < len(events):
            node.get("events").fail("an event stands there twice")
        missing = [name for name in EVENTS if name not in events]
        if missing:
            node.fail(f"its events lack {missing[0]}")
        lines = node.get("lines") if node.has("lines") else None
        return cls(node=node, events=events, functions=node.get("functions"), lines=lines, counts=counts)

    def at_hand(self) -> bool:
        """Tell whether a list is here, since it was too odd to be left out."""
        return not all(item is None or isinstance(item.value, Hole) for item in (self.functions, self.lines))

    def read(self, strings: Sequence[str], load: Loader) -> Profile:
        """Return the profile; `load` fetches the list that belongs in a hole, whose path it is told for its errors."""
        functions: dict[tuple[int, int], tuple[int, ...]] = {}
        for row, (file, name, *counts) in self._rows(self.functions, 2, strings, load):
            if (file, name) in functions:
                row.fail(f"a second row of {strings[name]!r} in {strings[file]!r}")
            functions[file, name] = tuple(counts)
        profile = Profile(
            events=self.events,
            functions=tuple(FunctionCost(strings[file], strings[name], row) for (file, name), row in functions.items()),
            lines=() if self.lines is None else self._lines(self.lines, functions, strings, load),
        )
        if profile.counts() != self.counts:
            self.node.fail("its rows do not add up to the benchmark's counts")
        return profile

    def _lines(
        self, node: Node, functions: dict[tuple[int, int], tuple[int, ...]], strings: Sequence[str], load: Loader
    ) -> tuple[LineCost, ...]:
        found: list[LineCost] = []
        known: set[tuple[int, int, int]] = set()
        sums = {key: (0,) * len(self.events) for key in functions}
        for row, (file, name, line, *counts) in self._rows(node, 3, strings, load):
            where = f"{strings[name]!r} in {strings[file]!r}"
            if (file, name) not in functions:
                row.fail(f"a line of {where}, which is no function of this profile")
            if (file, name, line) in known:
                row.fail(f"a second row of line {line} of {where}")
            known.add((file, name, line))
            sums[file, name] = tuple(map(int.__add__, sums[file, name], counts))
            found.append(LineCost(strings[file], strings[name], line, tuple(counts)))
        wrong = next((key for key in functions if found and sums[key] != functions[key]), None)
        if wrong is not None:
            node.fail(f"the lines of {strings[wrong[1]]!r} in {strings[wrong[0]]!r} do not add up to its row")
        return tuple(found)

    def _rows(self, node: Node, head: int, strings: Sequence[str], load: Loader) -> Iterator[tuple[Node, list[int]]]:
        """Yield rows of the right width, whose first two numbers point to strings."""
        if isinstance(node.value, Hole):
            node = Node(load(node.path, node.value), node.path)
        width = head + len(self.events)
        for row in node.items():
            numbers = row.counts()
            if len(numbers) != width:
                row.fail(f"it has {len(numbers)} numbers instead of {width}")
            last = max(numbers[:2])
            if last >= len(strings):
                row.fail(f"it points to string {last} of {len(strings)}")
            yield row, numbers
