"""The display of one long run: lines in a log, one line on a terminal, and what the program writes meanwhile."""

from __future__ import annotations

import io

from cachegrind_bench.render.progress import Live, Plain, progress


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
    with progress(stream, quiet=False) as display:
        assert isinstance(display, Plain)
        display.phase("one")
        display.write(b"half a line")
        display.phase("two")
        display.write(b"a whole one\n")
        display.phase("three")
    assert stream.text() == "cg-bench: one\nhalf a line\ncg-bench: two\na whole one\ncg-bench: three\n"


def test_a_terminal_gets_whole_lines_above_the_phase() -> None:
    stream = Stream(terminal=True)
    with progress(stream, quiet=False) as display:
        assert isinstance(display, Live)
        display.phase("measuring")
        display.write(b"first\nsec")
        assert "first\n" in stream.text()
        assert "sec" not in stream.text()
        display.write(b"ond\nlast")
    assert "second\n" in stream.text()
    assert "last\n" in stream.text()
    assert stream.text().index("second\n") < stream.text().index("last\n")


def test_nothing_is_shown_where_nothing_is_wanted_or_nobody_listens() -> None:
    stream = Stream(terminal=True)
    for display in (progress(stream, quiet=True), progress(None, quiet=False)):
        assert not isinstance(display, Live)
        with display:
            display.phase("measuring")
            display.write(b"text")
    assert stream.text() == ""
