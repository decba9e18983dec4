"""Calls that can be counted by hand: `main` makes them, tests/valgrind/test_python_profile.py knows how many."""

import functools


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def even(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)


def numbers(n):
    for number in range(n):
        yield number


def outer_numbers(n):
    yield from numbers(n)


class Pause:
    def __await__(self):
        yield "paused"


async def driven():
    await Pause()
    await Pause()
    return "done"


def drive(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        return stop.value


def counted(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@counted
def plain(x):
    return x + 1


def comprehensions():
    doubled = [2 * x for x in range(20)]
    squares = {x: x * x for x in doubled}
    return sum(x for x in squares)


def key(x):
    return -x


def add(a, b):
    return a + b


def shown(x):
    return str(x)


def raises(x):
    raise ValueError(x)


def cleans():
    try:
        raises(1)
    finally:
        tidies()


def tidies():
    return sum(range(10))


def catches():
    try:
        cleans()
    except ValueError:
        return True


class Thing:
    def __init__(self, value):
        self._value = value

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, new):
        self._value = new

    @staticmethod
    def static(x):
        return x

    @classmethod
    def made(cls):
        return cls(1)

    def method(self):
        def nested():
            return self.value

        return nested() + (lambda: self.static(2))()


double = lambda x: 2 * x  # noqa: E731


def main():
    fib(10)
    even(30)
    sum(numbers(20))
    sum(outer_numbers(10))
    drive(driven())
    for x in range(3):
        plain(x)
    comprehensions()
    sorted(range(50), key=key)
    functools.reduce(add, range(50))
    list(map(shown, range(30)))
    for _ in range(4):
        catches()
    thing = Thing(1)
    for _ in range(2):
        thing.value = thing.value + 1
    Thing.made()
    for _ in range(3):
        thing.method()
    double(1), double(2)


main()
