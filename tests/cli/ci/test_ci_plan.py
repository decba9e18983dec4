"""What a job has to do, as its first step finds out."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from cachegrind_bench.model.codec import encode
from tests.cli.ci.job import Job, noted
from tests.unit.comparing import measured
from tests.unit.samples import result


def test_a_pull_request_is_planned_and_a_folder_made_for_it(job: Job) -> None:
    told = job.pull_request().step("plan", "--index", "0")
    assert (told.code, told.err) == (0, "")
    found = job.outputs
    folder = Path(found.pop("folder"))
    assert (folder / "artifact").is_dir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {
        name: found[name] for name in ("measure", "collect", "compare", "comment", "store", "trend", "hold", "base")
    } == {
        "measure": "true",
        "collect": "",
        "compare": "true",
        "comment": "true",
        "store": "false",
        "trend": "false",
        "hold": "verdict",
        "base": "",
    }
    assert found["artifact"].startswith("cg-bench-result-benchmarks-0")
    assert "pull_request: measure, compare, comment" in told.out


@pytest.mark.parametrize("repo", ["contributor/prog", None])
def test_for_a_fork_no_comment_is_planned_and_its_data_is_left(job: Job, repo: str | None) -> None:
    assert job.pull_request(repo=repo).step("plan").code == 0
    assert (job.outputs["comment"], job.outputs["store"], job.outputs["measure"]) == ("false", "false", "true")
    assert job.outputs["artifact"]


def test_after_another_workflow_its_artifacts_are_collected_and_nothing_is_measured(job: Job) -> None:
    assert job.workflow_run().step("plan").code == 0
    found = job.outputs
    assert (found["measure"], found["collect"], found["comment"]) == ("false", "42", "true")
    assert (found["store"], found["artifact"], found["hold"]) == ("false", "", "nothing")


def test_after_a_push_there_is_nothing_to_comment_on_and_that_is_reported(job: Job) -> None:
    told = job.workflow_run(event="push").step("plan")
    assert (told.code, job.outputs["collect"], job.outputs["comment"]) == (0, "", "false")
    (notice,) = noted(told, "notice")
    assert "nothing to comment on: the run was for a push" in notice
    assert "nothing to do" in told.out


def test_pull_request_target_is_refused_for_all_to_see(job: Job) -> None:
    job.pull_request()
    job.monkeypatch.setenv("GITHUB_EVENT_NAME", "pull_request_target")
    told = job.step("plan")
    assert told.code == 2
    assert "pull_request_target is not supported" in told.err
    assert any("pull_request_target is not supported" in each for each in noted(told, "error"))
    assert "pull_request_target is not supported" in job.summary
    assert job.outputs == {}


def test_a_temporary_folder_that_is_not_there_is_an_error(job: Job) -> None:
    job.monkeypatch.setenv("RUNNER_TEMP", "/nonexistent")
    told = job.step("plan")
    assert told.code == 2
    assert "cannot make a folder in /nonexistent: No such file or directory" in told.err


def test_outside_of_a_job_it_is_said_what_to_use(job: Job) -> None:
    job.monkeypatch.delenv("GITHUB_EVENT_NAME")
    told = job.step("plan")
    assert told.code == 2
    assert "this is not a job of GitHub Actions" in told.err


@pytest.mark.parametrize("name", ["../x", "x.toml", "\n::error::x/cg-bench.toml", "cg-bench.toml"])
def test_a_configuration_that_is_invalid_is_reported_without_what_its_name_would_do(job: Job, name: str) -> None:
    told = job.step("plan", "--config", name)
    assert told.code == 2
    assert len(noted(told)) == 1


def test_commands_run_where_the_configuration_is(job: Job) -> None:
    (job.root / "sub").mkdir()
    (job.root / "sub" / "cg-bench.toml").write_text("")
    assert job.step("plan", "--config", "sub/cg-bench.toml").code == 0
    assert job.outputs["directory"] == str(job.root / "sub")


@pytest.mark.parametrize("baseline", ["merge-base", "file:base.json"])
def test_benchmarks_of_frameworks_are_to_count_as_many_iterations_as_the_base(job: Job, baseline: str) -> None:
    base = result(measured("BM_map", iterations=1000), measured("command"))
    Path("base.json").write_bytes(encode(base))
    assert job.cg_bench("history", "add", "--store", "file:history", "base.json").code == 0
    words = ("--store", "file:history", "--baseline", baseline)
    assert job.pull_request().step("plan", *words).code == 0
    assert not (Path(job.outputs["folder"]) / "iterations.json").exists()  # a suite of commands has none
    Path("cg-bench.toml").write_text("[[benchmark]]\ngoogle-benchmark = './bench'\n")
    assert job.step("plan", *words).code == 0
    assert json.loads((Path(job.outputs["folder"]) / "iterations.json").read_bytes()) == {"BM_map": 1000}
