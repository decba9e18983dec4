"""A small language: lexer with a regular expression, recursive-descent parser, and an evaluator of closures."""

from __future__ import annotations

import re
from collections.abc import Callable

TOKEN = re.compile(r"\s*(?:(\d+)|([a-z]+)|(.))")
SOURCE = "(3 + x * 4) % 1009 * (y - 7) + (x + y) * (x - y) % 97 - 2 * (8 - (x * x + 1) % 31)"
RUNS = 700
Value = Callable[[dict[str, int]], int]


class Parser:
    """Turns text into one closure."""

    def __init__(self, text: str) -> None:
        """Cut the text into tokens; an empty one ends them."""
        self.tokens: list[str] = [number or name or sign for number, name, sign in TOKEN.findall(text)] + [""]
        self.place = 0

    def take(self) -> str:
        """Return the next token and go on."""
        self.place += 1
        return self.tokens[self.place - 1]

    def chain(self, signs: str, operand: Callable[[], Value]) -> Value:
        """Parse operands joined by these signs, from left to right."""
        left = operand()
        while self.tokens[self.place] and self.tokens[self.place] in signs:
            left = combined(self.take(), left, operand())
        return left

    def expression(self) -> Value:
        """Parse sums."""
        return self.chain("+-", self.term)

    def term(self) -> Value:
        """Parse products."""
        return self.chain("*%", self.atom)

    def atom(self) -> Value:
        """Parse a number, a name or something in parentheses."""
        word = self.take()
        if word == "(":
            inner = self.expression()
            assert self.take() == ")"
            return inner
        if word.isdigit():
            number = int(word)
            return lambda _: number
        return lambda names: names[word]


def combined(sign: str, left: Value, right: Value) -> Value:
    """Return the closure of a binary operation."""
    if sign == "+":
        return lambda names: left(names) + right(names)
    if sign == "-":
        return lambda names: left(names) - right(names)
    if sign == "*":
        return lambda names: left(names) * right(names)
    return lambda names: left(names) % right(names)


def main() -> None:
    """Print the sum over many values."""
    total = 0
    for number in range(RUNS):
        names = {"x": number % 50, "y": number * 3}
        if number % 8 == 0:
            value = Parser(SOURCE).expression()
            total += value(names)
        else:
            total += Parser("x * (y + 1)").expression()(names)
    print(total)


if __name__ == "__main__":
    main()
