"""`cg-bench trend` and `bisect`: which history is read, what is written, and what ends in which exit code."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cachegrind_bench.store.files import FileStore
from cachegrind_bench.store.record import run_record
from tests.cli.test_diff_history import file, run
from tests.unit.repositories import PATH, Repository, git_environment

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine

pytestmark = pytest.mark.skipif(shutil.which("git", path=PATH) is None, reason="no git")

LEVELS = [1_000_000] * 4 + [1_050_000] * 4


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Return a repository with a step at its fifth commit, every commit measured."""
    found = Repository(tmp_path / "repository", git_environment(tmp_path))
    monkeypatch.chdir(found.path)
    for name, value in found.environ.items():
        monkeypatch.setenv(name, value)
    for number, level in enumerate(LEVELS):
        sha = found.commit(f"commit {number}", GIT_COMMITTER_DATE=f"{1_700_000_000 + 86_400 * number} +0000")
        measured = run(sha, level)
        assert measured.commit is not None
        at = f"{datetime.fromtimestamp(1_700_000_000 + 86_400 * number, UTC):%Y-%m-%dT%H:%M:%SZ}"
        store(replace(measured, commit=replace(measured.commit, committed_at=at)))
    return found


def store(*runs: Any) -> None:
    FileStore(Path(".cg-bench").absolute()).add([run_record(item) for item in runs])


def findings(cg_bench: CommandLine, *words: str) -> list[dict[str, Any]]:
    told = cg_bench("trend", "--json", "t.json", *words)
    assert told.code == 0, told.err
    found: list[dict[str, Any]] = json.loads(Path("t.json").read_bytes())["findings"]
    return found


def test_a_step_is_found_with_its_commit_and_reported_in_every_form(
    repository: Repository, cg_bench: CommandLine
) -> None:
    sha = repository.git("rev-parse", "HEAD~3")
    (found,) = findings(cg_bench, "--html", "t.html", "--markdown", "t.md")
    assert (found["kind"], found["suspects"], found["confirmed"]) == ("regression", [sha], True)
    assert sha[:7] in Path("t.html").read_text()
    told = cg_bench("trend")
    assert (told.code, told.err) == (0, "")
    assert sha[:7] in told.out
    assert sha[:7] in Path("t.md").read_text()


def test_what_was_in_the_last_report_is_not_new_and_only_what_is_new_fails(
    repository: Repository, cg_bench: CommandLine
) -> None:
    del repository
    Path("none.json").write_text('{"schema": "cg-bench.trend/1", "findings": []}')
    assert cg_bench("trend", "--previous", "none.json", "--fail-on", "new-regression").code == 1
    assert cg_bench("trend", "--previous", "none.json").code == 0
    (found,) = findings(cg_bench, "--previous", "none.json")
    assert found["state"] == "new"
    Path("t.json").rename("last.json")
    (found,) = findings(cg_bench, "--previous", "last.json")
    assert found["state"] == "open"
    assert cg_bench("trend", "--previous", "last.json", "--fail-on", "new-regression").code == 0


def test_a_report_is_made_of_what_can_be_read_and_names_the_rest(repository: Repository, cg_bench: CommandLine) -> None:
    del repository
    store = FileStore(Path(".cg-bench"))
    broken = store.names()[0]
    (store.folder / broken).write_bytes(b"{}")
    told = cg_bench("trend", "--json", "t.json")
    assert told.code == 2
    assert broken in told.err
    assert json.loads(Path("t.json").read_bytes())["benchmarks"]
    assert cg_bench("trend", "--fail-on", "new-regression").code in (1, 2)


@pytest.mark.parametrize(("form", "start"), [("json", "{"), ("markdown", "### "), ("html", "<!doctype html>")])
def test_one_report_can_go_to_stdout(repository: Repository, cg_bench: CommandLine, form: str, start: str) -> None:
    del repository
    told = cg_bench("trend", f"--{form}", "-")
    assert (told.code, told.out[: len(start)], told.err) == (0, start, "")
    assert not Path("-").exists()
    assert cg_bench("trend", "--json", "-", "--html", "-").code == 2
    assert cg_bench("trend", "--previous", "-").code == 2


def test_outside_of_a_repository_it_is_said_why_nothing_was_found(cg_bench: CommandLine) -> None:
    told = cg_bench("trend", "--store", "file:s")
    assert told.code == 0
    assert told.err.endswith(
        "no run of these commits; there are none here, as this is not a git repository with commits\n"
    )


def test_a_repository_that_git_will_not_read_is_not_taken_for_none(
    repository: Repository, cg_bench: CommandLine
) -> None:
    (repository.path / ".git" / "HEAD").write_text("")
    told = cg_bench("trend", "--fail-on", "new-regression")
    assert (told.code, told.out) == (4, "")


