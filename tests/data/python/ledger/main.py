"""Does the books of a small shop a few times: `books` is a package of fifty functions, of all the usual kinds."""

from books.report import report

for day in range(6):
    report(day)
