"""Conway's game of life on an endless plane: sets of tuples and a counter of neighbours."""

from __future__ import annotations

from collections import Counter

R_PENTOMINO = {(1, 0), (2, 0), (0, 1), (1, 1), (1, 2)}
GENERATIONS = 100
BIRTH = 3
Cells = set[tuple[int, int]]


def step(alive: Cells) -> Cells:
    """Return the next generation."""
    around = Counter((x + dx, y + dy) for x, y in alive for dx in (-1, 0, 1) for dy in (-1, 0, 1) if (dx, dy) != (0, 0))
    return {cell for cell, count in around.items() if count == BIRTH or (count == BIRTH - 1 and cell in alive)}


def main() -> None:
    """Print how many cells live in the end."""
    alive: Cells = R_PENTOMINO
    for _ in range(GENERATIONS):
        alive = step(alive)
    print(f"{len(alive)} cells after {GENERATIONS} generations")


if __name__ == "__main__":
    main()
