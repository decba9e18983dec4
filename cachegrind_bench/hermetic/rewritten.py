"""What is written in files of Python environments of where the project lies, as it would be were it at its constant path.

Compiled modules hold their source's path, an editable install that of the project. The files stay as they are: the
program is handed a copy. Runs inside the launcher: only the standard library, and little of it.
"""

from __future__ import annotations

import os

from cachegrind_bench.hermetic.files import opened
from cachegrind_bench.hermetic.place import PROJECT, VENV, Translation

_LONGEST = 16 << 20
_PLACED = (PROJECT.encode() + b"/", VENV.encode() + b"/")
_TEXTS = (b".pth", b"/pyvenv.cfg", b"/direct_url.json")
_ENDS = b"/\"'\n\r\\ "  # what may follow a folder's path in a text
# Types of marshal's strings, with and without FLAG_REF: a length of one byte, or of four.
_SHORT, _LONG, _GROWN = frozenset(b"zZ\xfa\xda"), frozenset(b"sautA\xf3\xe1\xf5\xf4\xc1"), {0x7A: 0x61, 0x5A: 0x41}


def rewritten(path: bytes, places: Translation) -> bytes | None:
    """Return what is to be read at this path, as the program names it; None if that is what is there."""
    name = os.path.basename(path)
    ours = name.startswith(b"__editable__")
    compiled = name.endswith(b".pyc") and (ours or path.startswith(_PLACED))
    if not compiled and not path.endswith(_TEXTS) and not (ours and name.endswith(b".py")):
        return None
    try:
        with open(opened(places.real_bytes(path)), "rb", buffering=0) as file:
            data = file.read(_LONGEST + 1)
    except OSError:
        return None
    found = data
    for real, seen in places.pairs:
        found = (_in_marshal if compiled else _in_text)(found, os.fsencode(real), seen.encode())
    return None if found == data or len(data) > _LONGEST else found


def _in_text(data: bytes, real: bytes, seen: bytes) -> bytes:
    first, *rest = data.split(real)
    return first + b"".join((seen if not part or part[0] in _ENDS else real) + part for part in rest)


def _in_marshal(data: bytes, real: bytes, seen: bytes) -> bytes:
    """Replace where a string begins with the path, and mend its length."""
    found, done, at = bytearray(), 0, data.find(real)
    while at >= 0:
        short = data[at - 2] in _SHORT
        length = data[at - 1] if short else int.from_bytes(data[at - 4 : at], "little")
        end = at + length
        known = short or data[at - 5] in _LONG
        if known and len(real) <= length and end <= len(data) and data[at + len(real) : at + len(real) + 1] == b"/":
            text = seen + data[at + len(real) : end]
            kind = data[at - 2] if short else data[at - 5]
            start = at - (2 if short else 5)
            if short and len(text) < 256:
                head = bytes((kind, len(text)))
            else:
                kind = _GROWN[kind & 0x7F] | kind & 0x80 if short else kind
                head = bytes((kind,)) + len(text).to_bytes(4, "little")
            found += data[done:start] + head + text
            done = end
        at = data.find(real, max(at + 1, done))
    return bytes(found + data[done:])
