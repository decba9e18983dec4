"""`cg-bench run --save`: what was measured goes into the history, failures too, and a bad store is told before the work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from cachegrind_bench.errors import (
    CommandFailedError,
    CommandTimeoutError,
    MeasurementError,
    NoValgrindError,
    StoreError,
)
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.result import Commit, Status
from cachegrind_bench.store.files import FileStore
from cachegrind_bench.store.reading import snapshot
from cachegrind_bench.store.record import run_record
from cachegrind_bench.usecases.saving import left_if_unwritten
from cachegrind_bench.vcs import commits
from tests.unit.samples import benchmark, result

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Snapshot
    from tests.cli.conftest import CommandLine, ReplayRunner

SUITE = """\
[[benchmark]]
id = "one"
command = "/bin/true 1"

[[benchmark]]
id = "two"
command = "/bin/true 2"
"""


def kept(folder: str = ".cg-bench") -> list[Snapshot]:
    found = FileStore(Path(folder))
    assert found.check() == []
    return [snapshot(record) for record in found.read()]


@pytest.fixture
def suite() -> None:
    Path(".git").mkdir()
    Path("cg-bench.toml").write_text(SUITE)


# What is kept


def test_a_measurement_is_stored_with_its_counts_and_without_its_profile(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    told = cg_bench("run", "--save", "-o", "r.json", "--", "/bin/true")
    assert told.code == 0
    whole = decode(Path("r.json").read_bytes(), "r")
    record = run_record(whole)
    assert told.err.endswith(f"cg-bench: stored in file:{Path.cwd()}/.cg-bench as {record.uid}\n")
    assert list(FileStore(Path(".cg-bench")).read()) == [record]
    assert b'"profile":null' in record.data
    assert [path.name for path in Path(".cg-bench").rglob("*.gz")] == []
    assert len(replay.executed) == 2


def test_the_profile_is_kept_beside_it_where_that_is_asked_for(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    assert cg_bench("run", "--save", "--with-profile", "-o", "r.json", "--", "/bin/true").code == 0
    store = FileStore(Path(".cg-bench"))
    (name,) = store.names()
    assert store.profile(name) == Path("r.json").read_bytes()
    assert store.check() == []


def test_the_same_run_stored_twice_is_one(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    for word in ("stored in", "it was there already in"):
        told = cg_bench("run", "--save", "--", "/bin/true")  # the clock of these tests stands still
        assert f"cg-bench: {word} file:" in told.err
    assert len(kept()) == 1


def test_with_quiet_nothing_is_said(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    told = cg_bench("run", "--save", "-q", "--", "/bin/true")
    assert (told.code, told.out, told.err) == (0, "", "")
    assert len(kept()) == 1


@pytest.mark.usefixtures("suite")
def test_a_suite_is_stored_as_one_run(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    assert cg_bench("run", "--save", "-o", "r.json").code == 0
    (found,) = kept()
    assert [point.id for point in found.points] == ["one", "two"]
    assert found.uid == run_record(decode(Path("r.json").read_bytes(), "r")).uid


@pytest.mark.usefixtures("suite")
def test_the_store_can_be_configured_or_given_by_the_environment(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    del replay
    Path("cg-bench.toml").write_text(f'store = "file:mine"\n{SUITE}')
    Path("below").mkdir()
    monkeypatch.chdir("below")
    monkeypatch.setenv("CG_BENCH_SAVE", "1")
    assert cg_bench("run", "-q", "--", "/bin/true").code == 0
    assert len(kept("../mine")) == 1
    monkeypatch.setenv("CG_BENCH_STORE", "file:other")
    assert cg_bench("run", "-q", "--", "/bin/true").code == 0
    assert len(kept("other")) == 1


def test_without_save_nothing_is_stored(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    del replay
    assert cg_bench("run", "-q", "--store", "file:h", "--", "/bin/true").code == 0
    assert os.listdir() == []


# What failed


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CommandFailedError("the command failed", exit_status=3), Status.FAILED),
        (CommandTimeoutError("it took too long"), Status.TIMEOUT),
    ],
)
def test_a_command_that_failed_is_stored_as_that(
    replay: ReplayRunner, cg_bench: CommandLine, error: Exception, status: Status
) -> None:
    replay.failures = [None, error]
    told = cg_bench("run", "--save", "--id", "it", "--", "/bin/true")
    assert told.code == 4
    (found,) = kept()
    (point,) = found.points
    assert (point.id, point.status, point.counts) == ("it", status, None)


def test_without_valgrind_nothing_is_stored(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    replay.failures = [None, NoValgrindError("no Valgrind")]
    assert cg_bench("run", "--save", "--", "/bin/true").code == 4
    assert kept() == []


@pytest.mark.usefixtures("suite")
def test_of_a_suite_a_benchmark_that_failed_is_stored_without_counts(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    replay.failures = [None, CommandFailedError("the command failed", exit_status=3)]
    assert cg_bench("run", "-j", "1", "--save").code == 4
    (found,) = kept()
    assert [(point.id, point.status, point.counts is None) for point in found.points] == [
        ("one", Status.FAILED, True),
        ("two", Status.OK, False),
    ]


def test_an_interrupted_run_is_not_stored(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    replay.failures = [None, KeyboardInterrupt()]
    assert cg_bench("run", "--save", "--", "/bin/true").code == 130
    assert kept() == []


# A store that will not do


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--store", "s3://x"], "is not a store URL"),
        (["--store", "file:taken"], "cannot make the folder"),
        (["--store", "sqlite:///none/h.db"], "none/h.db"),
        (["--with-profile", "--store", "sqlite:///h.db"], "keeps no profiles"),
    ],
)
def test_a_store_that_cannot_be_used_is_reported_before_anything_is_measured(
    replay: ReplayRunner, cg_bench: CommandLine, options: list[str], told: str
) -> None:
    Path("taken").touch()
    found = cg_bench("run", "--save", *options, "--", "/bin/true")
    assert (found.code, found.out) == (2, "")
    assert told in found.err
    assert replay.executed == []


@pytest.mark.usefixtures("suite")
def test_a_store_that_cannot_be_used_is_reported_before_a_suite_is_measured(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    Path("taken").touch()
    assert cg_bench("run", "--save", "--store", "file:taken").code == 2
    assert replay.executed == []


def test_profiles_without_a_store_are_refused(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    told = cg_bench("run", "--with-profile", "--", "/bin/true")
    assert told.code == 2
    assert "--with-profile has an effect only together with --save\n  add --save\n" in told.err
    assert replay.executed == []


def test_the_folder_is_there_before_the_program_is_started(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    execute = replay._execute

    def look(target: Any) -> Any:
        seen.append(sorted([*os.listdir(), *os.listdir(".cg-bench")]))
        return execute(target)

    monkeypatch.setattr(replay, "_execute", look)
    assert cg_bench("run", "--save", "--", "/bin/true").code == 0
    assert seen == [[".cg-bench", ".gitignore"]] * 2


def test_a_store_that_breaks_while_measuring_costs_neither_report_nor_file(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    def broken() -> None:
        Path(".cg-bench/.gitignore").unlink()
        Path(".cg-bench").rmdir()
        Path(".cg-bench").touch()

    replay.failures = [None, broken]
    told = cg_bench("run", "--save", "-o", "r.json", "--", "/bin/true")
    assert told.code == 2
    assert told.out.startswith("true\n")
    assert "error: the result was not stored: " in told.err
    assert "kept in .cg-bench either: 'cg-bench run -o FILE' writes a file for 'cg-bench history add'" in told.err
    assert encode(decode(Path("r.json").read_bytes(), "r")) == Path("r.json").read_bytes()


def test_what_cannot_be_stored_after_all_is_left_in_a_file_that_can_be_added_later(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    Path("s").mkdir()

    def broken() -> None:
        Path("s/runs.json").unlink(missing_ok=True)
        Path("s/.gitignore").unlink(missing_ok=True)
        Path("s").rmdir()
        Path("s").touch()

    replay.failures = [None, broken]
    told = cg_bench("run", "--save", "--store", "file:s", "--", "/bin/true")
    assert told.code == 2
    assert told.out.startswith("true\n")
    (file,) = Path(".cg-bench/unstored").iterdir()
    assert f"it is kept in {file.absolute()}; try again with: cg-bench history add --store file:" in told.err
    Path("s").unlink()
    assert cg_bench(*told.err.rstrip().rpartition("try again with: cg-bench ")[2].split()).code == 0
    assert len(kept("s")) == 1


def test_an_interrupt_while_storing_leaves_the_result_in_a_file(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    del replay

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(FileStore, "add", interrupted)
    told = cg_bench("run", "--save", "--", "/bin/true")
    assert told.code == 130
    (file,) = Path(".cg-bench/unstored").iterdir()
    assert f"the result was not stored: it is kept in {file.absolute()}" in told.err


def test_before_a_store_that_may_take_long_is_asked_the_result_is_in_a_file(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cachegrind_bench.store.sql.store import SqlStore

    listings: list[list[str]] = []
    execute, add = replay._execute, SqlStore.add

    def look(target: Any) -> Any:
        listings.append(os.listdir(".cg-bench"))
        return execute(target)

    def added(store: SqlStore, records: Any) -> int:
        (file,) = Path(".cg-bench/unstored").iterdir()
        assert [run_record(decode(file.read_bytes(), "r"))] == records
        return add(store, records)

    monkeypatch.setattr(replay, "_execute", look)
    monkeypatch.setattr(SqlStore, "add", added)
    for _ in range(2):
        assert cg_bench("run", "--save", "--store", "sqlite:///h.db", "--", "/bin/true").code == 0
        assert os.listdir(".cg-bench/unstored") == []
    assert all(found == listings[0] for found in listings)


def test_a_profile_that_cannot_be_kept_is_told_apart_from_the_run(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    del replay

    def full(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(FileStore, "keep_profile", full)
    told = cg_bench("run", "--save", "--with-profile", "--", "/bin/true")
    assert told.code == 2
    assert "the result was stored, but not its profile: the disk is full" in told.err
    assert "try again with: cg-bench history add --with-profile " in told.err
    assert len(kept()) == 1


def test_a_run_of_a_changed_checkout_is_warned_of(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    del replay
    changed = Commit(sha="a" * 40, parent=None, branch="main", dirty=True, committed_at="2026-01-31T12:00:00Z")
    monkeypatch.setattr("cachegrind_bench.vcs.commits.commit_info", lambda *_: changed)
    told = cg_bench("run", "--save", "-q", "--", "/bin/true")
    assert told.code == 0
    assert told.err == "cg-bench: warning: stored, but in no report: tracked files differ from the commit\n"


@pytest.mark.parametrize("why", ["not in a git repository", "the branch has no commit yet"])
def test_a_run_that_no_report_can_show_is_warned_of(
    replay: ReplayRunner, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    del replay
    monkeypatch.setattr(commits, "commit_info", Mock(side_effect=MeasurementError(why)))
    told = cg_bench("run", "--save", "--", "/bin/true")
    assert told.code == 0
    assert f"warning: stored without a commit, so in no report: {why}" in told.err


@pytest.mark.parametrize("command", [["--", "/bin/true"], []])
@pytest.mark.usefixtures("suite")
def test_a_file_that_cannot_be_written_after_all_costs_neither_report_nor_history(
    replay: ReplayRunner, cg_bench: CommandLine, command: list[str]
) -> None:
    def broken() -> None:
        Path("o/r.json").parent.rmdir()

    Path("o").mkdir()
    replay.failures = [None, broken]
    told = cg_bench("run", "--save", "-o", "o/r.json", *command)
    assert told.code == 2
    assert "12,207" in told.out
    assert "error: cannot write o/r.json: No such file or directory" in told.err
    assert len(kept()) == 1
    (file,) = Path(".cg-bench/unstored").iterdir()
    assert told.err.endswith(f"\n  what was measured is kept in {file.absolute()}\n")
    assert cg_bench("show", str(file)).code == 0


@pytest.mark.usefixtures("replay")
def test_a_result_is_kept_when_an_interrupt_ends_its_writing(
    cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cachegrind_bench.store.durable.write_atomic", Mock(side_effect=KeyboardInterrupt))
    told = cg_bench("run", "-o", "r.json", "--", "/bin/true")
    assert told.code == 130
    (file,) = Path(".cg-bench/unstored").iterdir()
    assert told.err.endswith(f"cg-bench: interrupted\n  what was measured is kept in {file.absolute()}\n")
    assert cg_bench("show", str(file)).code == 0


def test_what_a_file_cannot_take_stays_where_it_was_left_when_a_database_has_the_result(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    def broken() -> None:
        Path("o/r.json").parent.rmdir()

    Path("o").mkdir()
    replay.failures = [None, broken]
    told = cg_bench("run", "--save", "--store", "sqlite:///history.db", "-o", "o/r.json", "--", "/bin/true")
    assert told.code == 2
    (file,) = Path(".cg-bench/unstored").iterdir()
    assert told.err.endswith(f"\n  what was measured is kept in {file.absolute()}\n")
    assert cg_bench("show", str(file)).code == 0


def test_what_cannot_become_a_baseline_after_all_is_left_in_a_file(replay: ReplayRunner, cg_bench: CommandLine) -> None:
    def broken() -> None:
        Path(".cg-bench/baselines").rmdir()
        Path(".cg-bench/baselines").touch()

    Path(".cg-bench/baselines").mkdir(parents=True)
    replay.failures = [None, broken]
    told = cg_bench("run", "--save-baseline", "main", "--", "/bin/true")
    assert told.code == 2
    (file,) = Path(".cg-bench/unstored").iterdir()
    assert f"what was measured is kept in {file.absolute()}" in told.err


def test_all_results_are_left_where_one_cannot_be_written(tmp_path: Path) -> None:
    found = result(), result(benchmark(id="b"))
    with pytest.raises(StoreError, match="full") as caught, left_if_unwritten(tmp_path, *found):
        raise StoreError("full", hint="free some space")
    assert len(os.listdir(tmp_path / ".cg-bench/unstored")) == 2
    assert str(caught.value.hint).count("what was measured is kept in ") == 2


def test_a_command_that_failed_stays_the_error_where_that_cannot_be_stored(
    replay: ReplayRunner, cg_bench: CommandLine
) -> None:
    def broken() -> None:
        Path(".cg-bench/.gitignore").unlink()
        Path(".cg-bench").rmdir()
        Path(".cg-bench").touch()
        raise CommandFailedError("the command failed", exit_status=3)

    replay.failures = [None, broken]
    told = cg_bench("run", "--save", "--", "/bin/true")
    assert told.code == 4
    assert "cg-bench: warning: the result was not stored: " in told.err
    assert "cg-bench: error: the command failed\n" in told.err
