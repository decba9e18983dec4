"""What a suite shows: plain lines in a log, live ones on a terminal, and a table in the end."""

from __future__ import annotations

import io
import re
import threading
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.model.result import Run, SealPart, SealState, Since
from cachegrind_bench.render import table
from cachegrind_bench.render.progress import SuiteDisplay
from cachegrind_bench.render.report import suite
from tests.unit.samples import HOSTILE, VECTOR, benchmark, failed_benchmark, result, times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cachegrind_bench.model.result import Benchmark

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")  # all but the end of a line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def log(
    total: int = 3, expected_ms: Mapping[str, int] | None = None, jobs: int = 1
) -> tuple[SuiteDisplay, io.StringIO]:
    stream = io.StringIO()
    return SuiteDisplay(stream, total, expected_ms or {}, jobs), stream


def without_times(text: str) -> str:
    return re.sub(r"\b[0-9.]+ (ms|s)\b", "TIME", text)


# The log


def test_a_log_has_one_line_for_each_benchmark_that_has_ended() -> None:
    display, stream = log(total=10)
    with display:
        display.setting_up("make -s")
        display.started("sieve")
        display.phase("sieve", "warm-up")
        assert stream.getvalue() == "cg-bench: setup: make -s\n"
        display.finished(benchmark(), b"not told\n")
    assert without_times(stream.getvalue()) == (
        "cg-bench: setup: make -s\ncg-bench: [ 1/10] sieve  score 3,418  (TIME)\n"
    )


def test_one_that_failed_is_reported_with_why_and_what_it_said() -> None:
    display, stream = log()
    display.started("sieve")
    display.finished(failed_benchmark(error="it failed\nlook here"), b"oh \xff\nno\n")
    assert without_times(stream.getvalue()) == (
        "cg-bench: [1/3] sieve  FAILED  (TIME)\n  it failed\n  | oh \\xff\n  | no\n  look here\n"
    )


def test_what_it_said_is_not_told_twice_and_advice_only_once() -> None:
    display, stream = log()
    error = "it failed\nits last lines were:\n  | no\nadd --env NAME: A B"
    display.finished(failed_benchmark(id="a", error=error), b"oh\nno\n")
    display.finished(failed_benchmark(id="b", error=error), b"")
    assert without_times(stream.getvalue()) == (
        "cg-bench: [1/3] a  FAILED  (TIME)\n  it failed\n  | oh\n  | no\n  add --env NAME: A B\n"
        "cg-bench: [2/3] b  FAILED  (TIME)\n  it failed\n  its last lines were:\n    | no\n"
    )


def test_one_that_is_used_again_says_of_when_it_is_and_remarks_stand_behind_the_time() -> None:
    display, stream = log()
    for name in ("old", "new"):
        display.started(name)
    display.reused(benchmark(id="old"), "2026-01-31T12:00:00Z")
    display.remark("new", "measured, since a.c changed")
    display.remark("new", "not kept")
    display.finished(benchmark(id="new"), b"")
    assert without_times(stream.getvalue()) == (
        "cg-bench: [1/3] old  score 3,418  (re-used, of 2026-01-31T12:00:00Z)\n"
        "cg-bench: [2/3] new  score 3,418  (TIME; measured, since a.c changed; not kept)\n"
    )
    assert display.reused_ids == {"old"}


def tell_all(display: SuiteDisplay) -> None:
    """Bring hostile text to every place that takes text."""
    with display:
        display.setting_up(HOSTILE)
        for name in (HOSTILE, f"{HOSTILE}2", f"{HOSTILE}3"):
            display.started(name)
            display.phase(name, HOSTILE)
        display.remark(HOSTILE, HOSTILE)
        display.finished(benchmark(id=HOSTILE), b"")
        said = HOSTILE.encode() + b"\x00\x07\r\x1b]0;title\x07\xff\n"
        display.finished(failed_benchmark(id=f"{HOSTILE}2", error=HOSTILE), said)
        display.reused(benchmark(id=f"{HOSTILE}3"), HOSTILE)


def test_a_log_has_no_control_characters_whatever_programs_and_names_contain() -> None:
    display, stream = log()
    tell_all(display)
    assert not CONTROL.search(stream.getvalue())
    assert "\\x1b[31mred" in stream.getvalue()


def test_long_ids_are_cut_in_the_middle() -> None:
    display, stream = log()
    display.finished(benchmark(id="x" * 500 + "end"), b"")
    assert "end  score" in stream.getvalue()
    assert max(map(len, stream.getvalue().splitlines())) < 110


def test_lines_of_several_threads_do_not_mix() -> None:
    display, stream = log(total=400)

    def work(name: str) -> None:
        for number in range(100):
            display.started(f"{name}{number}")
            display.finished(failed_benchmark(id=f"{name}{number}", error="why"), b"said\n")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3 * 400
    assert set(lines[1::3]) == {"  why"}
    assert set(lines[2::3]) == {"  | said"}
    assert [line.split("]")[0] for line in lines[::3]] == [f"cg-bench: [{n:>3}/400" for n in range(1, 401)]


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError(text)


