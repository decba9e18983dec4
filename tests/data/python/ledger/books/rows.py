"""Rows, read and put in order."""

from books.money import Money, discounted, taxed
from books.text import fields, lines, number


class Row:
    def __init__(self, name, cents, pieces):
        self.name = name
        self.cents = cents
        self.pieces = pieces

    @property
    def total(self):
        return discounted(taxed(self.cents) * self.pieces, self.percent())

    def percent(self):
        return 5 if self.pieces > 5 else 0

    def money(self):
        return Money(self.total)


def by_name(row):
    return row.name


def by_total(row):
    return row.total, by_name(row)


def parsed(line):
    name, cents, pieces = fields(line)
    return Row(name, number(cents), number(pieces))


def rows(text):
    for line in lines(text):
        yield parsed(line)


def in_order(found):
    return sorted(found, key=by_total)


def dear(found):
    return [row for row in found if is_dear(row)]


def is_dear(row):
    return row.cents > 700
