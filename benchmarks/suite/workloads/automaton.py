"""Regular expressions without backtracking: Thompson's construction and a simulation of all states at once."""

from __future__ import annotations

TEXT = "abbabaabbbabaabababbbaaab" * 120
# Concatenation is written as a dot and everything in postfix order: (a|b)*abb(a|b)(a|b)
PATTERN = "ab|*a.b.b.ab|.ab|."
SPLIT, MATCH = "split", "match"


class Machine:
    """States as two lists: what a state reads, and where it goes."""

    def __init__(self, postfix: str) -> None:
        """Build the states, fragment by fragment."""
        self.reads: list[str] = []
        self.goes: list[list[int]] = []
        stack: list[tuple[int, int]] = []
        for sign in postfix:
            stack.append(self.fragment(sign, stack))
        ((self.start, end),) = stack
        self.reads[end] = MATCH

    def state(self, reads: str, *goes: int) -> int:
        """Add a state."""
        self.reads.append(reads)
        self.goes.append(list(goes))
        return len(self.reads) - 1

    def fragment(self, sign: str, stack: list[tuple[int, int]]) -> tuple[int, int]:
        """Return first and last state of the fragment that this sign makes."""
        if sign == ".":
            (second, end), (start, first) = stack.pop(), stack.pop()
            self.goes[first].append(second)
            return start, end
        end = self.state(SPLIT)
        if sign == "|":
            (second, last), (first, other) = stack.pop(), stack.pop()
            self.goes[last].append(end)
            self.goes[other].append(end)
            return self.state(SPLIT, first, second), end
        if sign == "*":
            first, last = stack.pop()
            start = self.state(SPLIT, first, end)
            self.goes[last].append(start)
            return start, end
        return self.state(sign, end), end

    def closure(self, states: set[int]) -> set[int]:
        """Return all states that can be reached without reading."""
        found: set[int] = set()
        todo = sorted(states)
        while todo:
            state = todo.pop()
            if state not in found:
                found.add(state)
                if self.reads[state] == SPLIT:
                    todo += self.goes[state]
        return found

    def ends(self, text: str) -> list[int]:
        """Return the lengths of the prefixes that match."""
        current = self.closure({self.start})
        lengths: list[int] = []
        for length, letter in enumerate(text, 1):
            reached = {self.goes[state][0] for state in current if self.reads[state] == letter}
            current = self.closure(reached)
            if any(self.reads[state] == MATCH for state in current):
                lengths.append(length)
        return lengths


def main() -> None:
    """Print how many prefixes match, and check it against the plain meaning of the pattern."""
    lengths = Machine(PATTERN).ends(TEXT)
    assert lengths == [length for length in range(5, len(TEXT) + 1) if TEXT[length - 5 : length - 2] == "abb"]
    print(f"{len(lengths)} prefixes match")


if __name__ == "__main__":
    main()