def test_how_a_change_is_accepted_is_reported_where_one_stands(repository: Repository, cg_bench: CommandLine) -> None:
    sha = repository.git("rev-parse", "HEAD~3")
    told = cg_bench("trend", "--markdown", "t.md", "--html", "t.html").out
    entry = f'    [[accepted]]\n    benchmark = "a"\n    commit = "{sha[:12]}"\n    reason = "…"\n'
    assert f"Was one intended? Accept it in cg-bench-accepted.toml:\n{entry}" in told
    assert sha[:12] in Path("t.md").read_text()
    assert "Was one intended?" in Path("t.html").read_text()
    assert "Was one intended?" not in cg_bench("trend", "--branch", "HEAD~4").out


def test_the_heading_is_the_name_of_the_whole_project(
    repository: Repository, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository.path / "deep").mkdir()
    monkeypatch.chdir(repository.path / "deep")
    assert cg_bench("trend").out.startswith("repository: ")


def test_on_the_first_night_there_is_no_previous_report(repository: Repository, cg_bench: CommandLine) -> None:
    del repository
    told = cg_bench("trend", "--previous", "t.json", "--json", "t.json")
    assert (told.code, "within a day of the newest commit" in told.out) == (0, True)
    assert told.err == "cg-bench: there is no previous report t.json: findings of the newest day count as new\n"
    assert "since the last report" in cg_bench("trend", "--previous", "t.json").out


def test_the_page_says_what_was_judged_by(repository: Repository, cg_bench: CommandLine) -> None:
    del repository
    assert cg_bench("trend", "--html", "t.html", "--min-step", "0.5%", "-q").code == 0
    page = Path("t.html").read_text()
    assert "Smallest step" in page
    assert "0.5%" in page


def test_an_accepted_change_is_acknowledged_with_its_reason(repository: Repository, cg_bench: CommandLine) -> None:
    sha = repository.git("rev-parse", "HEAD~3")
    text = f'[[accepted]]\nbenchmark = "*"\ncommit = "{sha[:10]}"\nreason = "checks its input"\n'
    Path("cg-bench-accepted.toml").write_text(text)
    (found,) = findings(cg_bench)
    assert (found["state"], found["reason"]) == ("acknowledged", "checks its input")
    Path("cg-bench-accepted.toml").rename("elsewhere.toml")
    (found,) = findings(cg_bench)
    assert found["state"] != "acknowledged"
    (found,) = findings(cg_bench, "--accepted", "elsewhere.toml")
    assert found["state"] == "acknowledged"


def test_an_accepted_change_that_concerns_nothing_is_reported(repository: Repository, cg_bench: CommandLine) -> None:
    sha = repository.git("rev-parse", "HEAD~3")
    entries = [("a", sha), ("b", sha), ("*", "0123456789")]
    Path("cg-bench-accepted.toml").write_text(
        "".join(f'[[accepted]]\nbenchmark = "{name}"\ncommit = "{at}"\nreason = "x"\n' for name, at in entries)
    )
    told = cg_bench("trend", "-q")
    lines = told.err.splitlines()
    assert (told.code, told.out, len(lines)) == (0, "", 2)
    assert lines[0].startswith(
        "cg-bench: warning: line 5 of the accepted changes concerns nothing here: benchmark 'b', "
    )
    assert lines[1].endswith("benchmark '*', commit 0123456789")
    assert len(cg_bench("trend", "-q", "--benchmark", "a").err.splitlines()) == 1


def test_benchmark_branch_and_store_choose_what_is_read(repository: Repository, cg_bench: CommandLine) -> None:
    del repository
    told = cg_bench("trend", "--benchmark", "other-*")
    assert (told.code, told.out) == (2, "")
    assert told.err == "cg-bench: error: --benchmark 'other-*': no run of these commits has a matching benchmark\n"
    assert findings(cg_bench, "--branch", "HEAD~4") == []
    assert len(findings(cg_bench, "--branch", "main")) == 1
    told = cg_bench("trend", "--store", "file:elsewhere")
    assert (told.code, told.err) == (0, f"cg-bench: warning: file:{Path.cwd()}/elsewhere has no run of these commits\n")
    assert "Nothing was measured at these commits" in told.out
    assert cg_bench("trend", "--store", "file:elsewhere", "--fail-on", "new-regression").code == 3


def test_what_is_too_small_to_tell_can_be_chosen(repository: Repository, cg_bench: CommandLine) -> None:
    del repository
    assert len(findings(cg_bench, "--min-step", "4.9%")) == 1
    assert findings(cg_bench, "--min-step", "6%") == []
    told = cg_bench("trend", "--creep-budget", "0.00001%")
    assert (told.code, told.err) == (
        2,
        "cg-bench: error: --creep-budget 0.00001% is too small\n  the smallest is 0.0001%\n",
    )
    assert cg_bench("trend", "--min-step", "0.2").code == 2


