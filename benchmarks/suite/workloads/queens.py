"""Ten queens on their board: every way to place them, by depth-first search over bit masks."""

from __future__ import annotations

SIZE = 10
SOLUTIONS = 724


def placements(columns: int, left: int, right: int) -> int:
    """Return how many ways the remaining rows can be filled, given the attacked columns and diagonals."""
    full = (1 << SIZE) - 1
    if columns == full:
        return 1
    count = 0
    free = full & ~(columns | left | right)
    while free:
        queen = free & -free
        free ^= queen
        count += placements(columns | queen, (left | queen) << 1, (right | queen) >> 1)
    return count


def main() -> None:
    """Print the number of solutions."""
    count = placements(0, 0, 0)
    assert count == SOLUTIONS
    print(f"{count} ways to place {SIZE} queens")


if __name__ == "__main__":
    main()
