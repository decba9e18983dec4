"""What a benchmark printed is shown on any stream."""

from __future__ import annotations

import io

import pytest

from cachegrind_bench.pytest_plugin.outer.report_relay import show, show_bytes


@pytest.mark.parametrize(("encoding", "shown"), [("utf-8", "é"), ("latin-1", "é"), ("ascii", "\\xe9")])
def test_a_text_is_escaped_where_the_stream_cannot_encode_it(encoding: str, shown: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    show(stream, "é")
    show(stream, "\u2713")
    stream.seek(0)
    assert stream.read() == (shown + "\u2713" if encoding == "utf-8" else shown + "\\u2713")


def test_bytes_are_shown_as_they_are_or_as_text_on_a_stream_that_has_only_that() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    show_bytes(stream, b"a\xff")
    assert stream.buffer.getvalue() == b"a\xff"
    text = io.StringIO()
    show_bytes(text, b"a\xff")
    assert text.getvalue() == "a\\xff"
