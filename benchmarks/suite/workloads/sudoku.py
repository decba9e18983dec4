"""A hard sudoku: search with the fewest candidates first, over one bit mask for each row, column and box."""

from __future__ import annotations

PUZZLE = "100007090030020008009600500005300900010080002600004000300000010040000007007000300"
SOLVED = "162857493534129678789643521475312986913586742628794135356478219241935867897261354"
ALL = 0b111111111


class Grid:
    """Cells and what is taken."""

    def __init__(self, text: str) -> None:
        """Read 81 digits, 0 for an empty cell."""
        self.cells = [0] * 81
        self.taken = [[0] * 9 for _ in range(3)]
        for place, digit in enumerate(text):
            if digit != "0":
                self.toggle(place, 1 << int(digit) - 1)

    @staticmethod
    def units(place: int) -> tuple[int, int, int]:
        """Return the row, column and box of a cell."""
        row, column = divmod(place, 9)
        return row, column, row // 3 * 3 + column // 3

    def toggle(self, place: int, bit: int) -> None:
        """Put a digit into a cell, or take it out."""
        self.cells[place] ^= bit
        for taken, unit in zip(self.taken, self.units(place), strict=True):
            taken[unit] ^= bit

    def candidates(self, place: int) -> int:
        """Return the digits that may go here, as a mask."""
        row, column, box = self.units(place)
        return ALL & ~(self.taken[0][row] | self.taken[1][column] | self.taken[2][box])

    def solve(self) -> bool:
        """Fill the empty cells, the most constrained one first."""
        empty = [place for place in range(81) if not self.cells[place]]
        if not empty:
            return True
        place = min(empty, key=lambda cell: self.candidates(cell).bit_count())
        choices = self.candidates(place)
        while choices:
            bit = choices & -choices
            choices ^= bit
            self.toggle(place, bit)
            if self.solve():
                return True
            self.toggle(place, bit)
        return False


def main() -> None:
    """Print the solution."""
    grid = Grid(PUZZLE)
    assert grid.solve()
    answer = "".join(str(bit.bit_length()) for bit in grid.cells)
    assert answer == SOLVED
    print(answer)


if __name__ == "__main__":
    main()
