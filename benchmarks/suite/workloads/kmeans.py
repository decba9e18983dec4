"""Clusters of points in the plane: Lloyd's algorithm on lists of tuples, from points of a seeded generator."""

from __future__ import annotations

import random

POINTS, CENTRES, ROUNDS = 400, 5, 15
Point = tuple[float, float]


def square(one: Point, other: Point) -> float:
    """Return the square of a distance."""
    return (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2


def middle(points: list[Point]) -> Point:
    """Return the centre of gravity."""
    return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)


def clusters(points: list[Point]) -> tuple[list[Point], list[int]]:
    """Return the centres and the sizes."""
    centres = points[:CENTRES]
    groups: list[list[Point]] = []
    for _ in range(ROUNDS):
        groups = [[] for _ in centres]
        for point in points:
            nearest = min(range(CENTRES), key=lambda number: square(point, centres[number]))
            groups[nearest].append(point)
        centres = [middle(group) if group else centre for group, centre in zip(groups, centres, strict=True)]
    return centres, [len(group) for group in groups]


def main() -> None:
    """Print the clusters, the largest first."""
    chance = random.Random(7)
    hills = [(chance.uniform(0, 100), chance.uniform(0, 100)) for _ in range(CENTRES)]
    points = [(chance.gauss(x, 6), chance.gauss(y, 6)) for x, y in hills for _ in range(POINTS // CENTRES)]
    chance.shuffle(points)
    centres, sizes = clusters(points)
    assert sum(sizes) == POINTS
    for size, (x, y) in sorted(zip(sizes, centres, strict=True), reverse=True):
        print(f"{size:4} around {x:.2f}, {y:.2f}")


if __name__ == "__main__":
    main()
