"""A profile of Python functions as a result file stores it: rows of numbers, checked when they are wanted.

    "python": {"total": IR, "cut": false, "functions": [[FILE, NAME, LINE], ...], "paths": [[CALLER, FUNCTION, CALLS, IR], ...]}

FILE and NAME are places among the strings, FUNCTION one among the functions. CALLER is that of an earlier path counted
from 1, and 0 where no Python function called. Must not know where the lists come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cachegrind_bench.model.json_reader import Hole, Node
from cachegrind_bench.model.pythonprofile import TOP, PythonFunction, PythonPath, PythonProfile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cachegrind_bench.model.stored import Loader

_NO_CALLER = 0


def document_of(profile: PythonProfile, place: Callable[[str], int]) -> dict[str, object]:
    """Return what is written; `place` returns the place of a string."""
    return {
        "total": profile.total,
        "cut": profile.cut,
        "functions": [[place(item.file), place(item.name), item.line] for item in profile.functions],
        "paths": [
            [_NO_CALLER if path.parent == TOP else path.parent + 1, path.function, path.calls, path.ir]
            for path in profile.paths
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPython:
    """The lists of one profile, or the holes where they were."""

    node: Node
    total: int
    cut: bool
    functions: Node
    paths: Node

    @classmethod
    def of(cls, node: Node) -> StoredPython:
        """Read all but the rows."""
        total, cut = node.get("total").count(), node.get("cut").boolean()
        return cls(node=node, total=total, cut=cut, functions=node.get("functions"), paths=node.get("paths"))

    def at_hand(self) -> bool:
        """Tell whether a list is here, since it was too odd to be left out."""
        return not all(isinstance(item.value, Hole) for item in (self.functions, self.paths))

    def read(self, strings: Sequence[str], load: Loader) -> PythonProfile:
        """Return the profile; `load` fetches the list that belongs in a hole, whose path it is told for its errors."""
        functions: dict[PythonFunction, Node] = {}
        for row, (file, name, line) in _rows(self.functions, 3, load):
            if max(file, name) >= len(strings):
                row.fail(f"it points to string {max(file, name)} of {len(strings)}")
            function = PythonFunction(strings[file], strings[name], line)
            if function in functions:
                row.fail(f"a second row of {function.name!r} in {function.file!r}")
            functions[function] = row
        paths: list[PythonPath] = []
        known: set[tuple[int, int]] = set()
        for row, (caller, place, calls, ir) in _rows(self.paths, 4, load):
            if caller > len(paths):
                row.fail(f"its caller is path {caller} of {len(paths)} before it")
            if place >= len(functions):
                row.fail(f"it points to function {place} of {len(functions)}")
            if (caller, place) in known:
                row.fail("a second row of this path")
            known.add((caller, place))
            paths.append(PythonPath(TOP if caller == _NO_CALLER else caller - 1, place, calls, ir))
        profile = PythonProfile(total=self.total, functions=tuple(functions), paths=tuple(paths), cut=self.cut)
        if profile.native < 0:
            self.node.fail("its paths cost more than its total")
        return profile


def _rows(node: Node, width: int, load: Loader) -> Iterator[tuple[Node, list[int]]]:
    if isinstance(node.value, Hole):
        node = Node(load(node.path, node.value), node.path)
    for row in node.items():
        numbers = row.counts()
        if len(numbers) != width:
            row.fail(f"it has {len(numbers)} numbers instead of {width}")
        yield row, numbers
