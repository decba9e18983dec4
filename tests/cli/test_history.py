"""`cg-bench history`: what is added, listed, shown, exchanged, renamed, removed, folded, copied and checked."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cachegrind_bench.cli import main
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.result import Commit
from cachegrind_bench.render import listings
from cachegrind_bench.store.durable import locked
from cachegrind_bench.store.files import FileStore
from cachegrind_bench.store.reading import HINT
from cachegrind_bench.store.record import run_record
from cachegrind_bench.usecases.stored_runs import runs_of
from cachegrind_bench.waiting import Waiting
from tests.unit.repositories import Repository, git_environment
from tests.unit.samples import HOSTILE, benchmark, failed_benchmark, result
from tests.unit.stored import FEBRUARY, NAMES, RECORDS, RENAME, fold, measured, run, stored

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Benchmark
    from cachegrind_bench.store.record import Record
    from tests.cli.conftest import CommandLine

STORE = Path(".cg-bench")


def store(*records: Record, folder: str = ".cg-bench") -> FileStore:
    found = FileStore(Path.cwd() / folder)
    found.add(list(records))
    return found


def written(name: str, *benchmarks: Benchmark, number: int = 1) -> str:
    Path(name).write_bytes(encode(run(number, *benchmarks)))
    return name


def test_a_store_in_a_hostile_folder_is_named_with_escapes(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a\n::error::b\x1b[2J").mkdir()
    monkeypatch.chdir("a\n::error::b\x1b[2J")
    name = written("r.json", measured())
    commands = ("add", name), ("import", name), ("prune", "--keep", "9"), ("sync", "--from", "file:s")
    store(stored(1), folder="s")
    for command in commands:
        told = cg_bench("history", *command)
        assert (told.code, told.out.count("\n")) == (0, 1)
        assert r"a\x0a::error::b\x1b[2J" in told.out


# Add


def test_result_files_are_added_and_what_is_there_stays(cg_bench: CommandLine) -> None:
    for number in range(3):
        written(f"{number}.json", number=number)
    told = cg_bench("history", "add", "0.json", "1.json")
    assert (told.code, told.err) == (0, "")
    assert told.out == f"added 2 runs to file:{Path.cwd()}/.cg-bench\n"
    assert cg_bench("history", "add", "1.json", "2.json").out.startswith("added 1 run to file:")
    assert cg_bench("history", "add", "1.json", "2.json").out.endswith("; 2 already there\n")
    assert store().names() == NAMES[:3]
    assert [record.data for record in store().read()] == [record.data for record in RECORDS[:3]]


def test_a_run_with_a_failed_benchmark_is_added(cg_bench: CommandLine) -> None:
    written("r.json", measured(), failed_benchmark(id="bad"))
    assert cg_bench("history", "add", "r.json").code == 0
    assert "sieve and 1 more (1 failed)" in cg_bench("history", "list").out


@pytest.mark.parametrize("content", [b"", b"no result", b"{}", b'{"schema":"cg-bench.run/2"}', encode(run(1))[:-20]])
def test_if_one_file_is_not_a_result_nothing_is_added(cg_bench: CommandLine, content: bytes) -> None:
    written("good.json")
    Path("bad.json").write_bytes(content)
    told = cg_bench("history", "add", "good.json", "bad.json")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("cg-bench: error: bad.json:")
    assert not STORE.exists()


def test_a_result_whose_date_is_none_cannot_be_added(cg_bench: CommandLine) -> None:
    Path("bad.json").write_bytes(encode(run(1, created_at="yesterday")))
    told = cg_bench("history", "add", "bad.json")
    assert told.code == 2
    assert "bad.json cannot be added: " in told.err
    assert not STORE.exists()


def test_profiles_stay_out_unless_they_are_asked_for(cg_bench: CommandLine) -> None:
    whole = result(benchmark(), benchmark(id="other", output="said"))
    Path("r.json").write_bytes(encode(whole))
    assert cg_bench("history", "add", "r.json").code == 0
    name = run_record(whole).name
    assert [path.name for path in STORE.rglob("*.gz")] == []
    assert "hottest functions" not in cg_bench("history", "show", "--top", "5").out
    assert cg_bench("history", "add", "r.json", "--with-profile").code == 0
    (kept,) = STORE.rglob("*.gz")
    assert decode(gzip.decompress(kept.read_bytes()), "r") == whole
    assert store().profile(name) == encode(whole)
    assert "hottest functions" in cg_bench("history", "show", "--top", "5").out


def test_only_stores_of_files_keep_profiles(cg_bench: CommandLine) -> None:
    pytest.importorskip("sqlalchemy")
    written("r.json")
    told = cg_bench("history", "add", "r.json", "--with-profile", "--store", "sqlite:///h.db")
    assert told.code == 2
    assert "keeps no profiles\n  leave --with-profile out, or store in files: file:DIR\n" in told.err
    assert not Path("h.db").exists()


# The store


def test_the_store_is_that_of_option_variable_and_configuration_in_this_order(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, folder in enumerate(("default", "configured", "variable", "typed")):
        store(stored(number), folder=".cg-bench" if folder == "default" else folder)
    uids = [stored(number).uid for number in range(4)]

    def listed(*options: str) -> list[str]:
        document = json.loads(cg_bench("history", "list", "--format", "json", *options).out)
        return [item["uid"] for item in document["runs"]]

    assert listed() == [uids[0]]
    Path(".git").mkdir()
    Path("cg-bench.toml").write_text('store = "file:configured"\n')
    assert listed() == [uids[1]]
    monkeypatch.setenv("CG_BENCH_STORE", "file:variable")
    assert listed() == [uids[2]]
    assert listed("--store", "file:typed") == [uids[3]]


def test_the_path_of_a_configured_store_begins_at_the_configuration(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(stored(1), folder="h")
    Path(".git").mkdir()
    Path("cg-bench.toml").write_text('store = "file:h"\n')
    Path("below").mkdir()
    monkeypatch.chdir("below")
    assert cg_bench("history", "list").out.startswith("1 run in ")
    assert cg_bench("history", "list", "--store", "file:h").out.startswith("0 runs in ")


def test_a_configured_store_that_is_invalid_is_reported_with_its_line(cg_bench: CommandLine) -> None:
    Path("cg-bench.toml").write_text('repeat = 1\nstore = "s3://bucket"\n')
    told = cg_bench("history", "list")
    assert told.code == 2
    assert "cg-bench.toml:2: store 's3://bucket' is not a store URL\n" in told.err


@pytest.mark.parametrize("how", ["option", "variable", "configuration"])
def test_a_store_that_is_locked_is_given_up_after_the_time_asked_for(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    store(*RECORDS)
    if how == "variable":
        monkeypatch.setenv("CG_BENCH_STORE_TIMEOUT", "100ms")
    elif how == "configuration":
        Path("cg-bench.toml").write_text('store-timeout = "100ms"\n')
    with locked(Path(".cg-bench/.cg-bench.removing.lock")):
        told = cg_bench("history", "prune", "--keep", "1", *(["--store-timeout", "0.1"] if how == "option" else []))
    assert (told.code, told.out) == (2, "")
    assert "another process has held" in told.err
    assert " for 0.1 s\n" in told.err


@pytest.mark.parametrize("url", ["", "x", "file:", "s3://b", "git:", "sqlite:x", "postgresql:"])
def test_a_url_that_names_no_store_is_reported_with_those_that_do(cg_bench: CommandLine, url: str) -> None:
    told = cg_bench("history", "list", "--store", url)
    assert (told.code, told.out) == (2, "")
    assert "is not a store URL\n  a store is file:DIR, git:BRANCH[@REMOTE], sqlite:///PATH or postgresql:" in told.err


def test_looking_at_a_history_that_is_not_there_makes_nothing(cg_bench: CommandLine) -> None:
    for words in (["list"], ["fsck"], ["export", "--format", "csv"], ["prune", "--keep", "1"]):
        told = cg_bench("history", *words)
        assert (told.code, told.err) == (
            0,
            "cg-bench: 'cg-bench run --save' stores a run\n" if words == ["list"] else "",
        )
    assert os.listdir() == []


# List

LIST = """\
2 of 3 runs in file:{cwd}/.cg-bench

  run       commit        benchmarks                   committed         branch  measured          environment
  {third}  none          sieve and 2 more (1 failed)                            2026-02-01 00:00  ba9876543210
  {second}  200000000000  sieve                        2026-01-01 00:02  main    2026-01-01 00:02  ba9876543210
