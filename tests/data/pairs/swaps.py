"""Pure Python work. Tests run it with a larger PLANTED: more turns of a loop that the interpreter's evaluation loop does
all by itself, as it makes no object and calls nothing.
"""

PLANTED = 0


def words(number):
    return [f"word {i * 7919 % 1009}" for i in range(number)]


def counted(texts):
    counts = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def swapped(turns):
    first, second = "first", "second"
    for _ in turns:
        first, second = second, first
        first, second = second, first
        first, second = second, first
        first, second = second, first
    return first


print(counted(words(3000))[:3], swapped(range(1000)), swapped(range(PLANTED)))
