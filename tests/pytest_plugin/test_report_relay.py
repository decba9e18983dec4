"""What a benchmark printed is shown on any stream."""

from __future__ import annotations

import io
from unittest.mock import Mock

import pytest

from cachegrind_bench.pytest_plugin.outer.report_relay import report, show, show_bytes


@pytest.mark.parametrize(("encoding", "shown"), [("utf-8", "é"), ("latin-1", "é"), ("ascii", "\\xe9")])
def test_a_text_is_escaped_where_the_stream_cannot_encode_it(encoding: str, shown: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    show(stream, "é")
    show(stream, "\u2713")
    stream.seek(0)
    assert stream.read() == (shown + "\u2713" if encoding == "utf-8" else shown + "\\u2713")


@pytest.mark.parametrize("answer", [None, AssertionError("Unknown type"), KeyError("longrepr")])
def test_what_a_test_wrote_in_place_of_its_report_fails_that_test_alone(answer: object) -> None:
    item = Mock(nodeid="a.py::test_a", location=("a.py", 0, "test_a"), keywords={})
    item.ihook.pytest_report_from_serializable.side_effect = [answer]
    report(item, {"reports": [{"when": "call", "outcome": "passed"}]})
    ((_, given),) = item.ihook.pytest_runtest_logreport.call_args_list
    assert given["report"].outcome == "failed"
    assert "wrote over a file" in given["report"].longreprtext


def test_a_report_that_a_hook_cannot_bear_fails_that_test_alone() -> None:
    item = Mock(nodeid="a.py::test_a", location=("a.py", 0, "test_a"), keywords={})
    item.ihook.pytest_report_from_serializable.side_effect = lambda **given: pytest.TestReport(
        given["data"]["nodeid"], given["data"]["location"], {}, "passed", None, "call"
    )
    item.ihook.pytest_runtest_logreport.side_effect = [AttributeError("gateway"), None]
    report(item, {"reports": [{"when": "call", "outcome": "passed", "nodeid": "::error::x"}]})
    first, second = (given["report"] for _, given in item.ihook.pytest_runtest_logreport.call_args_list)
    assert (first.nodeid, second.outcome) == ("a.py::test_a", "failed")
    assert "AttributeError('gateway')" in second.longreprtext


def test_bytes_are_shown_as_they_are_or_as_text_on_a_stream_that_has_only_that() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    show_bytes(stream, b"a\xff")
    assert stream.buffer.getvalue() == b"a\xff"
    text = io.StringIO()
    show_bytes(text, b"a\xff")
    assert text.getvalue() == "a\\xff"