"""


def test_runs_are_listed_with_the_newest_commit_first(cg_bench: CommandLine) -> None:
    third = stored(
        3, measured(), measured("b"), failed_benchmark(id="c"), commit=None, created_at="2026-02-01T00:00:00Z"
    )
    store(stored(1), stored(2), third)
    told = cg_bench("history", "list", "--last", "2")
    assert (told.code, told.err) == (0, "")
    wanted = LIST.format(cwd=Path.cwd(), third=third.uid[:8], second=stored(2).uid[:8])
    assert [line.split() for line in told.out.splitlines()] == [line.split() for line in wanted.splitlines()]
    assert cg_bench("history", "list", "--last", "0").out.startswith("3 runs in ")


def test_a_list_has_the_subjects_of_commits_that_git_knows(
    cg_bench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(tmp_path / "project", git_environment(tmp_path))
    monkeypatch.chdir(repository.path)
    sha = repository.commit("Use a list\x1b")
    here = Commit(sha=sha, parent=None, branch="main", dirty=False, committed_at="2026-01-01T00:00:00Z")
    store(stored(1, commit=here), stored(2))
    lines = cg_bench("history", "list").out.splitlines()
    assert [line.count("Use a list\\x1b") for line in lines[3:]] == [0, 1]
    Path(".git").rename("elsewhere")
    assert "  subject  " not in cg_bench("history", "list").out


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_list_of_runs_fits_a_terminal(width: int) -> None:
    runs = list(runs_of(store(stored(1), stored(2)), None, None))
    subjects = {item.commit.sha: "x" * 200 for item in runs if item.commit}
    text = listings.runs(runs, 2, "file:h", "table", width=width, subjects=subjects)
    assert max(map(len, text.splitlines())) <= width
    assert ("2026-01-01 00:02" in text) == (width > 60)
    assert "environment" not in text


def test_a_list_has_what_was_asked_for(cg_bench: CommandLine) -> None:
    store(stored(1), stored(2, measured("other")), stored(3, created_at="2026-02-01T00:00:00Z"))

    def count(*options: str) -> int:
        return len(json.loads(cg_bench("history", "list", "--format", "json", *options).out)["runs"])

    assert count("--since", "2026-02-01") == 1
    assert count("--since", "2026-02-01T01:00:00+01:00") == 1
    assert count("--since", "2026-02-01T00:00:01Z") == 0
    assert count("--since", "1d") == 0
    assert count("--benchmark", "o*") == 1
    assert count("--last", "1") == 1


def test_what_cannot_be_read_is_left_out_of_a_list_and_named(cg_bench: CommandLine) -> None:
    found = store(*RECORDS)
    for number in (1, 3):
        (found.folder / NAMES[number]).write_bytes(b"\x1b[31m")
    told = cg_bench("history", "list")
    assert (told.code, told.out.partition("\n")[0]) == (2, f"{len(RECORDS) - 2} runs in {found.url}")
    lines = told.err.splitlines()
    assert [name in line for name, line in zip((NAMES[1], NAMES[3]), lines, strict=False)] == [True, True]
    assert lines[2:] == [f"cg-bench: warning: what cannot be read is left out: {HINT}"]
    assert "\x1b" not in told.err


def test_scripts_get_everything_a_history_is_read_from(cg_bench: CommandLine) -> None:
    store(stored(1, measured(), failed_benchmark(id="bad")))
    document = json.loads(cg_bench("history", "list", "--format", "json").out)
    assert (document["schema"], document["total"]) == ("cg-bench.history/1", 1)
    (found,) = document["runs"]
    assert found["commit"]["sha"] == "1" + "0" * 39
    assert [item["status"] for item in found["benchmarks"]] == ["ok", "failed"]
    assert found["benchmarks"][0]["counts"]["Ir"] == 1353
    assert found["benchmarks"][0]["score"] == {"model": "l1+5ll+30ram", "value": 3418}


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_a_list_is_harmless_whatever_runs_hold(cg_bench: CommandLine, form: str) -> None:
    store(stored(1, measured(HOSTILE)))
    told = cg_bench("history", "list", "--format", form)
    assert told.code == 0
    assert "\x1b" not in told.out
    assert "\u202e" not in told.out
    if form != "json":
        assert len(told.out.splitlines()) == 5 - (form == "table")
    if form == "markdown":
        assert "<script>" not in told.out


@pytest.mark.parametrize("date", ["soon", "2026-13-01", "999999w", ""])
def test_a_date_that_is_invalid_is_reported(cg_bench: CommandLine, date: str) -> None:
    told = cg_bench("history", "list", "--since", date)
    assert told.code == 2
    assert "is not a date: write 2026-01-31" in told.err


# Show


def test_a_run_is_shown_by_the_beginning_of_its_id_or_of_its_commit(cg_bench: CommandLine) -> None:
    records = [stored(number, measured(f"b{number}")) for number in range(3)]
    store(*records)
    for number, record in enumerate(records):
        sha = f"{number}" + "0" * 39
        for text in (record.uid[:6], record.uid.upper(), record.name, sha, sha[:5]):
            told = cg_bench("history", "show", text)
            assert (told.code, told.err) == (0, "")
            assert told.out.startswith(f"b{number}\n")
    assert cg_bench("history", "show").out.startswith("b2\n")


def test_of_several_runs_of_a_commit_the_last_is_shown(cg_bench: CommandLine) -> None:
    early = stored(1, measured("early"))
    late = stored(1, measured("late"), created_at="2026-02-01T00:00:00Z")
    store(late, early)
    assert cg_bench("history", "show", "1000").out.startswith("late\n")


def test_a_run_is_shown_as_its_file_would_be(cg_bench: CommandLine) -> None:
    record = stored(1, measured("a"), measured("b"))
    store(record)
    Path("r.json").write_bytes(record.data)
    for options in ([], ["--format", "json"], ["--benchmark", "b", "--sort", "Ir"]):
        told = cg_bench("history", "show", record.uid, *options)
        assert told.code == 0
        assert told == cg_bench("show", "r.json", *options)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("zzzz", "'zzzz' is not the id of a run or commit"),
        ("12", "'12' is not the id of a run or commit"),
        ("../../x", "'../../x' is not the id of a run or commit"),
        ("ffffffff", "there is no run 'ffffffff' in file:"),
        ("0000000000001", "there is no run"),
    ],
)
def test_a_run_that_is_not_there_is_reported(cg_bench: CommandLine, text: str, told: str) -> None:
    store(*RECORDS)
    found = cg_bench("history", "show", text)
    assert (found.code, found.out) == (2, "")
    assert told in found.err


def test_an_id_that_could_be_several_runs_is_reported_with_them(cg_bench: CommandLine) -> None:
    for digits in ("1" + "0" * 12, "1" + "0" * 4 + "1" * 8):
        whole = run(1, measured(digits))
        assert whole.commit is not None
        store(
            run_record(
                run(
                    1,
                    measured(digits),
                    commit=type(whole.commit)(
                        sha=digits.ljust(40, "0"),
                        parent=None,
                        branch=None,
                        dirty=False,
                        committed_at="2026-01-01T00:00:00Z",
                    ),
                )
            )
        )
    told = cg_bench("history", "show", "10000")
    assert told.code == 2
    assert "'10000' could be several runs: runs/2026/01/100" in told.err
    assert cg_bench("history", "show", "100001").code == 0


def test_where_there_is_nothing_to_show_that_is_said(cg_bench: CommandLine) -> None:
    told = cg_bench("history", "show")
    assert told.code == 2
    assert "there are no runs in file:" in told.err


# Export and import


def exported(cg_bench: CommandLine, form: str, *options: str) -> str:
    told = cg_bench("history", "export", "--format", form, *options)
    assert (told.code, told.err) == (0, "")
    return told.out


def test_lines_move_a_whole_history_with_its_ids(cg_bench: CommandLine) -> None:
    there = store(*RECORDS, RENAME)
    assert cg_bench("history", "export", "--format", "jsonl", "-o", "h.jsonl").code == 0
    assert Path("h.jsonl").read_bytes() == b"".join(record.data for record in there.read())
    told = cg_bench("history", "import", "h.jsonl", "--store", "file:other")
    assert told.out == f"imported 9 records from h.jsonl into file:{Path.cwd()}/other\n"
    assert list(store(folder="other").read()) == list(there.read())
    again = cg_bench("history", "import", "h.jsonl", "--store", "file:other")
    assert again.out.startswith("imported 0 records from h.jsonl")
    assert again.out.endswith("; 9 already there\n")


def test_lines_can_be_those_since_a_date(cg_bench: CommandLine) -> None:
    late = stored(20, created_at="2026-02-01T00:00:00Z")
    store(*RECORDS, RENAME, late)
    assert exported(cg_bench, "jsonl", "--since", "2026-02-01").encode() == RENAME.data + late.data


def test_nothing_of_damaged_lines_is_imported(cg_bench: CommandLine) -> None:
    Path("h.jsonl").write_bytes(b"".join(record.data for record in RECORDS) + b"{}\n")
    told = cg_bench("history", "import", "h.jsonl")
    assert (told.code, told.out) == (2, "")
    assert "h.jsonl:9: " in told.err
    assert not STORE.exists()


def test_a_history_of_many_batches_is_imported_whole(cg_bench: CommandLine) -> None:
    records = [stored(number) for number in range(450)]
    Path("h.jsonl").write_bytes(b"".join(record.data for record in records))
    assert cg_bench("history", "import", "h.jsonl").out.startswith("imported 450 records")
    assert store().names() == sorted(record.name for record in records)


def test_a_table_has_the_present_names_and_only_what_was_asked_for(cg_bench: CommandLine) -> None:
    store(*RECORDS, RENAME, stored(9, measured("other"), measured("x")))
    rows = list(csv.DictReader(io.StringIO(exported(cg_bench, "csv"), newline="")))
    assert [row["benchmark"] for row in rows] == ["filter"] * 8 + ["other", "x"]
    chosen = csv.DictReader(io.StringIO(exported(cg_bench, "csv", "--benchmark", "o*"), newline=""))
    assert [row["benchmark"] for row in chosen] == ["other"]


def test_a_table_is_imported_under_keys_of_its_own_and_only_once(cg_bench: CommandLine) -> None:
    store(*RECORDS)
    Path("h.csv").write_text(exported(cg_bench, "csv"), newline="")
    for count in (8, 0):
        told = cg_bench("history", "import", "h.csv", "--store", "file:other")
        assert told.out.startswith(f"imported {count} records from h.csv")
    imported = exported(cg_bench, "csv", "--store", "file:other")
    pairs = zip(
        *(csv.DictReader(io.StringIO(text, newline="")) for text in (imported, exported(cg_bench, "csv"))), strict=True
    )
    for one, other in pairs:
        differing = {column for column, cell in one.items() if cell != other[column]}
        assert differing == {"run", "environment", "key"}
    shown = cg_bench("history", "show", "--store", "file:other").out
    assert "imported from csv" in shown
    assert "sealed    fully" not in shown


def test_what_was_measured_here_is_not_imported_a_second_time(cg_bench: CommandLine) -> None:
    store(*RECORDS)
    Path("h.csv").write_text(exported(cg_bench, "csv"), newline="")
    assert cg_bench("history", "import", "h.csv").out.endswith("; 8 already there\n")
    assert store().names() == NAMES


def test_nothing_of_a_damaged_table_is_imported(cg_bench: CommandLine) -> None:
    store(*RECORDS)
    text = exported(cg_bench, "csv", "-o", "-")
    Path("h.csv").write_text(text[:-4], newline="")
    told = cg_bench("history", "import", "h.csv", "--store", "file:other")
    assert (told.code, told.out) == (2, "")
    assert "h.csv:9: " in told.err
    assert not Path("other").exists()


def test_formats_of_one_run_have_that_of_the_newest_commit_or_the_one_named(cg_bench: CommandLine) -> None:
    store(*(stored(number, measured(factor=number)) for number in (1, 2)))
    assert json.loads(exported(cg_bench, "bmf"))["sieve"]["Ir"]["value"] == 2706
    assert json.loads(exported(cg_bench, "bmf", "--run", "1000"))["sieve"]["Ir"]["value"] == 1353
    assert json.loads(exported(cg_bench, "github-action-benchmark"))[0]["value"] == 6836
    assert json.loads(exported(cg_bench, "github-action-benchmark", "--run", "1000"))[0]["value"] == 3418


@pytest.mark.parametrize("start", ["run,created_at\n", "[1, 2"])
def test_a_file_that_is_read_as_a_whole_has_a_bound(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    monkeypatch.setattr("cachegrind_bench.usecases.history._MOST_TEXT", 100)
    Path("h").write_text(start.ljust(101))
    told = cg_bench("history", "import", "h")
    assert told.code == 2
    assert "h is too large: " in told.err
    assert "at most 100 bytes are read" in told.err


@pytest.mark.parametrize("form", ["jsonl", "csv", "github-action-benchmark"])
def test_what_comes_through_a_pipe_is_imported_too(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    store(*RECORDS)
    text = exported(cg_bench, form)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    told = cg_bench("history", "import", "-", "--store", "file:other")
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith(f"imported {1 if form == 'github-action-benchmark' else 8} record")


def test_a_file_that_cannot_be_read_is_reported(cg_bench: CommandLine) -> None:
    for name, why in (("none", "No such file or directory"), (".", "Is a directory")):
        told = cg_bench("history", "import", name)
        assert told.code == 2
        wanted = f"cg-bench: error: cannot read {name}: {why}\n  'cg-bench history export' writes such files\n"
        assert told.err == wanted


def test_what_the_action_keeps_on_its_page_is_imported(cg_bench: CommandLine) -> None:
    store(stored(1))
    benches = json.loads(exported(cg_bench, "github-action-benchmark"))
    foreign = {"name": "x", "value": 1, "unit": "ns"}
    data = {"entries": {"A": [{"benches": benches}], "B": [{"benches": [foreign]}]}}
    Path("data.js").write_text(f"window.BENCHMARK_DATA = {json.dumps(data)}")
    told = cg_bench("history", "import", "data.js", "--store", "file:other")
    assert told.out.startswith("imported 1 record from data.js")
    assert told.err == "cg-bench: 1 value of other tools skipped\n"
    assert "github-action-benchmark" in cg_bench("history", "show", "--store", "file:other").out


@pytest.mark.parametrize("form", ["bmf", "openmetrics", "otava-csv"])
def test_formats_that_carry_too_little_are_not_imported(cg_bench: CommandLine, form: str) -> None:
    Path("x").write_text("")
    told = cg_bench("history", "import", "--format", form, "x")
    assert told.code == 2
    assert f"error: {form} carries no " in told.err
    assert "so it cannot be imported\n  use jsonl, which loses nothing\n" in told.err


def test_runs_that_otava_cannot_take_are_reported(cg_bench: CommandLine) -> None:
    store(stored(1), stored(2, measured("other")))
    told = cg_bench("history", "export", "--format", "otava-csv")
    assert len(told.out.splitlines()) == 2
    assert told.err.startswith("cg-bench: 1 run left out: ")


def test_metrics_are_those_of_the_whole_history(cg_bench: CommandLine) -> None:
    store(*RECORDS)
    text = exported(cg_bench, "openmetrics")
    assert text.count("cg_bench_score{") == 8
    assert text.endswith("# EOF\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--format", "bmf"], "has no such run"),
        (["--format", "jsonl", "--benchmark", "x"], "jsonl holds whole runs"),
        (["--format", "csv", "--run", "x"], "csv always has all runs"),
        (["--format", "csv", "-o", "none/x"], "cannot write none/x"),
        ([], "missing option '--format'"),
    ],
)
def test_an_export_that_cannot_be_is_reported(cg_bench: CommandLine, words: list[str], told: str) -> None:
    found = cg_bench("history", "export", *words)
    assert (found.code, found.out) == (2, "")
    assert told in found.err


def test_an_export_replaces_a_file_whole_and_keeps_its_mode(cg_bench: CommandLine) -> None:
    store(*RECORDS)
    target = Path("real.csv")
    target.write_text("old" * 10_000)
    target.chmod(0o600)
    Path("link.csv").symlink_to("real.csv")
    assert cg_bench("history", "export", "--format", "csv", "-o", "link.csv").code == 0
    assert target.read_text().count("\n") == 9
    assert target.stat().st_mode & 0o777 == 0o600
    assert Path("link.csv").is_symlink()
    assert sorted(os.listdir()) == [".cg-bench", "link.csv", "real.csv"]


def test_a_damaged_history_leaves_the_file_of_an_earlier_export(cg_bench: CommandLine) -> None:
    there = store(*RECORDS)
    (there.folder / NAMES[5]).write_text("{}")
    Path("h.jsonl").write_text("old")
    told = cg_bench("history", "export", "--format", "jsonl", "-o", "h.jsonl")
    assert told.code == 2
    assert Path("h.jsonl").read_text() == "old"
    assert sorted(os.listdir()) == [".cg-bench", "h.jsonl"]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\0", b"[]x", b"window.", b"a,b\n", b"{}"])
def test_a_file_of_no_known_format_is_reported(cg_bench: CommandLine, content: bytes) -> None:
    Path("x").write_bytes(content)
    told = cg_bench("history", "import", "x")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("cg-bench: error: x:")
    assert not STORE.exists()


# Prune


def test_a_prune_says_what_to_keep(cg_bench: CommandLine) -> None:
    store(*RECORDS)
    told = cg_bench("history", "prune")
    assert told.code == 2
    assert "say which runs to keep or to remove" in told.err
    assert store().names() == NAMES


def test_a_dry_run_says_what_would_go_and_removes_nothing(cg_bench: CommandLine) -> None:
    store(*RECORDS)
    told = cg_bench("history", "prune", "--keep", "6", "--dry-run")
    assert told.code == 0
    assert told.out == f"would remove 2 of 8 runs from file:{Path.cwd()}/.cg-bench\n  {NAMES[0]}\n  {NAMES[1]}\n"
    assert store().names() == NAMES


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (["--keep", "3"], slice(5, 8)),
        (["--keep", "0"], slice(8, 8)),
        (["--keep", "100"], slice(0, 8)),
        (["--before", "2026-01-01T00:02:00Z"], slice(2, 8)),
        (["--before", "2026-01-02", "--keep", "1"], slice(7, 8)),
        (["--before", "2026-01-01T00:01:00Z", "--keep", "1"], slice(1, 8)),
        ([RECORDS[0].uid, NAMES[1], "2000"], slice(3, 8)),
    ],
)
def test_runs_are_removed_and_renames_stay(cg_bench: CommandLine, options: list[str], left: slice) -> None:
    store(*RECORDS, RENAME)
    told = cg_bench("history", "prune", *options)
    assert told.code == 0
    assert told.out.startswith(f"removed {8 - len(NAMES[left])} of 8 runs from ")
    assert store().names() == sorted([*NAMES[left], RENAME.name])


def test_a_damaged_run_can_be_removed_by_its_name(cg_bench: CommandLine) -> None:
    there = store(*RECORDS)
    (there.folder / NAMES[0]).write_text("{}")
    assert cg_bench("history", "fsck").code == 2
    assert cg_bench("history", "prune", NAMES[0]).code == 0
    assert cg_bench("history", "fsck").code == 0


def test_a_damaged_run_can_be_removed_by_its_name_beside_a_damaged_segment(cg_bench: CommandLine) -> None:
    there = store(*RECORDS, FEBRUARY)
    segment = fold(there)
    segment.write_bytes(segment.read_bytes()[:40])
    damaged = segment.read_bytes()
    (there.folder / FEBRUARY.name).write_text("{}")
    told = cg_bench("history", "fsck")
    assert told.code == 2
    assert told.out.startswith("2 problems with 1 record in ")
    assert FEBRUARY.name in told.out
    assert segment.name in told.out
    for words in ([FEBRUARY.uid[:8]], ["--keep", "0"], [NAMES[0]]):
        told = cg_bench("history", "prune", *words)
        assert (told.code, told.out) == (2, "")
        assert segment.name in told.err
    told = cg_bench("history", "prune", FEBRUARY.name)
    assert told.code == 0
    assert told.out.startswith("removed 1 of 1 run from ")
    assert f"warning: segments/{segment.name} cannot be read" in told.err
    assert "it stays as it is" in told.err
    assert not (there.folder / FEBRUARY.name).exists()
    assert segment.read_bytes() == damaged


def test_if_one_run_is_not_there_none_is_removed(cg_bench: CommandLine) -> None:
    store(*RECORDS)
    assert cg_bench("history", "prune", NAMES[0], "ffffffff").code == 2
    assert store().names() == NAMES


# Rename


def test_a_renamed_benchmark_is_one_series_under_its_new_name(cg_bench: CommandLine) -> None:
    store(stored(1), stored(2, measured("new")))
    told = cg_bench("history", "rename", "sieve", "new")
    assert (told.code, told.out) == (0, "sieve is called new from now on, in 1 stored run as well\n")
    rows = list(csv.DictReader(io.StringIO(exported(cg_bench, "csv"), newline="")))
    assert [row["benchmark"] for row in rows] == ["new", "new"]


def test_a_name_that_another_benchmark_of_the_same_runs_has_is_refused(cg_bench: CommandLine) -> None:
    store(stored(1, measured("a", 1), measured("b", 2)))
    told = cg_bench("history", "rename", "a", "b")
    assert (told.code, told.out) == (2, "")
    assert "in 1 run, all that have 'a', another benchmark is called 'b'" in told.err
    store(stored(2, measured("a", 1)))
    told = cg_bench("history", "rename", "a", "b")
    assert (told.code, told.out) == (0, "a is called b from now on, in 1 stored run as well\n")
    assert told.err == "cg-bench: in 1 run both names stay, as there are two benchmarks\n"


def test_renames_in_one_second_hold_in_their_order(cg_bench: CommandLine) -> None:
    store(stored(1))
    names = ["sieve", *"abcdefgh"]
    for old, new in itertools.pairwise(names):
        assert cg_bench("history", "rename", old, new).code == 0
    assert json.loads(exported(cg_bench, "bmf")).keys() == {"h"}
    assert cg_bench("history", "rename", "h", "sieve").code == 0
    assert json.loads(exported(cg_bench, "bmf")).keys() == {"sieve"}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("nope", "x", "has a benchmark 'nope'\n  there are: sieve\n"),
        ("sieve", "sieve", "the new name is the old one"),
        ("sieve", " ", "the new name is empty"),
        ("sieve", "a\udcff", "the new name is not UTF-8"),
    ],
)
def test_a_rename_that_makes_no_sense_is_reported(cg_bench: CommandLine, old: str, new: str, told: str) -> None:
    store(*RECORDS)
    found = cg_bench("history", "rename", old, new)
    assert (found.code, found.out) == (2, "")
    assert told in found.err
    assert store().names() == NAMES


# Sync and fsck


def test_what_one_store_lacks_is_copied_from_another(cg_bench: CommandLine) -> None:
    store(*RECORDS[:5], RENAME)
    store(*RECORDS[3:], folder="other")
    told = cg_bench("history", "sync", "--from", "file:other")
    assert (
        told.out == f"copied 3 records from file:{Path.cwd()}/other to file:{Path.cwd()}/.cg-bench; 2 already there\n"
    )
    assert cg_bench("history", "sync", "--to", "file:other").out.startswith("copied 4 records")
    assert list(store().read()) == list(store(folder="other").read())


def test_a_history_goes_from_files_to_a_database_and_back(cg_bench: CommandLine) -> None:
    pytest.importorskip("sqlalchemy")
    store(*RECORDS, RENAME)
    assert cg_bench("history", "sync", "--to", "sqlite:///h.db").out.startswith("copied 9 records")
    assert exported(cg_bench, "csv", "--store", "sqlite:///h.db") == exported(cg_bench, "csv")
    assert cg_bench("history", "sync", "--from", "sqlite:///h.db", "--to", "file:back").code == 0
    assert list(store(folder="back").read()) == list(store().read())


@pytest.mark.parametrize(
    ("words", "told"), [([], "neither --from nor --to"), (["--from", "file:.cg-bench"], "both are file:")]
)
def test_a_copy_onto_itself_is_refused(cg_bench: CommandLine, words: list[str], told: str) -> None:
    found = cg_bench("history", "sync", *words)
    assert found.code == 2
    assert told in found.err


@pytest.mark.parametrize("url", ["file:typo", "file:.cg-bench", "sqlite:///typo.db"])
def test_a_copy_from_a_store_that_is_not_there_is_an_error(cg_bench: CommandLine, url: str) -> None:
    if url.startswith("sqlite"):
        pytest.importorskip("sqlalchemy")
    store(*RECORDS, folder="other")
    told = cg_bench("history", "sync", "--from", url, "--to", "file:other")
    assert (told.code, told.out) == (2, "")
    assert "there is no history at " in told.err


def test_a_copy_from_the_default_store_before_the_first_run_copies_nothing(cg_bench: CommandLine) -> None:
    assert cg_bench("history", "sync", "--to", "file:other").out.startswith("copied 0 records from ")


def test_a_damaged_record_stops_a_copy(cg_bench: CommandLine) -> None:
    there = store(*RECORDS)
    (there.folder / NAMES[3]).write_text("{}")
    told = cg_bench("history", "sync", "--to", "file:other")
    assert told.code == 2
    assert NAMES[3] in told.err


def test_a_check_finds_nothing_wrong_or_says_what(cg_bench: CommandLine) -> None:
    there = store(*RECORDS)
    told = cg_bench("history", "fsck")
    assert (told.code, told.out) == (0, f"nothing wrong with 8 records in file:{Path.cwd()}/.cg-bench\n")
    (there.folder / NAMES[0]).write_text("{}")
    told = cg_bench("history", "fsck")
    assert told.code == 2
    assert told.out.startswith("1 problem with 8 records in ")
    assert NAMES[0] in told.out
    document = json.loads(cg_bench("history", "fsck", "--format", "json").out)
    assert (document["schema"], document["records"], len(document["problems"])) == ("cg-bench.fsck/1", 8, 1)


def test_a_damaged_run_is_reported_wherever_the_history_is_read(cg_bench: CommandLine) -> None:
    there = store(*RECORDS)
    (there.folder / NAMES[0]).write_text("{}")
    for words in (
        ["list"],
        ["show"],
        ["export", "--format", "csv"],
        ["prune", "--keep", "1"],
        ["rename", "sieve", "x"],
    ):
        told = cg_bench("history", *words)
        assert told.code == 2
        assert NAMES[0] in told.err
        assert "'cg-bench history fsck' lists all that is wrong" in told.err
    assert there.names() == NAMES


def test_every_command_of_a_history_is_known() -> None:
    group = main.cli.get_command(main.cli.make_context("cg-bench", ["history", "list"]), "history")
    assert sorted(getattr(group, "commands", {})) == sorted(
        ["add", "export", "fsck", "import", "list", "prune", "rename", "show", "sync"]
    )


def test_a_commit_means_all_its_runs_to_prune(cg_bench: CommandLine) -> None:
    first = stored(1, measured("a", 1))
    again = run_record(replace(run(1, measured("a", 2)), created_at="2026-03-31T12:00:00Z"))
    kept = store(first, again, stored(2, measured("a", 3)))
    sha = decode(first.data, "x").commit
    assert sha is not None
    told = cg_bench("history", "prune", sha.sha[:8])
    assert (told.code, len(kept.names())) == (0, 1)
    assert told.out.startswith("removed 2 of 3 runs from ")


def test_an_empty_history_says_how_it_is_filled(cg_bench: CommandLine) -> None:
    told = cg_bench("history", "list")
    assert (told.code, told.err) == (0, "cg-bench: 'cg-bench run --save' stores a run\n")


@pytest.mark.parametrize("damage", ["another run's", "cut off"])
def test_a_profile_that_is_not_that_of_the_run_is_reported_and_left_out(cg_bench: CommandLine, damage: str) -> None:
    for number in (1, 2):
        assert (
            cg_bench(
                "history", "add", "--with-profile", written(f"{number}.json", measured("a", 5), number=number)
            ).code
            == 0
        )
    kept = store()
    first, second = (kept.profile_path(name) for name in kept.names())
    first.write_bytes(second.read_bytes() if damage == "another run's" else first.read_bytes()[:50])
    told = cg_bench("history", "fsck")
    assert told.code == 2
    assert first.name in told.out
    told = cg_bench("history", "show", kept.names()[0].split(".")[-2])
    assert told.code == 0
    assert "; the run is shown without it\n" in told.err


def test_a_path_may_begin_at_home(cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    name = written("r.json", measured("a", 5))
    assert cg_bench("history", "add", "--store", "file:~/h", name).code == 0
    assert (tmp_path / "home" / "h" / "runs").is_dir()
    assert not Path("~").exists()


def test_a_time_that_there_is_not_is_refused(cg_bench: CommandLine) -> None:
    name = written("r.json", measured("a", 5))
    text = Path(name).read_text()
    Path(name).write_text(text.replace(json.loads(text)["created_at"], "2026-02-31T12:00:00Z"))
    told = cg_bench("history", "add", name)
    assert told.code == 2
    assert not STORE.exists() or store().names() == []


@pytest.mark.parametrize("created_at", ["2026-02-31T12:00:00Z", "2026-13-41T25:61:61Z"])
def test_a_time_that_there_is_not_is_named_by_fsck_and_can_be_pruned(cg_bench: CommandLine, created_at: str) -> None:
    odd = stored(1, created_at=created_at)
    store(stored(2))
    path = STORE / odd.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(odd.data)  # as an older version stored it
    told = cg_bench("history", "fsck")
    assert (told.code, told.out.splitlines()[0].partition(" with ")[0]) == (2, "1 problem")
    assert odd.name in told.out
    assert cg_bench("history", "prune", odd.name).code == 0
    assert cg_bench("history", "fsck").code == 0


@pytest.mark.parametrize(
    ("words", "method", "what"),
    [
        (["list"], "snapshots", "the records of file:{}/.cg-bench"),
        (["fsck"], "check", "the records of file:{}/.cg-bench"),
        (["prune", "--keep", "1"], "survey", "the records of file:{}/.cg-bench"),
        (["rename", "sieve", "read"], "snapshots", "the records of file:{}/.cg-bench"),
        (["import", "h.jsonl"], "add", "the records of h.jsonl"),
        (["add", "run.json"], "add", "1 result"),
    ],
)
def test_records_that_take_long_to_read_are_said_to_be_read(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, words: list[str], method: str, what: str
) -> None:
    store(stored(1))
    Path("h.jsonl").write_bytes(stored(2).data)
    Path("run.json").write_bytes(stored(3).data)
    looked, look, read = threading.Event(), Waiting.look, getattr(FileStore, method)

    def late(waiting: Waiting, what: str, _past_s: float) -> None:
        look(waiting, what, 2)
        looked.set()

    monkeypatch.setattr(Waiting, "look", late)
    monkeypatch.setattr(FileStore, method, lambda *of: looked.wait(60) and read(*of))
    told = cg_bench("history", *words, "--store", "file:.cg-bench")
    assert told.code == 0
    assert told.err.startswith(f"cg-bench: waiting for {what.format(Path.cwd())}, 2 s\n")
