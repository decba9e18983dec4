"""JSON to typed values by msgspec; whatever is not exactly that is refused with the file and the place in it.

Knows JSON and msgspec's messages; must not know what a file is about.
"""

from __future__ import annotations

import re
from threading import Lock
from typing import NoReturn, TypeVar

import msgspec

from cachegrind_bench.errors import FileFormatError

Value = TypeVar("Value")

# What msgspec knows of a struct it gathers at the first use, in Python code between which threads change: another thread that
# decodes the same struct meanwhile crashes (seen with msgspec 0.22 and CPython 3.11).
_ONE_AT_A_TIME = Lock()

ALTERED = "the file was altered or cut off; measure again to make a new one"
_NOT_JSON = "the file was cut off, or is not a result file"
_LONGEST = 300
_BYTE = re.compile(r"^(?:JSON is malformed: )?(.*?)(?: \(byte ([0-9]+)\))?$", re.DOTALL)
_PLACE = " - at `$"
_MARK, _BLANKS = b"\xef\xbb\xbf", b"   "  # that some editors put before UTF-8, and as many bytes that JSON passes over
_MISSING = re.compile(r"Object missing required field `(.*)`")
_TYPES = re.compile(r"`([a-z| ]+)`")
_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number with a fraction",
    "int": "a whole number",
    "object": "an object",
    "str": "a string",
}


class Head(msgspec.Struct):
    """What all documents of ours have."""

    schema: str


def parse(data: bytes | msgspec.Raw, kind: type[Value], name: str, *, path: str = "", hint: str = ALTERED) -> Value:
    """Return the value of this type. FileFormatError, which begins with `name` and the place below `path`, on anything else."""
    try:
        with _ONE_AT_A_TIME:
            return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(_PLACE)
        said = _MISSING.sub(r"'\1' is missing", said)
        said = _TYPES.sub(lambda found: " or ".join(_WORDS.get(word, word) for word in found[1].split(" | ")), said)
        refuse(name, (path + place.rstrip("`")).lstrip("."), said[:1].lower() + said[1:], hint=hint)
    except msgspec.DecodeError as error:
        found = _BYTE.match(str(error))
        said, byte = (found[1], found[2]) if found else (str(error), None)
        text = bytes(data)
        at = len(text) if byte is None else int(byte)
        place = f"{path}: " if path else ""
        message = f"{place}not JSON: {said[:1].lower() + said[1:]} (byte {at + 1})"
        line = None if path else text.count(b"\n", 0, at) + 1
        raise FileFormatError(message, path=name, line=line, hint=_NOT_JSON) from None
    except UnicodeDecodeError as error:
        raise FileFormatError(f"a text is not UTF-8: {error.reason}", path=name, hint=_NOT_JSON) from None
    except (MemoryError, RecursionError) as error:
        refuse(name, path, str(error) or "too little memory", hint=hint)


def without_mark(data: bytes) -> bytes:
    """Return JSON without the byte order mark that some editors put before it; all else stays at its place."""
    return _BLANKS + data[len(_MARK) :] if data.startswith(_MARK) else data


def refuse(name: str, path: str, message: str, *, hint: str = ALTERED) -> NoReturn:
    """Raise FileFormatError about the value at this path."""
    raise FileFormatError(f"{_cut(path) or 'the document'}: {_cut(message)}", path=name, hint=hint)


def _cut(text: str) -> str:
    """Return text of a length that one can read: values of a hostile file may have megabytes."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
