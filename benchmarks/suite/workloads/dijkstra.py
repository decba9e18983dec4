"""Shortest paths over a grid of hills: Dijkstra's algorithm with a heap of tuples and dictionaries of distances."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = 44
Place = tuple[int, int]


def height(place: Place) -> int:
    """Return how hard it is to enter a place."""
    x, y = place
    return 1 + (x * 7919 + y * 104729 + x * y * 31) % 9


def neighbours(place: Place) -> Iterator[Place]:
    """Yield the places beside this one."""
    x, y = place
    for dx, dy in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        if 0 <= x + dx < SIZE and 0 <= y + dy < SIZE:
            yield x + dx, y + dy


def distances(start: Place) -> dict[Place, int]:
    """Return the cost of the cheapest way to every place."""
    known = {start: 0}
    heap = [(0, start)]
    while heap:
        distance, place = heapq.heappop(heap)
        if distance > known[place]:
            continue
        for neighbour in neighbours(place):
            through = distance + height(neighbour)
            if through < known.get(neighbour, through + 1):
                known[neighbour] = through
                heapq.heappush(heap, (through, neighbour))
    return known


def main() -> None:
    """Print the cost of crossing the grid."""
    known = distances((0, 0))
    assert len(known) == SIZE * SIZE
    assert all(known[place] <= known[near] + height(place) for place in known for near in neighbours(place))
    print(f"corner to corner: {known[SIZE - 1, SIZE - 1]}")


if __name__ == "__main__":
    main()
