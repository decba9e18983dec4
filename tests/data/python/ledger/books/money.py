"""Amounts."""


def logged(function):
    def wrapper(*values):
        count(function.__name__)
        return function(*values)

    return wrapper


COUNTS = {}


def count(name):
    COUNTS[name] = COUNTS.get(name, 0) + 1


class Money:
    def __init__(self, cents):
        self.cents = cents

    def __add__(self, other):
        return Money(self.cents + other.cents)

    def __lt__(self, other):
        return self.cents < other.cents

    @property
    def whole(self):
        return self.cents // 100

    @classmethod
    def zero(cls):
        return cls(0)

    @staticmethod
    def sign(cents):
        return "-" if cents < 0 else ""

    def shown(self):
        return f"{self.sign(self.cents)}{self.whole}.{abs(self.cents) % 100:02}"


@logged
def taxed(cents):
    return cents + tax(cents)


def tax(cents):
    return rounded(cents * 19, 100)


def rounded(numerator, denominator):
    return (2 * numerator + denominator) // (2 * denominator)


@logged
def discounted(cents, percent):
    return rounded(cents * (100 - percent), 100)


def added(amounts):
    total = Money.zero()
    for amount in amounts:
        total = total + amount
    return total
