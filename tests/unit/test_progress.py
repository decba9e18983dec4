"""The display of one long run: lines in a log, one line on a terminal, and what the program writes meanwhile."""

from __future__ import annotations

import io

import pytest

from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.render.progress import Display


class Stream(io.TextIOWrapper):
    """Text that was written; a terminal, if it is said to be one."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def text(self) -> str:
        data = self.buffer
        assert isinstance(data, io.BytesIO)
        return data.getvalue().decode()


def test_a_log_gets_a_line_for_each_phase_below_what_the_program_wrote() -> None:
    stream = Stream(terminal=False)
    with Display(stream) as display:
        display.phase("one")
        display.write(b"half a line")
        display.phase("two")
        display.write(b"a whole one\n")
        display.phase("three")
    assert stream.text() == "cg-bench: one\nhalf a line\ncg-bench: two\na whole one\ncg-bench: three\n"


def test_a_terminal_gets_whole_lines_above_the_phase() -> None:
    stream = Stream(terminal=True)
    with Display(stream) as display:
        display.phase("measuring")
        display.write(b"first\nsec")
        assert "first\n" in stream.text()
        assert "sec" not in stream.text()
        display.write(b"ond\nlast")
    assert "\x1b[?25l" not in stream.text()  # who ends it by SIGQUIT would be left without a cursor
    assert "second\n" in stream.text()
    assert "last\n" in stream.text()
    assert stream.text().index("second\n") < stream.text().index("last\n")


def test_binary_output_is_left_out_on_a_terminal_and_then_an_error_quotes_the_last_lines() -> None:
    stream, error = Stream(terminal=True), MeasurementError("failed", hint="its last lines were:\n  | \\x00")

    def fail() -> None:
        with Display(stream) as display:
            display.phase("measuring")
            display.write(b"PNG\x00\x01\xff\n")
            display.write(b"\x00\n")
            raise error

    with pytest.raises(MeasurementError):
        fail()
    assert "PNG" not in stream.text()
    assert stream.text().count("binary") == 1
    assert not error.repeated


def test_nothing_is_shown_where_nothing_is_wanted_or_nobody_listens(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with Display(None) as display:
        display.phase("measuring")
        display.write(b"text")
    assert capfdbinary.readouterr() == (b"", b"")


def test_a_note_stays_on_a_terminal_and_is_a_line_of_a_log() -> None:
    for stream in (Stream(terminal=True), Stream(terminal=False)):
        with Display(stream) as display:
            display.phase("measuring")
            display.note("waiting for git status, 2 s")
            display.phase("again")
        assert "cg-bench: waiting for git status, 2 s\n" in stream.text()