def test_a_history_can_be_read_without_its_repository(
    repository: Repository, cg_bench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (found,) = findings(cg_bench, "--store", f"file:{repository.path}/.cg-bench")
    assert found["kind"] == "regression"


@pytest.mark.parametrize(
    ("levels", "told"),
    [
        ([1_000_000 + 1_700 * n for n in range(30)], "crept up little by little\n  cg-bench ab "),
        ([1_000_000, 1_200_000] * 15, "is unstable\n  run 'cg-bench verify' to find the cause\n"),
    ],
)
def test_only_steps_are_narrowed_down(
    repository: Repository, cg_bench: CommandLine, levels: list[int], told: str
) -> None:
    for number, level in enumerate(levels):
        measured = run(repository.commit(f"more {number}"), level)
        store(replace(measured, env=replace(measured.env, key="f" * 12)))
    (found,) = [found for found in findings(cg_bench) if found["kind"] in ("creep", "unstable")]
    answer = cg_bench("bisect", found["id"])
    assert (answer.code, told in answer.err) == (2, True)


def test_a_shallow_clone_is_fetched_as_far_back_as_there_are_runs(
    repository: Repository, cg_bench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.path}", str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    url = f"file:{repository.path}/.cg-bench"
    (found,) = findings(cg_bench, "--store", url)
    assert found["suspects"] == [repository.git("rev-parse", "HEAD~3")]
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.path}", str(tmp_path / "alone"))
    monkeypatch.chdir(tmp_path / "alone")
    shutil.copytree(repository.path / ".cg-bench", tmp_path / "store")
    repository.path.rename(tmp_path / "gone")
    told = cg_bench("trend", "--store", f"file:{tmp_path}/store")
    assert told.code == 0
    assert "cg-bench: warning: the clone is shallow and could not be deepened: " in told.err
    assert "fetch-depth: 0" in told.err


def test_each_command_says_what_to_do_about_commits_that_a_shallow_clone_lacks(
    repository: Repository, cg_bench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.path}", str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    mine = file("mine", run(repository.git("rev-parse", "HEAD"), 1_000_000))
    for words in (
        ("ab", "main~3", "--", "true"),
        ("backfill", "main~3..main", "--", "true"),
        ("backfill", "HEAD..main~3", "--", "true"),
        ("bisect", "1234", "--branch", "main~3"),
        ("trend", "--branch", "main~3"),
        ("diff", "main~3", mine),
        ("diff", "rev:main~3", mine),
        ("diff", "merge-base:main~3", mine),
    ):
        told = cg_bench(*words)
        assert told.code == 2
        assert "'main~3'" in told.err
        assert "\n  this clone is shallow: git fetch --unshallow (for actions/checkout: fetch-depth: 0)\n" in told.err
    told = cg_bench("backfill", "main", "--carry", "absent", "--", "true")
    assert told.err.startswith(
        "cg-bench: commits of main are missing, as this clone is shallow: git fetch --unshallow ("
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--previous", "."], "cannot read .: Is a directory"),
        (["--previous", "bad.json"], "bad.json: not a trend report"),
        (["--accepted", "nonesuch"], "cannot read nonesuch: No such file or directory"),
        (["--accepted", "bad.json"], "bad.json:1: "),
        (["--branch", "nonesuch"], "git knows no commit 'nonesuch'"),
        (["--commit-url", "javascript:alert({sha})"], "is not a web address with {sha}"),
        (["--html", "no/t.html"], "cannot write no/t.html"),
        (["--html", "t", "--json", "t"], "--json and --html name the same file"),
        (["--model", "best"], "'best' is not a cost model"),
        (["--since", "soon"], "'soon' is not a date"),
        (["--store", "ftp://x"], "is not a store URL"),
    ],
)
def test_bad_input_is_reported_in_a_sentence(
    repository: Repository, cg_bench: CommandLine, words: list[str], told: str
) -> None:
    del repository
    Path("bad.json").write_text('["x"]')
    found = cg_bench("trend", *words)
    assert (found.code, found.out) == (2, "")
    assert told in found.err
    assert "Traceback" not in found.err


def test_a_finding_of_one_commit_needs_no_measuring(repository: Repository, cg_bench: CommandLine) -> None:
    (found,) = findings(cg_bench)
    told = cg_bench("bisect", found["id"][:5])
    assert told.code == 0
    assert f"it is\n  {repository.git('rev-parse', 'HEAD~3')[:12]}  " in told.out
    assert "commit 4" in told.out


def test_a_finding_that_is_not_there_is_reported(repository: Repository, cg_bench: CommandLine) -> None:
    del repository
    told = cg_bench("bisect", "zzz")
    assert told.code == 2
    assert "there is no finding 'zzz'" in told.err
    assert "regression of a" in told.err
