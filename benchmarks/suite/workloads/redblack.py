"""A left-leaning red-black tree (Sedgewick, 2008): attribute access and recursion, insertions in a scattered order."""

from __future__ import annotations

KEYS = 3000


class Node:
    """A key and its colour: that of the link from its parent."""

    __slots__ = ("key", "left", "red", "right")

    def __init__(self, key: int) -> None:
        """Begin as a red leaf."""
        self.key = key
        self.red = True
        self.left: Node | None = None
        self.right: Node | None = None


def is_red(node: Node | None) -> bool:
    """Tell whether the link to this node is red."""
    return node is not None and node.red


def turned_left(node: Node) -> Node:
    """Make a right-leaning red link lean left."""
    top = node.right
    assert top is not None
    node.right, top.left = top.left, node
    top.red, node.red = node.red, True
    return top


def turned_right(node: Node) -> Node:
    """Make a left-leaning red link lean right, for a moment."""
    top = node.left
    assert top is not None
    node.left, top.right = top.right, node
    top.red, node.red = node.red, True
    return top


def inserted(node: Node | None, key: int) -> Node:
    """Return the subtree with the key in it."""
    if node is None:
        return Node(key)
    if key < node.key:
        node.left = inserted(node.left, key)
    elif key > node.key:
        node.right = inserted(node.right, key)
    if is_red(node.right) and not is_red(node.left):
        node = turned_left(node)
    if node.left is not None and node.left.red and is_red(node.left.left):
        node = turned_right(node)
    if node.left is not None and node.right is not None and node.left.red and node.right.red:
        node.red = True
        node.left.red = node.right.red = False
    return node


def in_order(node: Node | None) -> list[int]:
    """Return the keys of a subtree."""
    return [] if node is None else [*in_order(node.left), node.key, *in_order(node.right)]


def height(node: Node | None) -> int:
    """Return the longest way down."""
    return 0 if node is None else 1 + max(height(node.left), height(node.right))


def main() -> None:
    """Print the height, which stays below twice the logarithm."""
    root: Node | None = None
    for number in range(KEYS):
        root = inserted(root, number * 7919 % 10007)
        root.red = False
    keys = in_order(root)
    assert keys == sorted(set(keys))
    assert height(root) <= 2 * KEYS.bit_length()
    print(f"{len(keys)} keys, height {height(root)}")


if __name__ == "__main__":
    main()
