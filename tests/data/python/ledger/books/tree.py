"""A tree of categories."""


class Node:
    def __init__(self, name, children):
        self.name = name
        self.children = children

    def __iter__(self):
        yield self
        for child in self.children:
            yield from child


def grown(depth, name="a"):
    if depth == 0:
        return Node(name, [])
    return Node(name, [grown(depth - 1, name + sign) for sign in "xyz"])


def depth(node):
    return 1 + max(map(depth, node.children), default=0)


def leaves(node):
    return sum(map(leaves, node.children)) if node.children else len(node.name)


def even(node):
    return all(map(odd, node.children))


def odd(node):
    return any(map(even, node.children)) or not node.children


def listed(tree):
    return [node.name for node in tree]


def walked(tree):
    return depth(tree) + leaves(tree) + even(tree) + len(listed(tree))
