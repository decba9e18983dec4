"""Algorithms of known growth in CPython: python programs.py NAME SIZE."""

from __future__ import annotations

import sys
from collections.abc import Callable


def numbers(n: int) -> list[int]:
    state, found = 1, list[int]()
    for _ in range(n):
        state = (state * 1103515245 + 12345) % 2**32
        found.append(state >> 8)
    return found


def sort_random(n: int) -> object:
    found = numbers(n)
    return [sorted(found)[n // 2] for _ in range(10)]


def sort_sorted(n: int) -> object:
    return sorted(range(n))[n // 2]


def insertion_sort(n: int) -> object:
    a = numbers(n)
    for i in range(1, n):
        value, j = a[i], i
        while j > 0 and a[j - 1] > value:
            a[j] = a[j - 1]
            j -= 1
        a[j] = value
    return a[n // 2]


def list_pop_first(n: int) -> object:
    found = list(range(n))
    while found:
        found.pop(0)
    return len(found)


def list_pop_last(n: int) -> object:
    found = list(range(n))
    while found:
        found.pop()
    return len(found)


def in_list(n: int) -> object:
    found = list(range(n))
    return sum(2 * number in found for number in range(n))


def in_set(n: int) -> object:
    found = set(range(n))
    return sum(2 * number in found for number in range(n))


def dict_lookups(n: int) -> object:
    found = {str(number): number for number in range(n)}
    return sum(found[str(number)] for number in range(n))


class Same:
    """Keys that all have one hash."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.number == self.number


def dict_collisions(n: int) -> object:
    return len({Same(number): number for number in range(n)})


def deep_copy(n: int) -> object:
    from copy import deepcopy

    return len(deepcopy([[number, str(number)] for number in range(n)]))


def str_append(n: int) -> object:
    text = ""
    for _ in range(n):
        text += "word "
    return len(text)


def str_prepend(n: int) -> object:
    text = ""
    for _ in range(n):
        text = "a longer word " + text
    return len(text)


def str_join(n: int) -> object:
    return len("".join(str(number) for number in range(n)))


def backtracking(n: int) -> object:
    import re

    return re.match("(a+)+b", "a" * n)


def bisection(n: int) -> object:
    from bisect import bisect_left

    return sum(bisect_left(range(n), number * 37 % n) for number in range(3000))


def matrix_product(n: int) -> object:
    a = [[i * j for j in range(n)] for i in range(n)]
    return sum(a[i][k] * a[k][j] for i in range(n) for j in range(n) for k in range(n))


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def all_pairs(n: int) -> object:
    from itertools import combinations

    return sum(1 for left, right in combinations(range(n), 2) if left + right == n)


def heap_queue(n: int) -> object:
    from heapq import heappop, heappush

    heap: list[int] = []
    for number in numbers(n):
        heappush(heap, number)
    return [heappop(heap) for _ in range(n)][n // 2]


def json_dumps(n: int) -> object:
    import json

    return len(json.dumps([{"number": number} for number in range(n)]))


def big_product(n: int) -> object:
    return (3**n).bit_length()


PROGRAMS: dict[str, Callable[[int], object]] = {
    name: value for name, value in list(globals().items()) if callable(value) and not isinstance(value, type)
}

if __name__ == "__main__":
    print(PROGRAMS[sys.argv[1]](int(sys.argv[2])))