@pytest.mark.parametrize("stream", [None, Broken()])
def test_where_nobody_listens_nothing_is_reported_and_times_are_kept_all_the_same(stream: io.StringIO | None) -> None:
    display = SuiteDisplay(stream, 3, {}, 1)
    tell_all(display)
    assert display.wall_ms.keys() == {HOSTILE}
    assert stream is None or stream.getvalue() == ""


# The terminal


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")


# What rich itself uses to draw: colours, and moving over lines of its own.
OURS = re.compile(r"\x1b\[(\?25[lh]|[0-9;]*m|2K|1A)|\r")


def test_a_terminal_shows_what_runs_and_keeps_what_ended() -> None:
    stream = Terminal()
    with SuiteDisplay(stream, 2, {"sieve": 60_000, "other": 60_000}, 2) as display:
        display.started("sieve")
        display.phase("sieve", "measuring under Cachegrind")
        assert display._live is not None
        display._live.refresh()  # it draws by a clock
        shown = OURS.sub("", stream.getvalue())
        assert "sieve  measuring under Cachegrind" in shown
        assert re.search(r"0 of 2 done, about (1 min 00|59\.[0-9]|60\.0) s left", shown)
        display.finished(benchmark(), b"")
        display.phase("sieve", "too late")
    shown = OURS.sub("", stream.getvalue())
    assert "cg-bench: [1/2] sieve  score 3,418" in shown
    assert "too late" not in shown


def test_names_cannot_steer_a_terminal_nor_write_markup() -> None:
    stream = Terminal()
    display = SuiteDisplay(stream, 3, {}, 1)
    tell_all(display)
    rest = OURS.sub("", stream.getvalue())
    assert not CONTROL.search(rest)
    assert "\\x1b[31mred" in rest
    assert "\x1b[31m" not in stream.getvalue()


# The estimate


def test_without_former_times_nothing_is_estimated_until_the_first_has_ended() -> None:
    display, _ = log(total=3)
    assert display.remaining_ms() is None
    display.started("a")
    assert display.remaining_ms() is None
    display.wall_ms["a"] = 1000
    display.finished(benchmark(id="a"), b"")
    assert display.remaining_ms() is not None


def test_the_rest_is_spread_over_the_jobs_but_takes_as_long_as_the_longest() -> None:
    display, _ = log(total=4, expected_ms={"a": 8000, "b": 8000, "c": 8000, "d": 8000}, jobs=2)
    assert display.remaining_ms() == 16_000
    display.started("a")
    left = display.remaining_ms()
    assert left is not None
    assert 15_000 < left <= 16_000


def test_what_is_not_known_is_taken_for_usual() -> None:
    display, _ = log(total=3, expected_ms={"a": 1000}, jobs=1)
    assert display.remaining_ms() == 3000


@pytest.mark.parametrize("end", ["failed", "reused"])
def test_what_has_failed_or_was_used_again_is_not_waited_for(end: str) -> None:
    display, _ = log(total=3, expected_ms={"a": 5000, "b": 5000, "c": 5000}, jobs=1)
    display.started("a")
    if end == "failed":
        display.finished(failed_benchmark(id="a"), b"")
    else:
        display.reused(benchmark(id="a"), "")
    assert display.remaining_ms() == 10_000
    display.started("b")
    display.finished(benchmark(id="b"), b"")
    display.started("c")
    display.finished(failed_benchmark(id="c"), b"")
    assert display.remaining_ms() == 0


# The report


def as_table(*benchmarks: Benchmark, **options: Any) -> str:
    return table.render(suite(result(*benchmarks), **options))


def test_the_report_has_one_row_for_each_benchmark() -> None:
    noisy = benchmark(id="noisy", runs=(Run(layout=0, counts=VECTOR), Run(layout=0, counts=times(VECTOR, 2))))
    assert as_table(benchmark(), noisy, failed_benchmark(id="odd")) == (
        "3 benchmarks, 1 failed\n"
        "\n"
        "  benchmark  score      Ir  RAM hits  noise  measured in\n"
        "  sieve      3,418   1,353        53         1.2 s\n"
        "  noisy      3,418   1,353        53  100 %  1.2 s\n"
        "  odd        failed\n"
        "\n"
        "  not measured\n"
        "    odd  the command failed with exit status 3\n"
        "\n"
        "  sealed    fully (clock kept)\n"
        "  measured  3 runs under Cachegrind 3.24.0 in 2.5 s\n"
    )
    assert "measured  3 runs of 2 benchmarks under" in as_table(benchmark(), noisy)


