"""A JSON document without its long lists of numbers: they stay in the file, so that big files take little memory.

Knows JSON, and the three keys whose lists are left out; must not know what these lists mean.

A list is left out only where its text is nothing but digits, commas, brackets and blanks: what is odd is read as it is,
and refused with its path. In its place stands a number with a fraction, which no document may have, and whose fraction
is drawn by chance for each reading: no file can forge it. No mmap: a file that shrinks would end the process.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from typing import TYPE_CHECKING, NoReturn

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.model.json_reader import Hole

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

_CHUNK = 1 << 22
# In valid JSON a key follows a brace, a comma or a blank; a quote inside a string follows a backslash. So this finds keys
# only. One with more blanks is not found, and its list is read at once: the reader is correct without holes.
_KEY = re.compile(rb'[{,\s]"(?:functions|lines|paths)"\s{0,8}:\s{0,8}\[')
_LONGEST_KEY = len('{"functions":[') + 2 * 8
_PLAIN = b"0123456789,[] \t\r\n"
_BOM = b"\xef\xbb\xbf"
_HINT = "the file was cut off, or is no result file"
_LIMIT_HINT = "a higher limit of size allows more"


def read_document(stream: BinaryIO, name: str, most: int) -> object:
    """Parse the document in a stream, with a `Hole` for each long list of numbers; it may have `most` bytes beside them.

    FileFormatError, with `name`, for what is no JSON, and for floats and keys that stand twice.
    """
    scan = _Scan(stream, name, most)
    scan.run()
    return scan.parse()


def read_hole(stream: BinaryIO, name: str, path: str, hole: Hole, most: int) -> object:
    """Parse the list that was left out, which must not be longer than `most`; `path` is its place in the document."""
    if hole.length > most:
        raise FileFormatError(
            f"{path}: its {hole.length:,} bytes are over the limit of {most:,}", path=name, hint=_LIMIT_HINT
        )
    data = read_at(stream, name, hole.offset, hole.length)
    try:
        return loads(data.decode("ascii"), _no_float)
    except json.JSONDecodeError as error:
        message = f"{path}: not JSON: {error.msg} (byte {hole.offset + error.pos + 1})"
    except (MemoryError, RecursionError, ValueError) as error:
        message = f"{path}: {error}"
    raise FileFormatError(message, path=name, hint="the file was altered; measure again to make a new one")


def read_at(stream: BinaryIO, name: str, offset: int, length: int) -> bytes:
    """Read so many bytes from there. FileFormatError if they cannot be read, or are there no more."""
    try:
        stream.seek(offset)
        data = stream.read(length)
    except OSError as error:
        raise FileFormatError(f"cannot be read: {error.strerror}", path=name) from error
    if len(data) < length:
        raise FileFormatError("it became shorter while it was read", path=name, hint="wait until it is written")
    return data


def loads(text: str, fraction: Callable[[str], object]) -> object:
    """Parse strict JSON: no key twice in an object, no NaN, and a number with a fraction is what `fraction` makes of it."""
    document: object = json.loads(text, parse_float=fraction, parse_constant=_no_float, object_pairs_hook=_distinct)
    return document


def _no_float(text: str) -> NoReturn:
    raise ValueError(f"it holds the number {text[:40]}; a result file has whole numbers only")


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse an object that has a key twice: readers differ in which one they believe."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _value in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:80]!r} stands twice in one object")
            seen.add(key)
    return found


class _Scan:
    """One pass over a file, a window at a time: what is kept of it, and its holes."""

    def __init__(self, stream: BinaryIO, name: str, most: int) -> None:
        self._stream, self._name, self._most = stream, name, most
        try:
            self._size = stream.seek(0, os.SEEK_END)
        except OSError as error:
            raise FileFormatError(f"cannot be read: {error.strerror}", path=name) from error
        self._start, self._window = 0, b""
        self._kept: list[bytes] = []
        self._length = 0  # of what is kept, placeholders included
        self._holes: list[Hole] = []
        self._seams: list[tuple[int, int]] = [(0, 0)]  # from this place in what is kept: so much farther in the file
        self._nonce = str(int.from_bytes(os.urandom(16)))

    @property
    def _end(self) -> int:
        return self._start + len(self._window)

    def run(self) -> None:
        """Go through the file."""
        at = 0
        while at < self._size:
            self._show(at, _LONGEST_KEY)
            match = _KEY.search(self._window, at - self._start)
            if match is None:  # the end of the window may be the beginning of a key
                after = self._size if self._end == self._size else self._end - _LONGEST_KEY
                self._keep(at, after)
                at = after
                continue
            bracket = self._start + match.end() - 1
            self._keep(at, bracket)
            length = self._numbers(bracket)
            if length:
                self._leave_out(Hole(bracket, length))
            at = bracket + length

    def parse(self) -> object:
        """Parse what was kept."""
        data = b"".join(self._kept)
        self._kept.clear()
        if not data:
            raise FileFormatError("the file is empty", path=self._name, hint=_HINT)
        text = ""
        try:
            text = data.decode("utf-8-sig")
            return loads(text, self._filled)
        except json.JSONDecodeError as error:
            place = len(text[: error.pos].encode()) + len(_BOM) * data.startswith(_BOM)
            raise self._not_json(error.msg, place) from None
        except UnicodeDecodeError as error:
            place = error.start + len(data) - len(error.object)  # which lacks the mark of byte order
            message = f"it is not UTF-8 (byte {self._in_file(place) + 1})"
        except (MemoryError, RecursionError, ValueError) as error:
            message = str(error)
        raise FileFormatError(f"not a result file: {message}", path=self._name, hint=_HINT)

    def _show(self, at: int, least: int) -> None:
        """Move the window on where it shows no more than `least` bytes from this place."""
        if at < self._start or (self._end - at <= least and self._end < self._size):
            self._window = read_at(self._stream, self._name, at, min(_CHUNK, self._size - at))
            self._start = at

    def _keep(self, begin: int, end: int) -> None:
        self._put(self._window[begin - self._start : end - self._start])

    def _put(self, data: bytes) -> None:
        self._length += len(data)
        if self._length > self._most:
            raise FileFormatError(
                f"it has more than {self._most:,} bytes beside its profiles",
                path=self._name,
                hint=_LIMIT_HINT,
            )
        self._kept.append(data)

    def _leave_out(self, hole: Hole) -> None:
        self._put(f"{len(self._holes)}.{self._nonce} ".encode())  # the blank: a digit may follow, which is no JSON
        self._holes.append(hole)
        self._seams.append((self._length, hole.offset + hole.length - self._length))

    def _filled(self, number: str) -> Hole:
        """Return the hole that a placeholder stands for."""
        index, _, nonce = number.partition(".")
        if nonce != self._nonce:
            _no_float(number)
        return self._holes[int(index)]

    def _numbers(self, bracket: int) -> int:
        """Return the length of the list that opens there: up to the last closing bracket before a quote or brace.

        0 if it has anything but numbers and brackets, which must be as many closing as opening.
        """
        at, last, depth = bracket, bracket, 0
        while at < self._size:
            self._show(at, 0)
            begin = at - self._start
            # Quotes first: the next key has one, so that no byte is looked at again and again, whatever the file holds.
            quote = self._window.find(b'"', begin)
            stop = self._window.find(b"}", begin, quote if quote >= 0 else len(self._window))
            stop = quote if stop < 0 else stop
            piece = self._window[begin : stop if stop >= 0 else len(self._window)]
            if piece.translate(None, _PLAIN):
                return 0
            depth += piece.count(b"[") - piece.count(b"]")
            closing = piece.rfind(b"]")
            last = at + closing + 1 if closing >= 0 else last
            at += len(piece)
            if stop >= 0:
                return last - bracket if depth == 0 else 0
        return 0

    def _in_file(self, place: int) -> int:
        """Return the place in the file of a place in what was kept."""
        _begin, farther = self._seams[bisect_right(self._seams, (place, self._size)) - 1]
        return place + farther

    def _not_json(self, message: str, place: int) -> FileFormatError:
        byte, line, at = self._in_file(place), 1, 0
        while at < byte:
            piece = read_at(self._stream, self._name, at, min(_CHUNK, byte - at))
            line += piece.count(b"\n")
            at += len(piece)
        return FileFormatError(f"not JSON: {message} (byte {byte + 1})", path=self._name, line=line, hint=_HINT)
