"""Reader of Cachegrind's out files, of every version and event set.

Knows the grammar of the file (Valgrind manual, "Cachegrind file format"); must not know how the file came to be, nor
what the events mean. Regular text is read in bulk; whatever looks odd is read again line by line, exactly.

    desc: text                    any number, or none
    cmd: argv joined by spaces    unquoted: a line break in an argument is written as it is
    events: Ir I1mr ...
    fl=file                       then functions; several times
    fn=name                       then lines; several times
    42 100 3 ...                  source line, counts; missing trailing counts are zero
    summary: 1000 30 ...          the sum of all lines, and the end
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from cachegrind_bench.errors import FileFormatError
from cachegrind_bench.valgrind.out_format import (
    CUT_HINT,
    DAMAGED_HINT,
    CostTable,
    OutFile,
    decode,
    event_names,
    line_number,
    reading,
    shown,
)

# Files of half a gigabyte exist: read in pieces. Larger than the longest command line Linux allows (6 MiB), so that
# the header always is in the first piece.
_CHUNK = 1 << 23

_REGULAR = b"0123456789 \n"
_FORGED_HINT = (
    "an argument with a line break reads like lines of the file: it can be measured in the command itself, "
    "not in a program that the command starts"
)


def parse_cachegrind(path: Path, *, command: Sequence[bytes] | None = None, lines: bool = False) -> OutFile:
    """Read an out file; with `lines` keep the counts of each source line too.

    `command` is the exact argv of the measured program. With it, arguments that contain line breaks are skipped;
    without it they are an error, as is everything else that could lead to wrong counts.
    """
    with reading(path) as stream:
        return read_cachegrind(stream, shown(path), command, lines=lines)


def read_cachegrind(
    stream: BinaryIO, path: str, command: Sequence[bytes] | None = None, *, lines: bool = False
) -> OutFile:
    """Read an out file that is open; messages have this path."""
    head = stream.read(_CHUNK)
    if not head:
        raise FileFormatError("the file is empty", path=path, hint=CUT_HINT)
    header = _Header(head, path, command)
    body = _Body(path, header.events, header.line, lines=lines)
    blocks = _blocks(head[header.end :], stream)
    body.read_lines(next(blocks))
    for block in blocks:
        body.read_function(block)
    return body.finish(header)


def _blocks(text: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """Yield what is before the first `fn=` line, then what follows each of them, up to the next."""
    while more := stream.read(_CHUNK):
        complete, marker, text = (text + more).rpartition(b"\nfn=")
        if marker:
            yield from complete.split(b"\nfn=")
    yield from text.split(b"\nfn=")


class _Header:
    """The lines down to `events:`; `end` is the offset of the line break that ends them."""

    def __init__(self, data: bytes, path: str, command: Sequence[bytes] | None) -> None:
        self._data = data
        self._path = path
        self.end = -1
        self.line = 0
        text = self._next()
        while not text.startswith(b"cmd:"):
            if text.strip() and not text.startswith((b"#", b"desc:")):
                raise self._error("not a Cachegrind out file: a `desc:` or `cmd:` line belongs here")
            text = self._next()
        self.command_line = decode(self._command(text, command))
        text = self._next()
        if not text.startswith(b"events:"):
            raise self._error("the `events:` line belongs here, right after the command", hint=_FORGED_HINT)
        self.events = event_names(text[7:], path=path, line=self.line)

    def _next(self) -> bytes:
        start = self.end + 1
        self.line += 1
        self.end = self._data.find(b"\n", start)
        if self.end < 0:
            raise self._error("the file ends within its header", hint=CUT_HINT)
        return self._data[start : self.end]

    def _command(self, text: bytes, command: Sequence[bytes] | None) -> bytes:
        """Return the command line; skip all of it when it is the expected one, line breaks and all."""
        start = self.end - len(text) + len(b"cmd:")
        start += self._data.startswith(b" ", start)
        if command:
            joined = b" ".join(command)
            end = self._data.find(joined + b"\nevents:", start)
            if end >= 0 and _is_command(self._data[start : end + len(joined)], command):
                self.end = end + len(joined)
                self.line += joined.count(b"\n")
        return self._data[start : self.end]

    def _error(self, message: str, *, hint: str | None = None) -> FileFormatError:
        return FileFormatError(message, path=self._path, line=self.line, hint=hint)


def _is_command(text: bytes, command: Sequence[bytes]) -> bool:
    """Return whether the command line in a file is that of `command`.

    Valgrind joins the arguments by spaces. The program is in it as it was given, except for a script that was
    found on PATH, which has its full path (seen alike in 3.16, 3.19 and 3.24).
    """
    joined = b" ".join(command)
    by_path = b"/" not in command[0] and text.endswith(b"/" + joined) and b"\n" not in text.removesuffix(joined)
    return by_path or text == joined


class _Body:
    """The lines after `events:`. `line` is the number of the line the next block starts on."""

    def __init__(self, path: str, events: tuple[str, ...], line: int, *, lines: bool) -> None:
        self._path = path
        self._events = events
        self._line = line
        self._keep_lines = lines
        self._table = CostTable(path, events, lines=lines)
        self._file: str | None = None
        self._function: str | None = None
        self._summary: tuple[int, ...] | None = None
        self._summary_line = 0
        self._summary_whole = False  # a line break ends it

    def read_function(self, block: bytes) -> None:
        """Read one function: its name, its lines, and the `fl=` line that may follow; in bulk if all is regular."""
        name, _, rest = block.partition(b"\n")
        lines, moved, next_file = rest.partition(b"\nfl=")
        # With digits, spaces and line breaks only, every token is a number. A last line that is cut off, a comment,
        # the summary, a minus sign: all that is for the other reader.
        irregular = lines.translate(None, _REGULAR) or b"\n" in next_file or self._summary is not None
        counts = None if irregular else _add_columns(lines, len(self._events))
        if counts is None or self._file is None:
            self.read_lines(b"fn=" + block)
            return
        if self._keep_lines:
            for number, *each in map(bytes.split, lines.split(b"\n")):
                self._table.add(self._file, decode(name), tuple(map(int, each)), line_number(number) or 0)
        else:
            self._table.add(self._file, decode(name), counts)
        if moved:
            self._file = decode(next_file)
        self._line += block.count(b"\n") + 1

    def read_lines(self, text: bytes) -> None:
        """Read any lines, one by one, exactly."""
        lines = text.split(b"\n")
        for number, line in enumerate(lines, self._line):
            if not line.strip() or line.startswith(b"#"):
                continue
            if self._summary is not None:
                raise self._error("there is something after the `summary:` line", number)
            if line.startswith(b"fl="):
                self._file, self._function = decode(line[3:]), None
            elif line.startswith(b"fn="):
                self._function = decode(line[3:])
            elif line.startswith(b"summary:"):
                self._summary = self._table.read(line[8:].split(), number)
                self._summary_line = number
                self._summary_whole = number - self._line < len(lines) - 1
            elif line.startswith((b"events:", b"cmd:", b"desc:")):
                raise self._error("a second header", number, hint=_FORGED_HINT)
            else:
                self._read_counts(line, number)
        self._line += len(lines)

    def finish(self, header: _Header) -> OutFile:
        """Check the whole and hand it over."""
        if self._summary is None:
            raise self._error("the file ends without a `summary:` line", self._line - 1, hint=CUT_HINT)
        if not self._summary_whole:
            raise self._error("the file ends within its `summary:` line", self._summary_line, hint=CUT_HINT)
        profile = self._table.profile(self._summary, line=self._summary_line, label="summary:")
        if not any(self._summary):
            hint = "if Valgrind ran with --instr-at-start=no, the program never started the instrumentation"
            raise self._error("nothing was counted: every count of the summary is zero", self._summary_line, hint=hint)
        return OutFile(command_line=header.command_line, events=self._events, summary=self._summary, profile=profile)

    def _read_counts(self, line: bytes, number: int) -> None:
        tokens = line.split()
        if not tokens[0].removeprefix(b"-").isdigit():
            message = f"neither a name nor counts: {decode(line[:80])!r}"
            raise self._error(message, number, hint=DAMAGED_HINT)
        if self._file is None or self._function is None:
            raise self._error("counts without `fl=` and `fn=` lines before them", number)
        counts = self._table.read(tokens[1:], number)
        self._table.add(self._file, self._function, counts, line_number(tokens[0]) or 0)

    def _error(self, message: str, line: int, *, hint: str | None = None) -> FileFormatError:
        return FileFormatError(message, path=self._path, line=line, hint=hint)


def _add_columns(lines: bytes, width: int) -> tuple[int, ...] | None:
    """Add up lines of numbers that are all of one length; None when they are not, or have too many counts."""
    try:
        columns = zip(*map(bytes.split, lines.split(b"\n")), strict=True)
        next(columns)  # the source lines
        counts = tuple([sum(map(int, column)) for column in columns])
    except (StopIteration, ValueError):
        return None
    return counts if len(counts) <= width else None
