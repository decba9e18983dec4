"""The inverse of a Hilbert matrix in exact fractions: Gauss-Jordan elimination, large integers and operator methods."""

from __future__ import annotations

from fractions import Fraction

SIZE = 9
Matrix = list[list[Fraction]]


def hilbert(size: int) -> Matrix:
    """Return the matrix whose elements are 1, 1/2, 1/3 ..., notoriously hard to invert in floating point."""
    return [[Fraction(1, row + column + 1) for column in range(size)] for row in range(size)]


def inverse(matrix: Matrix) -> Matrix:
    """Return the inverse, by elimination beside the identity."""
    size = len(matrix)
    work = [[*row, *(Fraction(int(place == number)) for place in range(size))] for number, row in enumerate(matrix)]
    for pivot in range(size):
        scale = work[pivot][pivot]
        work[pivot] = [value / scale for value in work[pivot]]
        for row in range(size):
            factor = work[row][pivot]
            if row != pivot and factor:
                work[row] = [value - factor * above for value, above in zip(work[row], work[pivot], strict=True)]
    return [row[size:] for row in work]


def main() -> None:
    """Print the sum of the inverse's elements, which is the square of the size."""
    result = inverse(hilbert(SIZE))
    total = sum((sum(row, Fraction(0)) for row in result), Fraction(0))
    assert total == SIZE * SIZE
    print(f"{SIZE} by {SIZE}: sum {total}, corner {result[-1][-1]}")


if __name__ == "__main__":
    main()
