"""Formats of other tools: what is written can be read by those who read them, and what is read back says what it is."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cachegrind_bench.cli.history import export_command, import_command
from cachegrind_bench.errors import FileFormatError, StoreError
from cachegrind_bench.history.formats import csvformat, detect, export_only, github_action_benchmark, jsonl
from cachegrind_bench.history.formats.fields import imported_record
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.metrics import DEFAULT_MODEL, EVENTS
from cachegrind_bench.model.result import Commit, Score, SealState, Status, comparability_key
from cachegrind_bench.model.text import plain
from cachegrind_bench.store.files import FileStore
from cachegrind_bench.store.reading import snapshot
from cachegrind_bench.store.record import Record, run_record
from tests.unit import flaming
from tests.unit.samples import HOSTILE, VECTOR, benchmark, failed_benchmark, result, rich_benchmark
from tests.unit.stored import RENAME, measured, run, stored

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.model.result import Snapshot

FORMULA = "=cmd|' /C calc'!A0"


def snapshots(count: int = 3) -> list[Snapshot]:
    return [
        snapshot(stored(n, measured(factor=1 + n), measured("b", 7), failed_benchmark(id="bad"))) for n in range(count)
    ]


def table(runs: list[Snapshot]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(csvformat.write(runs)), newline="")))


def lines(*records: Record) -> io.BytesIO:
    return io.BytesIO(b"".join(record.data for record in records))


# JSON lines


def test_lines_are_what_a_store_keeps_and_lose_nothing() -> None:
    records = [stored(1), stored(2, measured(), failed_benchmark(id=HOSTILE)), RENAME]
    assert list(jsonl.read(lines(*records), "h")) == records


def test_a_line_that_was_spaced_and_ordered_anew_is_the_same_record() -> None:
    record = stored(1)
    document = dict(reversed(json.loads(record.data).items()))
    text = f"\n  {json.dumps(document)}\n\n"
    assert list(jsonl.read(io.BytesIO(text.encode()), "h")) == [record]


def test_lines_are_the_same_records_when_they_are_read_again() -> None:
    whole = result(rich_benchmark(), created_at="2026-01-31T12:00:00Z")
    spaced = json.dumps(json.loads(stored(2).data)).encode()
    data = b"\n".join([stored(1).data, spaced, encode(whole), RENAME.data, stored(3).data.strip()])
    records = list(jsonl.read(io.BytesIO(data), "h"))
    assert list(jsonl.read_again(io.BytesIO(data), "h", [record.name for record in records])) == records
    assert len(records) == 5


def test_a_key_that_a_later_version_wrote_stays() -> None:
    document = json.loads(stored(1).data) | {"later": [1]}
    (record,) = jsonl.read(io.BytesIO(json.dumps(document).encode()), "h")
    assert json.loads(record.data)["later"] == [1]
    assert record.name != stored(1).name


def test_of_a_result_with_profiles_only_the_record_is_taken() -> None:
    whole = result(rich_benchmark(), created_at="2026-01-31T12:00:00Z")
    assert list(jsonl.read(io.BytesIO(encode(whole)), "h")) == [run_record(whole)]


def test_a_record_has_no_profile_of_python_functions() -> None:
    whole = result(benchmark(python=flaming.small()), created_at="2026-01-31T12:00:00Z")
    record = run_record(whole)
    assert b"python" not in record.data
    assert record == run_record(result(benchmark(), created_at="2026-01-31T12:00:00Z"))
    assert list(jsonl.read(io.BytesIO(encode(whole)), "h")) == [record]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"{", "not a line of a history"),
        (b"[]", "it is not an object with a schema"),
        (b'{"schema":"other/1"}', "its schema is 'other/1', not a record's"),
        (b'{"schema":"cg-bench.run/9"}', "is newer than this cg-bench can read"),
        (b'{"schema":"cg-bench.run/1"}', "'tool' is missing"),
        (b'{"schema":"cg-bench.rename/1","old":1}', "is not what a history keeps"),
        (stored(1, created_at="soon").data, "no record has such a name"),
    ],
    ids=lambda value: str(value[:30]),
)
def test_a_line_that_is_not_a_record_is_reported_with_its_number(line: bytes, told: str) -> None:
    with pytest.raises(FileFormatError) as raised:
        list(jsonl.read(io.BytesIO(stored(1).data + line), "h.jsonl"))
    assert raised.value.message.startswith("h.jsonl:2: ")
    assert told in raised.value.message
    assert len(raised.value.message) < 500


def test_a_line_longer_than_a_record_may_be_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    record = stored(1)
    monkeypatch.setattr(jsonl, "MOST_BYTES", len(record.data))
    assert list(jsonl.read(io.BytesIO(record.data), "h")) == [record]
    monkeypatch.setattr(jsonl, "MOST_BYTES", len(record.data) - 1)
    with pytest.raises(FileFormatError, match=f"^h:1: a line of more than {len(record.data) - 1} bytes"):
        list(jsonl.read(io.BytesIO(record.data), "h"))


# CSV


def test_a_table_has_a_row_for_each_benchmark_of_each_run() -> None:
    rows = table(snapshots(2))
    assert [row["benchmark"] for row in rows] == ["sieve", "b", "bad"] * 2
    first, _, bad = rows[:3]
    assert [int(first[event]) for event in EVENTS] == list(VECTOR.as_tuple())
    assert (first["score"], first["model"], first["status"]) == ("3418", "l1+5ll+30ram", "ok")
    assert {bad[column] for column in (*EVENTS, "score", "model")} == {""}
    assert bad["status"] == "failed"


def test_a_table_gives_the_runs_back() -> None:
    runs = snapshots()
    assert csvformat.read("".join(csvformat.write(runs)), "h.csv") == runs


@pytest.mark.parametrize("text", [FORMULA, "+1", "-1", "@x", "\t=1", "  =1", "\r1", "\n1", "'x", "'", "'=", "＝1"])
def test_no_cell_is_a_formula_and_the_text_comes_back(text: str) -> None:
    cell = csvformat.guarded(text)
    assert cell[0] == "'"
    assert csvformat.unguarded(cell) == text


@pytest.mark.parametrize(
    "text", ["\x1b[31m\0\n", "\x9b1", "\u202e", r"\x1b", r"\x5cx1b", "::error::", r"\ud800", "\U000e0001\t="]
)
def test_a_cell_has_nothing_that_a_terminal_obeys_and_the_text_comes_back(text: str) -> None:
    cell = csvformat.guarded(text)
    assert cell == plain(cell)
    assert csvformat.unguarded(cell) == text
    (run,) = snapshots(1)
    odd = replace(run, points=(replace(run.points[0], id=text),))
    written = "".join((*csvformat.write([odd]), *export_only.openmetrics([odd])))
    assert all(plain(line) == line for line in written.splitlines())


@pytest.mark.parametrize("text", [r"\ud800", r"\Uffffffff"])
def test_what_no_text_can_hold_is_no_escape(text: str) -> None:
    assert csvformat.unguarded(text) == text


@pytest.mark.parametrize("text", ["", " ", "sieve", "a'b", "a=b", "1", "a\\b"])
def test_what_is_not_a_formula_stays_as_it_is(text: str) -> None:
    assert csvformat.guarded(text) == text
    assert csvformat.unguarded(text) == text


def test_hostile_names_branches_and_versions_are_guarded_and_come_back() -> None:
    commit = Commit(sha="ab" * 20, parent="cd" * 20, branch=FORMULA, dirty=True, committed_at="2026-01-01T00:00:00Z")
    names = [FORMULA, HOSTILE, 'a,"b"', "\r", "\0"]
    odd = run(1, *(measured(name) for name in names), commit=commit, tool_version="@1")
    runs = [snapshot(run_record(odd))]
    cells = [cell for row in table(runs) for cell in row.values()]
    assert [cell for cell in cells if cell.lstrip()[:1] in tuple("=+-@")] == []
    assert csvformat.read("".join(csvformat.write(runs)), "h.csv") == runs


def test_a_name_longer_than_a_cell_may_be_by_default_is_read_back() -> None:
    runs = [snapshot(stored(1, measured("x" * 200_000)))]
    assert csvformat.read("".join(csvformat.write(runs)), "h.csv") == runs


def test_a_table_that_went_through_a_spreadsheet_is_read() -> None:
    runs = snapshots(1)
    rows = list(csv.reader(io.StringIO("".join(csvformat.write(runs)), newline="")))
    order = list(reversed(range(len(rows[0]))))
    text = io.StringIO()
    csv.writer(text, delimiter=";").writerows([[*(row[place] for place in order), "note"] for row in rows])
    assert csvformat.read(text.getvalue().replace("false", "FALSE"), "h.csv") == runs


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("3418", "3419"), "h.csv:2: these counts give 3418 under l1+5ll+30ram, not 3419"),
        ((",1353,", ",1.353,"), "'1.353' is not a count of Ir"),
        (("l1+5ll+30ram", "fast"), "'fast' is not a cost model"),
        ((",ok,", ",fine,"), "'fine' is not a valid Status"),
        ((",ok,", ",failed,"), "counts of a benchmark with status failed"),
        (("2026-01-01T00:00:00Z", "2026-13-01T00:00:00Z"), "'2026-13-01T00:00:00Z' is not a valid time"),
        (("ba9876543210", "x"), "'x' is not a key"),
        (("status", "state"), "h.csv:1: no column 'status'"),
        (("sieve,", "sieve,,"), "cells, and 23 columns"),
    ],
)
def test_a_row_that_makes_no_sense_is_reported_with_its_line(change: tuple[str, str], told: str) -> None:
    text = "".join(csvformat.write([snapshot(stored(0))]))
    assert change[0] in text
    with pytest.raises(FileFormatError, match=re.escape(told)):
        csvformat.read(text.replace(*change), "h.csv")


def test_rows_that_contradict_each_other_are_refused() -> None:
    text = "".join(csvformat.write([snapshot(stored(0))]))
    row = text.splitlines(keepends=True)[1]
    with pytest.raises(FileFormatError, match="there is another entry of 'sieve' in run"):
        csvformat.read(text + row, "h.csv")
    with pytest.raises(FileFormatError, match="is described differently before"):
        csvformat.read(text + row.replace("main", "other"), "h.csv")


@pytest.mark.parametrize("text", ["", "\n", "a,b\n1,2\n", "\0", '"'])
def test_what_is_not_a_table_is_refused(text: str) -> None:
    with pytest.raises(FileFormatError):
        csvformat.read(text, "h.csv")


# What is imported says so


def test_imported_runs_have_the_numbers_and_never_the_key_of_measured_ones() -> None:
    for whole in snapshots():
        record = imported_record(whole, "csv", "h.csv")
        found = snapshot(record)
        assert found.commit == whole.commit
        assert [(point.id, point.status, point.counts, point.score) for point in found.points] == [
            (point.id, point.status, point.counts, point.score) for point in whole.points
        ]
        assert found.env_key != whole.env_key
        assert {point.key for point in found.points}.isdisjoint(point.key for point in whole.points)
        stored_result = decode(record.data, record.name)
        assert stored_result.env.fields == {"imported_from": "csv", "original_environment": whole.env_key}
        assert stored_result.env.info == {"original_run": whole.uid}
        for item in stored_result.benchmarks:
            assert item.key == comparability_key({**stored_result.env.fields, **item.key_fields})
            assert {part.state for part in item.seal.values()} == {SealState.UNAVAILABLE}


def test_imported_runs_compare_with_each_other_where_the_measured_ones_did() -> None:
    one, other = snapshots(2)
    key = "f" * 12
    third = replace(other, points=tuple(replace(point, key=key) for point in other.points))
    keys = [{point.key for point in snapshot(imported_record(each, "csv", "h")).points} for each in (one, other, third)]
    assert keys[0] == keys[1]
    assert keys[0].isdisjoint(keys[2])


def test_the_same_import_gives_the_same_record() -> None:
    (one,) = snapshots(1)
    assert imported_record(one, "csv", "a") == imported_record(one, "csv", "b")
    assert imported_record(one, "csv", "a") != imported_record(one, "github-action-benchmark", "a")


def test_counts_that_no_program_can_have_are_not_imported() -> None:
    (whole,) = snapshots(1)
    counts = replace(VECTOR, ILmr=52)
    score = Score(model=DEFAULT_MODEL.name, value=DEFAULT_MODEL.score(counts))
    odd = replace(whole, points=(replace(whole.points[0], counts=counts, score=score),))
    (found,) = csvformat.read("".join(csvformat.write([odd])), "h.csv")
    with pytest.raises(FileFormatError, match="more misses in the last level"):
        imported_record(found, "csv", "h.csv")


# Bencher


def test_bencher_gets_measures_by_benchmark_and_nothing_of_failures() -> None:
    warnings: list[str] = []
    found = json.loads(export_only.bencher(snapshots(1)[0], warnings.append))
    assert list(found) == ["sieve", "b"]
    assert found["sieve"] == {name: {"value": value} for name, value in {"score": 3418, **VECTOR.as_dict()}.items()}
    assert warnings == []


UUID = "123e4567-e89b-12d3-a456-426614174000"


@pytest.mark.parametrize(
    "name", ["", "x" * 1025, "é" * 513, UUID, UUID.upper(), UUID.replace("-", ""), f"{{{UUID}}}", f"urn:uuid:{UUID}"]
)
def test_a_name_for_which_bencher_would_refuse_the_file_is_left_out_and_counted(name: str) -> None:
    warnings: list[str] = []
    text = export_only.bencher(snapshot(stored(1, measured(name), measured("b"))), warnings.append)
    assert list(json.loads(text)) == ["b"]
    assert [warning.partition(":")[0] for warning in warnings] == ["1 benchmark left out"]


@pytest.mark.parametrize("name", ["x" * 1024, "é" * 512, UUID[1:], f"{UUID} ", UUID.replace("-", "_"), HOSTILE])
def test_other_names_are_given_to_bencher_as_they_are(name: str) -> None:
    warnings: list[str] = []
    assert list(json.loads(export_only.bencher(snapshot(stored(1, measured(name))), warnings.append))) == [name]
    assert warnings == []


# github-action-benchmark


def page(*benches: object, suite: str = "Benchmark") -> str:
    """Return what the action keeps on its page."""
    commit = {"id": "f" * 40, "message": "m", "timestamp": "2026-01-01T09:00:00+09:00", "url": "https://example.org"}
    push = {"commit": commit, "date": 1767225600000, "tool": "customSmallerIsBetter", "benches": list(benches)}
    data = {"lastUpdate": 1767225600000, "repoUrl": "https://example.org", "entries": {suite: [push]}}
    return f"window.BENCHMARK_DATA = {json.dumps(data, indent=2)}"


# Entries as the action makes them of the output of several tools.
FOREIGN: list[object] = [
    {"name": "fib_20", "value": 34001, "range": "+/- 2,802", "unit": "ns/iter"},
    {"name": "read/10", "value": 51140835, "range": "± 163623", "unit": "ns/iter"},
    {
        "name": "t.py::x",
        "value": 952.4881575451848,
        "unit": "iter/sec",
        "range": "stddev: 0.0002",
        "extra": "mean: 1.05 msec",
    },
    {"name": "Ns.Type.Method(n: 1)", "value": 1.1e21, "unit": "ns", "range": "± 0.5"},
    {
        "name": "f<int8_t, int8_t>/0",
        "value": 23650.877700000023,
        "unit": "ns/iter",
        "extra": "cpu: 7154.041 ns\nthreads: 1",
    },
    {"name": "[1,2] - mgas/s", "value": 72.91544951197312, "unit": "mgas/s"},
    {"name": "failed", "value": None, "unit": "score"},
]
# Commits as services hand them over: a push, a merge by GitHub itself, one of a person it does not know, one of its API.
COMMITS: list[object] = [
    {"author": {"email": "a@b", "name": "A", "username": "a"}, "distinct": True, "id": "f" * 40, "tree_id": "e" * 40},
    {"author": {"name": "A"}, "committer": {"name": "GitHub", "username": "web-flow"}, "id": "e" * 40, "message": "m"},
    {"id": "d" * 40, "message": "odd \ud83d\u2028\n\u0000", "timestamp": "2019-11-10T00:06:58+09:00"},
    {},
]


def ok_part(whole: Snapshot) -> Snapshot:
    return replace(whole, points=tuple(point for point in whole.points if point.status is Status.OK))


def test_entries_have_what_the_action_asks_for() -> None:
    first, second = json.loads(github_action_benchmark.write(snapshots(1)[0]))
    assert (first["name"], first["unit"], first["value"]) == ("sieve", "score", 3418)
    assert "Ir=1353 " in first["extra"]
    assert second["name"] == "b"


def test_entries_give_the_run_back_as_a_list_and_from_the_page() -> None:
    whole = snapshots(2)[1]
    text = github_action_benchmark.write(whole)
    for found in (text, page(*json.loads(text)), page(*json.loads(text)) + ";\n"):
        assert github_action_benchmark.read(found, "data.js")[0] == [ok_part(whole)]


def test_a_page_with_suites_of_all_kinds_of_tools_gives_our_runs_back() -> None:
    one, other = snapshots(2)
    ours = [json.loads(github_action_benchmark.write(run)) for run in (one, other)]
    suites = {
        "Benchmark": [
            {"commit": commit, "date": 1573312140323, "tool": tool, "benches": FOREIGN}
            for commit, tool in zip(COMMITS, ["cargo", "pytest", "customBiggerIsBetter", "benchmarkjs"], strict=True)
        ],
        "Cachegrind": [{"commit": {}, "tool": "customSmallerIsBetter", "benches": [*FOREIGN, *ours[0]]}],
        "": [{"benches": ours[1]}, {"benches": ours[0]}, {"benches": []}],
        "new": [],
    }
    text = json.dumps({"lastUpdate": 1633159398951, "entries": suites}, indent=2)
    found = github_action_benchmark.read(f"window.BENCHMARK_DATA = {text}", "data.js")
    assert found[0] == [ok_part(one), ok_part(other)]
    assert found[1] == 5 * len(FOREIGN)


def test_what_the_action_keeps_outside_of_a_page_gives_the_run_back() -> None:
    whole = snapshots(1)[0]
    text = page(*json.loads(github_action_benchmark.write(whole))).removeprefix("window.BENCHMARK_DATA = ")
    assert text.startswith('{\n  "lastUpdate"')
    assert github_action_benchmark.read(text, "data.json")[0] == [ok_part(whole)]


@pytest.mark.parametrize("written", ["9007199254740992", "9007199254740992.0", "9.007199254740992e+15"])
def test_a_score_that_went_through_javascript_is_still_that_of_its_counts(written: str) -> None:
    counts = replace(VECTOR, Ir=2**53 + 1, I1mr=0, ILmr=0, Dr=0, D1mr=0, DLmr=0, Dw=0, D1mw=0, DLmw=0)
    score = Score(model=DEFAULT_MODEL.name, value=DEFAULT_MODEL.score(counts))
    (point, *_) = snapshots(1)[0].points
    whole = replace(snapshots(1)[0], points=(replace(point, counts=counts, score=score),))
    text = github_action_benchmark.write(whole)
    assert '"value": 9007199254740993,' in text
    kept = text.replace('"value": 9007199254740993', f'"value": {written}')
    assert github_action_benchmark.read(kept, "x")[0] == [whole]


def test_branches_and_versions_with_odd_signs_come_back() -> None:
    commit = Commit(sha="ab" * 20, parent="cd" * 20, branch=HOSTILE, dirty=True, committed_at="2026-01-01T00:00:00Z")
    whole = snapshot(run_record(run(1, measured(HOSTILE, key="a b=c\n"), commit=commit, tool_version="1 run=x")))
    assert github_action_benchmark.read(github_action_benchmark.write(whole), "x")[0] == [whole]
    alone = snapshot(run_record(run(1, commit=None)))
    assert github_action_benchmark.read(github_action_benchmark.write(alone), "x")[0] == [alone]


def test_entries_of_other_tools_are_passed_over_and_counted() -> None:
    whole = snapshots(1)[0]
    ours = json.loads(github_action_benchmark.write(whole))
    foreign = [{"name": "t", "unit": "ns/iter", "value": 1.5}, {"name": "s", "unit": "score", "value": 1}, 7]
    found = github_action_benchmark.read(page(*foreign, *ours, *ours), "data.js")
    assert found[0] == [ok_part(whole)]
    assert found[1] == 3


def test_a_page_of_another_tool_is_refused_with_its_units() -> None:
    with pytest.raises(FileFormatError, match=r"none of its 1 entries is a score.*'ns/iter'"):
        github_action_benchmark.read(page({"name": "t", "unit": "ns/iter", "value": 1.5}), "data.js")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('"value": 3418', '"value": 3419'), "these counts give 3418"),
        (('"value": 3418', '"value": 3418.5'), "these counts give 3418 under l1+5ll+30ram, not 3418.5"),
        (('"value": 3418', '"value": "3418"'), "Expected `int | float`, got"),
        (("Ir=1353 ", "Ir=1e3 "), "'1e3' is not a count of Ir"),
        (("model=l1+5ll+30ram", "model=1l1+5ll+30ram"), "the model '1l1+5ll+30ram' is written 'l1+5ll+30ram'"),
        (("Ir=1353 ", ""), "Ir is missing"),
        (("run=", "run=x"), "is not the uid of a run"),
        (("dirty=false", "dirty=0"), "neither true nor false"),
        (("cg_bench=", "cg_bench=%ff"), "utf-8"),
    ],
)
def test_an_entry_that_was_altered_is_reported(change: tuple[str, str], told: str) -> None:
    text = github_action_benchmark.write(snapshots(1)[0])
    assert change[0] in text
    with pytest.raises(FileFormatError, match=r"entry 1 .*'sieve'.*" + re.escape(told)):
        github_action_benchmark.read(text.replace(*change), "x")


def test_entries_that_contradict_each_other_are_refused() -> None:
    one, *_ = json.loads(github_action_benchmark.write(snapshots(1)[0]))
    other = json.loads(json.dumps(one).replace("key=0123456789ab", "key=ba0123456789"))
    with pytest.raises(FileFormatError, match="there is another entry of 'sieve' in run"):
        github_action_benchmark.read(json.dumps([one, other]), "x")


@pytest.mark.parametrize("text", ["", "7", "window.BENCHMARK_DATA = {}"])
def test_what_is_not_data_of_the_action_is_refused(text: str) -> None:
    with pytest.raises(FileFormatError, match="not data of github-action-benchmark"):
        github_action_benchmark.read(text, "x")


# Which format it is


@pytest.mark.parametrize(
    ("start", "form"),
    [
        ('{"schema":"cg-bench.run/1"', "jsonl"),
        ('\n  {"entries_of": 1', "jsonl"),
        ("run,created_at\r\n", "csv"),
        ("", "csv"),
        ("[]", "github-action-benchmark"),
        ('\ufeff[{"name"', "github-action-benchmark"),
        ("window.BENCHMARK_DATA = {", "github-action-benchmark"),
        ('{\n  "lastUpdate": 0', "github-action-benchmark"),
        ('{"entries": {}}', "github-action-benchmark"),
    ],
)
def test_a_format_is_reported_by_the_beginning_of_a_file(start: str, form: str) -> None:
    stream = io.BytesIO(start.encode())
    assert detect(stream) == form
    assert stream.tell() == 0


# OpenMetrics

SAMPLE = re.compile(r'(cg_bench_[a-z]+)\{((?:[a-z]+="(?:[^"\\\n]|\\[\\n"])*",?)+)\} ([0-9]+) ([0-9]+)')


def samples(text: str) -> list[tuple[str, str, int, int]]:
    """Return family, labels, value and time of each line that is a sample, having checked that nothing else is there."""
    found: list[tuple[str, str, int, int]] = []
    for line in text.removesuffix("\n").split("\n"):
        match = SAMPLE.fullmatch(line)
        assert match or line.startswith("# ")
        if match:
            found.append((match[1], match[2], int(match[3]), int(match[4])))
    return found


def test_metrics_are_gauges_by_benchmark_at_the_times_of_commits() -> None:
    text = "".join(export_only.openmetrics(snapshots(2)))
    assert text.endswith("\n# EOF\n")
    assert [line for line in text.splitlines() if "TYPE" in line] == [
        f"# TYPE cg_bench_{name} gauge" for name in ("score", "events", "ok")
    ]
    assert 'cg_bench_score{benchmark="sieve",key="0123456789ab",model="l1+5ll+30ram"} 3418 1767225600\n' in text
    assert 'cg_bench_ok{benchmark="bad"} 0 1767225660\n' in text
    assert 'event="DLmw"' in text


def test_families_are_in_one_piece_each_after_its_type_and_help() -> None:
    lines = "".join(export_only.openmetrics(snapshots(2))).splitlines()
    places = [place for place, line in enumerate(lines) if line.startswith("# TYPE ")]
    for start, end in zip(places, [*places[1:], len(lines) - 1], strict=True):
        family = lines[start].split(" ")[2]
        assert lines[start + 1].startswith(f"# HELP {family} ")
        assert {line.partition("{")[0] for line in lines[start + 2 : end]} == {family}
    assert [place for place, line in enumerate(lines) if line == "# EOF"] == [len(lines) - 1]


def test_a_history_of_no_runs_is_a_text_that_ends() -> None:
    assert "".join(export_only.openmetrics([])).splitlines()[-1] == "# EOF"


def test_series_are_in_one_piece_and_their_times_ascend_without_a_second_value() -> None:
    again = snapshot(stored(1, measured(factor=9), created_at="2026-01-02T00:00:00Z"))
    found = samples("".join(export_only.openmetrics([again, *reversed(snapshots(3))])))
    series = [(family, labels) for family, labels, _, _ in found]
    assert len({key for key, before in zip(series, [None, *series], strict=False) if key != before}) == len(set(series))
    assert len([1 for key, before in zip(series, [None, *series], strict=False) if key != before]) == len(set(series))
    for key in set(series):
        times = [at for family, labels, _, at in found if (family, labels) == key]
        assert times == sorted(set(times))
    assert ("cg_bench_score", 9 * 3418) in [(family, value) for family, _, value, _ in found]


def test_labels_are_escaped() -> None:
    odd = snapshot(stored(0, measured('a"b\\c\nd\\n')))
    text = "".join(export_only.openmetrics([odd]))
    assert r'benchmark="a\"b\\c\nd\\n"' in text
    assert len(samples(text)) == 11


def test_a_time_that_does_not_exist_is_reported() -> None:
    odd = replace(snapshot(stored(0, commit=None)), created_at="2026-13-99T00:00:00Z")
    with pytest.raises(StoreError, match="is not a valid time"):
        "".join(export_only.openmetrics([odd]))


# Otava


def otava(runs: list[Snapshot]) -> tuple[str, list[str]]:
    """Return the text for Otava, and the warnings."""
    warnings: list[str] = []
    return "".join(export_only.otava(runs, warnings.append)), warnings


def test_otava_gets_a_row_for_each_run_and_no_empty_cell() -> None:
    text, warnings = otava(snapshots(3))
    heading, *rows = csv.reader(io.StringIO(text, newline=""))
    assert heading == ["time", "commit", "branch", "run", "environment", "b.score", "b.Ir", "sieve.score", "sieve.Ir"]
    assert [row[0] for row in rows] == [f"2026-01-01T00:0{n}:00Z" for n in range(3)]
    assert [[float(cell) for cell in row[5:]] for row in rows][1] == [23926, 9471, 6836, 2706]
    assert warnings == []


def test_runs_that_would_have_an_empty_cell_are_left_out_and_counted() -> None:
    commit = Commit(sha="ab" * 20, parent=None, branch=None, dirty=True, committed_at="2026-01-01T00:00:00Z")
    others = [run(9, commit=None), run(9, measured("b")), run(9, measured("sieve"), measured("b"), commit=commit)]
    text, warnings = otava([*(snapshot(run_record(item)) for item in others), *snapshots(2)])
    assert len(text.splitlines()) == 3
    assert [warning.partition(":")[0] for warning in warnings] == ["3 runs left out"]
    assert otava([])[0] == "time,commit,branch,run,environment\r\n"


def test_otava_can_choose_one_of_several_branches_also_that_of_a_detached_checkout() -> None:
    one, other = snapshots(2)
    assert one.commit is not None
    detached = replace(one, commit=replace(one.commit, branch=None))
    text, warnings = otava([detached, other])
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["branch"] for row in rows] == ["HEAD", "main"]
    assert [warning.partition(": ")[0] for warning in warnings] == ["more than one branch"]
    assert warnings[0].endswith("from HEAD, main")
    assert otava([one, other])[1] == []


# What the commands tell of it


def test_an_export_reports_what_other_tools_would_stumble_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: list[str]
) -> None:
    elsewhere = Commit(sha="ab" * 20, parent=None, branch="a\x1bb", dirty=False, committed_at="2026-01-01T00:00:00Z")
    records = [stored(1), stored(2, measured(), measured("x" * 1025)), run_record(run(3, commit=elsewhere))]
    FileStore(tmp_path).add(records)
    choice = ["--store", f"file:{tmp_path}", "--run", records[1].uid]
    export_command.main(["--format", "bmf", *choice], standalone_mode=False)
    assert list(json.loads(capsys.readouterr().out)) == ["sieve"]
    assert said.pop().startswith("1 benchmark left out: Bencher takes no empty names")
    export_command.main(["--format", "otava-csv", *choice[:2], "--benchmark", "sieve"], standalone_mode=False)
    (line,) = said
    assert line.startswith("more than one branch: choose by 'otava analyze --branch' from a")
    assert line.endswith("b, main")
    assert "\x1b" not in line


def test_what_the_action_keeps_outside_of_a_page_needs_no_format_to_be_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = json.loads(github_action_benchmark.write(snapshots(1)[0]))
    kept = tmp_path / "data.json"
    kept.write_text(page(*entries).removeprefix("window.BENCHMARK_DATA = "))
    import_command.main([str(kept), "--store", f"file:{tmp_path}/store"], standalone_mode=False)
    assert capsys.readouterr().out.startswith("imported 1 record from ")
