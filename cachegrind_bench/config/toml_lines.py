"""In which line of a TOML text a key is, and what is wrong with a text that is not TOML.

tomllib returns values, but no places, and its messages are for somebody who knows TOML. Lines are looked for only in text that
tomllib has accepted; keys are decoded by tomllib itself.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field

from cachegrind_bench.errors import FileFormatError

# From the top table to a value: keys, and numbers for the elements of arrays.
Steps = tuple[str | int, ...]

_KEY = re.compile(r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'|[ \t]*\.[ \t]*)+""")
# The shortest end that no further quote follows: up to two quotes may be right before the closing three.
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?!")' + r"|'''.*?'''(?!')" + r'|"(?:[^"\\]|\\.)*"' + r"|'[^']*'", re.DOTALL
)
_PLAIN = re.compile(r"[^,\]}#\n]*")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")


def places(text: str) -> dict[Steps, int]:
    """Return the line of every table, key and element of this valid TOML text; of several lines, the first."""
    scanner = _Scanner(text.replace("\r\n", "\n"))
    scanner.document()
    return scanner.lines


@dataclass(slots=True)
class _Scanner:
    text: str
    position: int = 0
    counted: int = 0
    line: int = 1
    lines: dict[Steps, int] = field(default_factory=dict[Steps, int])
    lengths: dict[Steps, int] = field(default_factory=dict[Steps, int])  # of arrays of tables: several headers make one

    def document(self) -> None:
        table: Steps = ()
        self._skip(_SPACE)
        while self.position < len(self.text):
            if self.text.startswith("[", self.position):
                table = self._header()
            else:
                self._pair(table)
            self._skip(_SPACE)

    def _header(self) -> Steps:
        """Read `[a.b]` or `[[a.b]]` and return where the keys below it belong."""
        brackets = 2 if self.text.startswith("[[", self.position) else 1
        self.position += brackets
        keys = self._key()
        self.position = self.text.index("]", self.position) + brackets
        table: Steps = ()
        for depth, key in enumerate(keys, 1):
            table = (*table, key)
            self._note(table)
            if depth == len(keys) and brackets == 2:
                self.lengths[table] = self.lengths.get(table, 0) + 1
            if table in self.lengths:  # of an array of tables, the last one is meant
                table = (*table, self.lengths[table] - 1)
                self._note(table)
        return table

    def _pair(self, table: Steps) -> None:
        for key in self._key():
            table = (*table, key)
            self._note(table)
        self.position = self.text.index("=", self.position) + 1
        self._value(table)

    def _key(self) -> list[str]:
        self._skip(_SPACE)
        start = self.position
        self._skip(_KEY)
        decoded: object = tomllib.loads(f"{self.text[start : self.position]} = 0")
        keys: list[str] = []
        while isinstance(decoded, dict):
            ((key, decoded),) = decoded.items()  # pyright: ignore[reportUnknownVariableType]
            keys.append(str(key))  # pyright: ignore[reportUnknownArgumentType]
        return keys

    def _value(self, steps: Steps) -> None:
        self._skip(_SPACE)
        opening = self.text[self.position]
        if opening in "[{":
            self._elements(steps, "]" if opening == "[" else "}")
        else:
            self._skip(_STRING if opening in "\"'" else _PLAIN)

    def _elements(self, steps: Steps, closing: str) -> None:
        """Read the elements of an array, or the pairs of an inline table."""
        number = 0
        self.position += 1
        while True:
            self._skip(_SPACE)
            if self.text[self.position] == closing:
                self.position += 1
                return
            if self.text[self.position] == ",":
                self.position += 1
            elif closing == "]":
                self._note((*steps, number))
                self._value((*steps, number))
                number += 1
            else:
                self._pair(steps)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.position)
        self.position = match.end() if match else self.position

    def _note(self, steps: Steps) -> None:
        self.line += self.text.count("\n", self.counted, self.position)
        self.counted = self.position
        self.lines.setdefault(steps, self.line)


_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
# What to write in place of the mistakes that name a construct: what tomllib says, and how the line looks around the place (NUL).
_ADVICE = (
    (r"Cannot declare \((?:'tool', 'cg-bench', )?'benchmark',?\) twice", r"", "each benchmark begins with double brackets: [[{prefix}benchmark]]"),
    (r"Cannot (?:declare|overwrite|mutate)", r"", "the same key or table is written twice"),
    (r"Invalid initial|Unclosed inline", r"^\s*[^\[\s].*\0\s*(?:#.*)?$", "an inline table is in one line; or write [{prefix}benchmark.parameters]"),
    (r"Invalid value|Expected newline|Unclosed", r"[=\[,]\s*+[-+]?[\d._]*+\s*+\0[\w%,]", "a text needs quotes; numbers, true and false (in small letters) do not"),
    (r"'\\n'|Unterminated string|Expected \"'\"", r"", "a text must end in the line it begins in, in a quote"),
)  # fmt: skip


def syntax_error(said: str, name: str, text: str, prefix: tuple[str, ...]) -> FileFormatError:
    """Return the error for what tomllib said about this text, with its line and what to write there."""
    place, lines = _PLACE.search(said), text.replace("\r\n", "\n").split("\n")
    line = int(place[1]) if place and place[1] else text.rstrip().count("\n") + 1
    column = int(place[2]) if place and place[2] else len(lines[line - 1]) + 1
    if said.startswith('Expected "\'"'):  # said of the end of the file: no quote follows the one that opens the text
        line = text.count("\n", 0, text.rindex("'")) + 1
    around = f"{lines[line - 1][: column - 1]}\0{lines[line - 1][column - 1 :]}"
    fitting = (advice for pattern, looks, advice in _ADVICE if re.search(pattern, said) and re.search(looks, around))
    hint = next((advice.replace("{prefix}", "".join(f"{key}." for key in prefix)) for advice in fitting), None)
    return FileFormatError(f"not valid TOML: {_PLACE.sub('', said)}", path=name, line=line, hint=hint)