def test_a_reason_why_many_failed_is_said_once_and_no_run_is_not_reported_as_measured() -> None:
    failed = [failed_benchmark(id=name) for name in "abc"]
    text = as_table(*failed, failed_benchmark(id="d", error="another"))
    assert (
        "  not measured\n"
        "    a and 2 more  the command failed with exit status 3\n"
        "    d             another\n"
        "\n"
        "  sealed  fully (clock kept)\n"
    ) in text
    assert "0 runs" not in text


def test_how_benchmarks_were_sealed_and_what_they_warn_of_is_said_once_with_the_ids() -> None:
    unsealed = {
        "cpu": SealPart(state=SealState.PINNED),
        "randomness": SealPart(state=SealState.UNAVAILABLE, why="no seccomp"),
    }
    text = as_table(
        benchmark(id="a", warnings=("careful",)),
        benchmark(id="b", warnings=("careful",), seal=unsealed),
        benchmark(id="c", seal=unsealed),
    )
    assert (
        "  sealed    fully (clock kept): a\n            1 of 2 parts: b, c\n".replace("            1", "  sealed    1")
        in text
    )
    assert text.count("not pinned: randomness: no seccomp") == 1
    assert "  warning: a, b: careful\n" in text


def test_changes_since_the_last_run_are_a_column_coloured_from_half_a_percent_on() -> None:
    since = {
        "a": Since(Fraction(3, 100), "2026-01-31T12:00:00Z"),
        "b": Since(Fraction(-1, 1000), "2026-01-31T12:00:00Z"),
    }
    made = suite(result(benchmark(id="a"), benchmark(id="b"), benchmark(id="new")), since=since)
    lines = table.render(made, colour=True).splitlines()
    assert lines[2].split("  ")[1:4] == ["benchmark", "score", "since last run"]
    assert "\x1b[31m" in lines[3]
    assert "-0.1 %" in lines[4]
    assert "\x1b" not in "".join(lines[4:])


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_narrow_table_of_long_ids_loses_columns_before_names(width: int) -> None:
    ids = [f"tests/benchmarks/test_roundtrip.py::test_parse_document[case-{n}]" for n in range(4)]
    text = table.render(suite(result(*(benchmark(id=name) for name in ids))), width=width)
    assert max(map(len, text.splitlines())) <= max(width, 75)
    assert "  test_parse_document[case-0]  3,418" in text
    assert "  all ids begin with tests/benchmarks/test_roundtrip.py::\n" in text
    assert "tests/benchmarks/test_roundtrip.py::test_parse_document[case-0]  3,418" in table.render(
        suite(result(*(benchmark(id=name) for name in ids)))
    )


def test_an_id_that_loses_its_beginning_begins_no_command_to_github() -> None:
    ids = (f"folder/{name}::error title=x::{'y' * 60}" for name in ("", "b"))
    text = table.render(suite(result(*(benchmark(id=name) for name in ids))), width=80)
    assert "all ids begin with folder/" in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]


def test_runs_under_different_layouts_are_no_noise() -> None:
    item = benchmark(runs=(Run(layout=0, counts=VECTOR), Run(layout=1, counts=times(VECTOR, 2))))
    assert as_table(item).splitlines()[2:] == [
        "  benchmark  score     Ir  RAM hits  over layouts  measured in",
        "  sieve      3,418  1,353        53         100 %  1.2 s",
        "",
        "  sealed    fully (clock kept)",
        "  measured  2 runs under Cachegrind 3.24.0 in 1.2 s",
    ]


def test_what_was_used_again_and_what_did_not_finish_is_counted_and_named() -> None:
    text = as_table(benchmark(warnings=("careful",)), benchmark(id="old"), reused=["old"], unfinished=["late", HOSTILE])
    assert text.startswith("2 benchmarks, 1 re-used, 2 not measured\n")
    assert re.search(r"^  old .* re-used$", text, re.MULTILINE)
    assert "  warning: sieve: careful\n  warning: late was not measured\n" in text


def test_one_benchmark_is_not_counted_as_several() -> None:
    assert as_table(benchmark()).startswith("1 benchmark\n")


def test_nothing_measured_is_a_report_without_a_table() -> None:
    text = table.render(suite(replace(result(), benchmarks=()), unfinished=["a"]))
    assert text == "0 benchmarks, 1 not measured\n\n  warning: a was not measured\n"


def test_a_report_has_no_control_characters_and_markdown_no_markup() -> None:
    hostile = [
        benchmark(id=HOSTILE, warnings=(HOSTILE,)),
        failed_benchmark(id=f"{HOSTILE}2", error=f"{HOSTILE}\nmore"),
    ]
    found = suite(result(*hostile), unfinished=[HOSTILE])
    plain, marked = table.render(found), table.render(found, "markdown")
    assert not CONTROL.search(plain)
    assert not CONTROL.search(marked)
    assert "<script>" not in marked
    assert "| failed |" in marked
