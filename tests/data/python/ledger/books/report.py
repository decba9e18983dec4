"""The report of a day, which calls all the others."""

from books.money import added
from books.rows import dear, in_order, rows
from books.text import checksum, pad, rule, title
from books.tree import grown, walked


def made_up(day):
    return "# day\n" + "\n".join(entry(day, index) for index in range(30))


def entry(day, index):
    return f"item{index % 7} ; {(index * 37 + day * 11) % 900 + 100} ; {index % 9 + 1}"


def head(day):
    return [title(f"day {day}"), rule(20)]


def body(found):
    return [line(row) for row in found]


def line(row):
    return pad(title(row.name), 12) + row.money().shown()


def foot(found):
    amounts = [row.money() for row in found]
    return [rule(20), max(amounts).shown(), added(amounts).shown()]


def report(day):
    found = in_order(rows(made_up(day)))
    walked(grown(3))
    return checksum("\n".join([*head(day), *body(dear(found)), *foot(found)]))
