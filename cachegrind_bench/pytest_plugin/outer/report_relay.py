"""Hands the reports of a measured process to pytest, as if the test had run here, and explains it if a report is missing.

With -s, what was printed there is shown on pytest's own streams, whatever these can take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.harness.pytest_session.results import failure_text
from cachegrind_bench.valgrind.failures import spoken_of

if TYPE_CHECKING:
    from cachegrind_bench.startup.exchange import Report


def show(stream: Any, text: str) -> None:
    """Write a text; what the stream's encoding does not have is escaped, as pytest does it."""
    try:
        stream.write(text)
    except UnicodeEncodeError as error:
        stream.write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))


def show_bytes(stream: Any, data: bytes) -> None:
    """Write bytes as they are, or as text where a stream takes only that, as those of notebooks."""
    raw = getattr(stream, "buffer", None)
    if raw is None:
        show(stream, data.decode("utf-8", "backslashreplace"))
    else:
        raw.write(data)


def report(item: pytest.Item, found: Report, held_back: Sequence[str] = ()) -> None:
    """Report one benchmark to pytest: its own reports or, where it died, one that says so.

    A failure that speaks of a variable that was held back gets a hint. A call of pytest.exit ends this pytest as well.
    """
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for data in found["reports"]:
        one: pytest.TestReport = hook.pytest_report_from_serializable(config=item.config, data=data)
        if one.failed:
            _add_hint(one, held_back)
        hook.pytest_runtest_logreport(report=one)
    if text := failure_text(found):
        text = "\n".join(part for part in (text, found.get("text")) if part)
        keywords: dict[str, Any] = dict.fromkeys(item.keywords, 1)
        died = pytest.TestReport(item.nodeid, item.location, keywords, "failed", text, "call")
        _add_hint(died, held_back)
        hook.pytest_runtest_logreport(report=died)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    if why := found.get("exit"):
        item.session.shouldstop = why


def _add_hint(report: pytest.TestReport, held_back: Sequence[str]) -> None:
    names = spoken_of(held_back, "\n".join((report.longreprtext, *(text for _, text in report.sections))))
    if not names:
        return
    options = " ".join(f"--cg-bench-env={name}" for name in names)
    line = f"if it needs {' '.join(names)}, which the seal holds back, add {options}"
    add: Any = getattr(report.longrepr, "addsection", None)
    if add is not None:
        add("cg-bench", line)
    else:
        report.longrepr = f"{report.longreprtext}\ncg-bench: {line}"
