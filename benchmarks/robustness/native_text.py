"""Finds functions in the text of C, C++ and Rust, well enough to edit them: a compiler is the judge of what came out."""

from __future__ import annotations

import re
from dataclasses import dataclass

_QUIET = re.compile(
    r"""//[^\n]*|/\*.*?\*/|r(?P<raw>\#*)"(?:.*?)"(?P=raw)|"(?:\\.|[^"\\])*"|'(?:\\[^\n']{1,8}|\\'|[^'\\\n])'""",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_CONTAINER = re.compile(r"\b(?:namespace|extern|impl|mod|trait)\b[^()]*$|\bimpl\b[^;]*$")
_KEYWORDS = {"if", "for", "while", "switch", "catch", "match", "enum", "struct", "union", "class"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """Where a function is in the text: its head, what follows its opening brace, and its end."""

    name: str
    start: int
    body: int
    end: int


def masked(text: str, *, rust: bool) -> str:
    """Return the text with blanks for comments, strings and directives; all else is where it was."""
    blank = _QUIET.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return blank if rust else _DIRECTIVE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), blank)


def functions(text: str, *, rust: bool) -> list[Function]:
    """Find the functions at the top, in namespaces and in implementations."""
    plain = masked(text, rust=rust)
    found: list[Function] = []
    open_heads: list[Function | None] = []  # None: a container, inside of which functions are looked for
    start = depth = 0
    for place in re.finditer(r"[{};]", plain):
        at = place.start()
        if depth:  # in a function, or in anything else that is closed to us
            depth += {"{": 1, "}": -1}.get(place[0], 0)
            if not depth:
                head = open_heads.pop()
                if head and head.name:
                    found.append(Function(name=head.name, start=head.start, body=head.body, end=at + 1))
        elif place[0] == "{":
            head_text = plain[start:at]
            name = _name(head_text, rust=rust)
            if name is None and _CONTAINER.search(head_text):
                open_heads.append(None)
            else:
                first = start + len(head_text) - len(head_text.lstrip())
                open_heads.append(Function(name=name or "", start=first, body=at + 1, end=0))
                depth = 1
        elif place[0] == "}" and open_heads:
            open_heads.pop()
        start = at + 1
    return found


def _name(head: str, *, rust: bool) -> str | None:
    if rust:
        named = re.search(r"\bfn\s+(\w+)", head)
        return named[1] if named and not re.search(r"\bmacro_rules\b", head) else None
    if not head.rstrip().endswith((")", "const", "noexcept", "override")) or "=" in head.partition("(")[0]:
        return None
    named = re.search(r"(~?\w+)\s*\(", head)
    return named[1] if named and named[1] not in _KEYWORDS else None
