"""Levenshtein distances between words: dynamic programming, one row of integers at a time."""

from __future__ import annotations

WORDS = ["kitten", "sitting", "saturday", "sunday", "intention", "execution", "benchmark", "cachegrind", "instruction"]
ROUNDS = 15


def distance(one: str, other: str) -> int:
    """Return the least number of insertions, deletions and replacements."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        diagonal, row[0] = row[0], number
        for place, against in enumerate(other, 1):
            cost = diagonal + (letter != against)
            diagonal = row[place]
            row[place] = min(cost, diagonal + 1, row[place - 1] + 1)
    return row[-1]


def main() -> None:
    """Print the nearest two different words."""
    assert (distance("kitten", "sitting"), distance("saturday", "sunday")) == (3, 3)
    pairs: list[tuple[int, str, str]] = []
    for _ in range(ROUNDS):
        pairs = [(distance(one, other), one, other) for one in WORDS for other in WORDS if one < other]
    print(*min(pairs))


if __name__ == "__main__":
    main()
