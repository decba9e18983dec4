"""Make the input files of the suite, the same bytes on every machine. The Makefile calls it.

    python generate.py FOLDER

Nothing here depends on the time or the machine, nor on a hash or an order that Python leaves open.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import sys
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SYLLABLES = (
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ka",
    "le",
    "mi",
    "no",
    "pu",
    "ra",
    "se",
    "ti",
    "vo",
    "wu",
    "sha",
    "gri",
    "ben",
)
PAGES = [f"tree/part{part:02}/page{page}.txt" for part in range(30) for page in range(8)]
CITIES = ("Aachen", "Bologna", "Cracow", "Dublin", "Espoo", "Faro", "Ghent", "Huelva")


@cache
def words() -> list[str]:
    """Return a vocabulary."""
    chance = random.Random(1)
    return ["".join(chance.choices(SYLLABLES, k=chance.randint(1, 4))) for _ in range(2000)]


def lines(count: int, seed: int = 2) -> list[str]:
    """Return lines of text, in which some words are far more frequent than others, as in any language."""
    chance = random.Random(seed)
    vocabulary = words()
    weights = list(accumulate(1 / rank for rank in range(1, len(vocabulary) + 1)))
    return [" ".join(chance.choices(vocabulary, cum_weights=weights, k=chance.randint(4, 14))) for _ in range(count)]


@cache
def text() -> bytes:
    """Return plain text of about 240 KB."""
    return "".join(f"{line}\n" for line in lines(4000)).encode()


@cache
def large() -> bytes:
    """Return about 700 KB that hardly repeat themselves: work for a compressor."""
    return "".join(f"{line}\n" for line in lines(12_000, seed=6)).encode()


@cache
def records() -> list[tuple[int, str, str, int, int]]:
    """Return orders: number, customer, city, quantity, cents."""
    chance = random.Random(5)
    vocabulary = words()
    return [
        (number, chance.choice(vocabulary), chance.choice(CITIES), chance.randint(1, 9), chance.randint(99, 99_999))
        for number in range(8000)
    ]


def table() -> bytes:
    """Return the orders as comma-separated values."""
    return "".join(f"{','.join(map(str, record))}\n" for record in records()).encode()


def statements() -> bytes:
    """Return an SQL script: tables, an index, and questions that need joins, groups, windows and sorting."""
    rows = records()[:1500]
    values = ",\n".join(f"({n}, '{name}', '{city}', {quantity}, {cents})" for n, name, city, quantity, cents in rows)
    # Words that are made here of letters: nothing to escape.
    return f"""\
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, city TEXT, quantity INTEGER, cents INTEGER);
INSERT INTO orders VALUES
{values};
CREATE INDEX by_customer ON orders (customer, id);
SELECT city, count(*), sum(quantity * cents) FROM orders GROUP BY city ORDER BY 3 DESC;
SELECT customer, max(cents) FROM orders GROUP BY customer HAVING count(*) > 3 ORDER BY 2 DESC, 1 LIMIT 5;
SELECT count(*) FROM orders one JOIN orders other ON one.customer = other.customer AND one.id < other.id;
SELECT id, sum(cents) OVER (PARTITION BY city ORDER BY id) total FROM orders ORDER BY total DESC LIMIT 3;
UPDATE orders SET cents = cents * 11 / 10 WHERE city IN ('Faro', 'Ghent');
DELETE FROM orders WHERE customer LIKE '%ka%';
SELECT count(*), sum(cents) FROM orders;
""".encode()  # noqa: S608 # see above


FILES: dict[str, Callable[[], bytes]] = {
    "text.txt": text,
    "large.txt": large,
    "large.gzip": lambda: gzip.compress(large() * 4, mtime=0),
    "large.bzip2": lambda: bz2.compress(large()),
    "large.xz": lambda: lzma.compress(large() * 2),
    "pi.bc": lambda: b"scale = 500\n4 * a(1)\n",
    "orders.csv": table,
    "orders.sql": statements,
    "pages": lambda: "".join(f"build/{page}\n" for page in PAGES).encode(),
    **dict.fromkeys(PAGES, lambda: text()[:5000]),
}


def main() -> None:
    """Make all files."""
    folder = Path(sys.argv[1])
    for name, make in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(make())


if __name__ == "__main__":
    main()
