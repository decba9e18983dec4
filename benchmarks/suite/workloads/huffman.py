"""Huffman coding there and back: a heap of trees, a dictionary of codes and strings of bits."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass

TEXT = (
    "it was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness; "
    * 40
)


@dataclass(frozen=True, slots=True)
class Node:
    """A leaf has a letter; any other node has two branches."""

    letter: str = ""
    branches: tuple[Node, Node] | None = None


def tree(text: str) -> Node:
    """Build the tree of the shortest codes."""
    counts = sorted(Counter(text).items())
    heap = [(count, number, Node(letter)) for number, (letter, count) in enumerate(counts)]
    heapq.heapify(heap)
    number = len(heap)
    while len(heap) > 1:
        (one, _, left), (other, _, right) = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (one + other, number, Node(branches=(left, right))))
        number += 1
    return heap[0][2]


def codes(node: Node, prefix: str = "") -> dict[str, str]:
    """Return the bits of every letter."""
    if node.branches is None:
        return {node.letter: prefix}
    left, right = node.branches
    return codes(left, f"{prefix}0") | codes(right, f"{prefix}1")


def decode(bits: str, root: Node) -> str:
    """Walk down the tree, once for every letter."""
    letters: list[str] = []
    node = root
    for bit in bits:
        assert node.branches is not None
        node = node.branches[bit == "1"]
        if node.branches is None:
            letters.append(node.letter)
            node = root
    return "".join(letters)


def main() -> None:
    """Print how small the text became."""
    root = tree(TEXT)
    table = codes(root)
    bits = "".join(table[letter] for letter in TEXT)
    assert decode(bits, root) == TEXT
    print(f"{len(TEXT)} letters in {len(bits) // 8} bytes")


if __name__ == "__main__":
    main()
