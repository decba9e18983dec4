"""What is wrong with a text that is no TOML, in the words of somebody who has just begun to write it."""

from __future__ import annotations

import re

from cachegrind_bench.errors import FileFormatError

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_TEXT = "a text needs quotes; true, false and numbers do not"
_UNCLOSED = "a bracket, brace or quote is not closed"
# What tomllib says of the mistakes people make most, how the line looks around the place (NUL), and what to write.
_ADVICE = (
    (r"", r"^\s*\0?(?://|--|;|/\*)|\s\0(?://|--|;|/\*)", "comments begin with #"),
    (r"", r"\0[“”„«‘’‚´`]", "the quotes around a text are straight ones: \" or '"),
    (r"Cannot declare \((?:'tool', 'cg-bench', )?'benchmark',?\) twice", r"", "each benchmark begins with double brackets: [[{prefix}benchmark]]"),
    (r"Cannot (?:declare|overwrite|mutate)", r"", "the same key or table is written twice"),
    (r"at the end of an? (?:array|table) declaration", r"", "a header ends with as many brackets as it begins with"),
    (r"Invalid initial character", r"\0[ \t]*\}", "no comma stands before the closing brace"),
    (r"Invalid initial character", r"^\s*[^\[\s].*\0\s*(?:#.*)?$", "an inline table stands in one line; or write [{prefix}benchmark.parameters]"),
    (r"Unclosed inline", r"\0\s*(?:#.*)?$", "an inline table stands in one line; or write [{prefix}benchmark.parameters]"),
    (r"Invalid value", r"=\0=", "one = is enough between a key and its value"),
    (r"Invalid value", r"=\s*\0\s*(?:#.*)?$", "the value is missing: it begins in the line of its key"),
    (r"Invalid value", r"\0(?:True|False|TRUE|FALSE)\b", "true and false are written small"),
    (r"Invalid value", r"\0(?:[Nn]one|[Nn]ull|NULL|nil)\b", "there is no empty value: leave the key out"),
    (r"Expected newline", r"=\s*[-+]?[\d._]+\s*\0[\w%,]", _TEXT),
    (r"Unclosed", r"[=\[,]\s*[-+]?[\d._]+\0[\w%]", _TEXT),
    (r"Unclosed", r"\0[\"'\w{]", "a comma may be missing between two values, or a bracket, brace or quote is not closed"),
    (r"Expected newline", r"\0\S", 'the value has ended before: write a list in [ ], and a quote in a text as \\"'),
    (r"(?:Illegal|Found invalid) character '\\n'|Unterminated string|Expected \"'\"", r"", "a text must end in the line it begins in, in a quote"),
    (r"Expected '=' after a key", r"\0:", "a key is followed by =, not by a colon"),
    (r"Expected '=' after a key", r"", "a key is followed by = and its value; a key with spaces or dots needs quotes"),
    (r"Invalid value", r"", _TEXT),
    (r"Unclosed array|end of document", r"", _UNCLOSED),
    (r"Unescaped '\\'", r"", "a backslash is written \\\\, or the text in single quotes"),
)  # fmt: skip


def syntax_error(told: str, name: str, text: str, prefix: tuple[str, ...]) -> FileFormatError:
    """Return the error for what tomllib has told about this text, with its line and what to write there."""
    place, lines = _PLACE.search(told), text.replace("\r\n", "\n").split("\n")
    line = int(place[1]) if place and place[1] else text.rstrip().count("\n") + 1
    column = int(place[2]) if place and place[2] else len(lines[line - 1]) + 1
    if told.startswith('Expected "\'"'):  # told for the end of the file: no quote follows the one that opens the text
        line = text.count("\n", 0, text.rindex("'")) + 1
    around = f"{lines[line - 1][: column - 1]}\0{lines[line - 1][column - 1 :]}"
    fitting = (advice for said, looks, advice in _ADVICE if re.search(said, told) and re.search(looks, around))
    hint = next((advice.replace("{prefix}", "".join(f"{key}." for key in prefix)) for advice in fitting), None)
    return FileFormatError(f"not valid TOML: {_PLACE.sub('', told)}", path=name, line=line, hint=hint)
