"""Damaged data: a sample with a few edits, drawn by Hypothesis, which then finds the fewest that still do harm."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

_PIECES = [
    b"", b" ", b"\n", b"\n\n", b"\t", b"\r", b"\0", b"\xff", b"\x0b", b"\xc2\xa0", b"0", b"1", b"-1", b"+1", b"*", b"1_0", b"\xc2\xb2",
    b"9" * 19, b"9" * 5000, b"1e999", b"0x10000", b" 1", b" 7", b"# ", b"null", b"true", b"[]", b"{}", b'""', b'"', b",", b":", b"[[", b"]]", b"=",
    b'{"a":' * 40, b"[" * 2000, b"\\ud800", b"\\u0000", b"NaN", b"-0", b"1.5", b"</script><script>alert(1)</script>", b"'", b"'2'",
]  # fmt: skip
_NUMBER = re.compile(rb"-?[0-9]+")

Edit = tuple[int, int, int, bytes]
# What is done, where, how much, and with what.
_EDITS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.integers(0, (1 << 32) - 1),
        st.integers(0, 40),
        st.one_of(st.sampled_from(_PIECES), st.binary(max_size=6)),
    ),
    min_size=1,
    max_size=4,
)


def damaged(samples: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Draw one of these samples with one to four edits."""
    return st.builds(edited, st.sampled_from(samples), _EDITS)


def edited(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Apply the edits in their order."""
    for kind, where, much, piece in edits:
        place = where % (len(data) + 1)
        if kind <= 2:  # insert, overwrite, cut out
            length = (0, len(piece), 1 + much)[kind]
            data = data[:place] + (piece if kind < 2 else b"") + data[place + length :]
        elif kind == 3:  # cut off
            data = data[:place] if much % 4 else data[place:]
        elif kind == 4:  # one bit
            data = data[:place] + bytes(byte ^ 1 << much % 8 for byte in data[place : place + 1]) + data[place + 1 :]
        elif kind <= 7:  # a line is gone, there twice, or elsewhere
            data = _moved(data, kind, where, much)
        else:  # another number, by a piece or a little
            found = [*_NUMBER.finditer(data)]
            if found:
                number = found[where % len(found)]
                new = piece if kind == 8 else str(int(number[0][:18]) + much - 20).encode()
                data = data[: number.start()] + new + data[number.end() :]
    return data


def _moved(data: bytes, kind: int, where: int, much: int) -> bytes:
    lines = data.split(b"\n")
    place = where % len(lines)
    line = lines[place]
    if kind != 6:
        del lines[place]
    if kind != 5:
        lines.insert((place + much) % (len(lines) + 1), line)
    return b"\n".join(lines)
