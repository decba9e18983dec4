"""What a result comes to, where it is told, and what fails."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.vcs import revisions
from cachegrind_bench.vcs.git import Git, GitTimeoutError
from tests.cli.ci.job import BASE, HEAD, SLOWER, STORE, Job, base_run, noted, one, run, unescaped
from tests.unit.pythons import python_profile
from tests.unit.samples import failed_benchmark

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Result
    from tests.unit.repositories import Repository


def test_a_regression_is_seen_everywhere_and_the_gate_fails(job: Job) -> None:
    told = job.pull_request().has(SLOWER, base_run()).compared("--threshold", "1%")
    assert unescaped(job.report).startswith("### ❌ regression: a score +10 %")
    assert any("+10 %" in each for each in noted(told, "error"))
    found = job.outputs
    assert (found["verdict"], found["regressions"], found["improvements"]) == ("regression", "1", "0")
    assert (found["max-regression"], found["comparable"], found["baseline-sha"]) == ("10%", "true", BASE)
    assert found["score"] == "1100000"
    assert decode(Path(found["result-path"]).read_bytes(), "x").benchmarks[0].id == "a"
    assert Path(found["report-path"]).read_text() == job.report
    told = job.step("gate")
    assert (told.code, told.err) == (1, "")
    assert "regression: a score +10 %" in told.out


def test_the_report_says_how_to_do_it_again_and_on_what_it_was_done(job: Job) -> None:
    job.pull_request().has(SLOWER, base_run()).compared()
    assert f"git checkout {BASE[:12]}  # then build or install it, and:\ncg-bench run -o ../base.json\n" in job.report
    assert "cg-bench diff ../base.json ../candidate.json" in job.report
    assert "Valgrind 3.24.0 on x86" in job.report
    assert "ba9876543210" in job.report
    assert "(https://github.com/base/prog/actions/runs/99)" in job.report
    assert "fully sealed" in job.report


def test_of_a_command_its_words_are_reported_and_only_its_benchmark_is_compared(job: Job) -> None:
    job.pull_request().has(SLOWER, base_run(one(), one(name="of another command")))
    job.compared("--command", "./a 'b c' \"`id` ```sh ```\" $HOME", "--id", "a")
    (commands,) = re.findall(r"^````sh$(.*?)^````$", job.report, re.MULTILINE | re.DOTALL)
    assert "cg-bench run -o ../candidate.json --id a -- ./a 'b c' '`id` ```sh ```' '$HOME'\n" in commands
    assert "of another command" not in job.report
    assert job.outputs["verdict"] == "regression"


PYTEST = run(one(1_100_000, command=("pytest", "--cg-bench", "bench/test_a.py::test_a")))
MERGE = run(one(1_100_000), sha="c" * 40)


@pytest.mark.parametrize(
    ("configuration", "candidate", "words", "wanted"),
    [
        ('pytest = "bench"', PYTEST, (), "cg-bench run -o ../candidate.json"),
        ('pytest = "bench"\nsetup = "pip install --target lib ."', PYTEST, (), f"cg-bench ab {BASE[:12]} {HEAD[:12]}"),
        ('pytest = "bench"', PYTEST, ("--baseline", "ab"), f"cg-bench ab {BASE[:12]} {HEAD[:12]}"),
        (
            'pytest = "bench"',
            PYTEST,
            ("--result", "r"),
            "pytest --cg-bench --cg-bench-output=../candidate.json bench/test_a.py",
        ),
        ('id = "a"\ncommand = "true"', SLOWER, (), "cg-bench run -o ../candidate.json"),
        ('id = "a"\ncommand = "true"\nsetup = "make"', SLOWER, (), f"cg-bench ab {BASE[:12]} {HEAD[:12]}"),
        ('criterion = "."', SLOWER, (), f"cg-bench ab {BASE[:12]} {HEAD[:12]}"),
        ("", SLOWER, ("--baseline", "ab", "--command", "./a"), f"cg-bench ab {BASE[:12]} {HEAD[:12]} -- ./a"),
        ("", MERGE, (), f"git fetch origin {BASE} {'c' * 40}\ngit checkout {BASE[:12]}"),
    ],
)
def test_the_report_has_the_commands_that_measure_the_same_commits_in_the_same_way(
    job: Job, configuration: str, candidate: Result, words: tuple[str, ...], wanted: str
) -> None:
    if configuration:
        Path("cg-bench.toml").write_text(f"[[benchmark]]\n{configuration}\n")
    job.pull_request().has(candidate, base_run()).compared(*words)
    (commands,) = re.findall(r"^```sh$(.*?)^```$", job.report, re.MULTILINE | re.DOTALL)
    assert f"\n{wanted}" in commands


def test_a_command_that_no_shell_would_take_is_an_error_in_words(job: Job) -> None:
    """It may be that of a workflow which comments, and has measured nothing itself."""
    told = job.pull_request().has(SLOWER, base_run()).step("compare", "--store", "none", "--command", "it's")
    assert told.code in {0, 2}


def test_what_is_unchanged_passes_and_what_is_better_is_a_notice(job: Job) -> None:
    job.pull_request().has(run(one()), base_run()).compared()
    assert (job.outputs["verdict"], job.outputs["comparable"]) == ("unchanged", "true")
    assert job.step("gate").code == 0
    told = job.has(run(one(900_000)), base_run()).compared()
    assert (job.outputs["verdict"], job.outputs["max-regression"], job.outputs["improvements"]) == (
        "improvement",
        "0%",
        "1",
    )
    assert noted(told, "notice")
    assert noted(told, "error") == noted(told, "warning") == []
    assert job.step("gate").code == 0


def test_no_baseline_is_loud_and_green(job: Job) -> None:
    told = job.pull_request().has(SLOWER).compared()
    (warning,) = noted(told, "warning")
    assert warning == "cg-bench: no baseline: there is no store (store: none)"
    assert not noted(told, "notice")  # that each of them is new needs no annotation, and no line
    assert "no baseline" in job.summary
    assert "only the candidate has it" not in job.summary
    found = job.outputs
    assert (found["verdict"], found["comparable"], found["baseline-sha"]) == ("no baseline", "false", "")
    assert job.step("gate").code == 0


def test_no_baseline_fails_where_one_is_required(job: Job) -> None:
    told = job.pull_request().has(SLOWER).compared("--require-baseline")
    assert any("no baseline" in each for each in noted(told))
    assert job.step("gate").code == 3


def test_a_benchmark_that_failed_is_seen_everywhere_and_the_gate_says_so(job: Job) -> None:
    failed = failed_benchmark(id="broken", error="the command failed with exit status 3")
    told = job.pull_request().has(run(one(), failed), base_run(one(), one(name="broken"))).compared()
    assert any("broken" in each for each in noted(told, "error"))
    assert "broken" in job.summary
    assert (job.outputs["verdict"], job.outputs["comparable"]) == ("failed", "false")
    assert job.step("gate").code == 4
    assert job.step("gate", "--hold", "nothing").code == 0


def test_a_benchmark_that_failed_fails_without_a_baseline_too(job: Job) -> None:
    told = job.pull_request().has(run(one(), failed_benchmark(id="broken"))).compared()
    assert any("broken" in each for each in noted(told, "error"))
    assert any("no baseline" in each for each in noted(told, "warning"))
    assert job.step("gate").code == 4


def test_what_cannot_be_compared_is_seen_everywhere_and_fails(job: Job) -> None:
    other = one(key="ffffffffffff", key_fields={"libc": "another", "tool": "cachegrind"})
    told = job.pull_request().has(run(other), base_run()).compared()
    assert any("measured differently" in each for each in noted(told, "warning"))
    assert "not comparable" in job.summary
    assert (job.outputs["verdict"], job.outputs["comparable"]) == ("not comparable", "false")
    assert job.step("gate").code == 3


def test_a_suspicious_drop_is_seen_everywhere_and_fails(job: Job) -> None:
    told = job.pull_request().has(run(one(1000)), base_run()).compared()
    assert any("does it still do its work" in each for each in noted(told, "warning"))
    assert "suspicious drop" in job.summary
    assert (job.outputs["verdict"], job.outputs["comparable"]) == ("suspicious drop", "false")
    assert job.step("gate").code == 3


def test_a_benchmark_that_is_missing_is_seen_everywhere_and_fails(job: Job) -> None:
    told = job.pull_request().has(run(one()), base_run(one(), one(name="gone"))).compared()
    assert any("gone" in each for each in noted(told, "warning"))
    assert "missing" in job.summary
    assert (job.outputs["verdict"], job.outputs["comparable"]) == ("missing", "false")
    assert job.step("gate").code == 3


@pytest.mark.parametrize(
    ("fail_on", "ir", "code"),
    [
        ("never", 1_100_000, 0),
        ("never", 900_000, 0),
        ("regression", 900_000, 0),
        ("regression", 1_100_000, 1),
        ("any-change", 900_000, 1),
        ("any-change", 1_000_000, 0),
    ],
)
def test_what_fails_is_chosen_and_what_was_found_is_reported_all_the_same(
    job: Job, fail_on: str, ir: int, code: int
) -> None:
    job.pull_request().has(run(one(ir)), base_run()).compared("--fail-on", fail_on)
    expected = {1_100_000: "regression", 900_000: "improvement", 1_000_000: "unchanged"}
    assert job.outputs["verdict"] == expected[ir]
    assert job.step("gate").code == code


def test_what_is_on_the_default_branch_fails_only_if_a_benchmark_failed(job: Job) -> None:
    job.has(SLOWER, base_run()).compared()
    assert job.step("gate", "--hold", "failure").code == 0
    job.has(run(one(), failed_benchmark(id="broken")))
    told = job.step("gate", "--hold", "failure")
    assert told.code == 4


def test_on_the_default_branch_too_a_benchmark_that_failed_is_an_error_beside_the_job_and_a_regression_none(
    job: Job,
) -> None:
    told = job.has(SLOWER, base_run()).compared()
    assert noted(told, "error") == []
    assert any("+10 %" in each for each in noted(told, "warning"))
    told = job.has(run(one(), failed_benchmark(id="broken")), base_run()).compared()
    gate = job.step("gate", "--hold", "failure")
    assert gate.code == 4
    assert any("broken" in each for each in noted(told, "error") + noted(gate, "error"))


def test_a_checkout_of_another_commit_than_the_jobs_is_judged_even_on_the_default_branch(job: Job) -> None:
    job.has(run(one(1_100_000), sha="c" * 40), base_run()).compared()
    assert job.step("gate", "--hold", "failure").code == 1


def test_a_git_that_hangs_is_waited_for_with_a_line(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def hanging(repository: Git, _name: str) -> None:
        repository.waiting.look("git rev-parse", 2.5)
        raise GitTimeoutError("git rev-parse took more than 10 s")

    monkeypatch.setattr(revisions.Repository, "commit", hanging)
    told = job.pull_request().has(SLOWER).step("compare", *STORE)
    assert told.code == 4
    assert told.err.startswith("cg-bench: waiting for git rev-parse, 2 s\n")


def test_a_gate_without_a_comparison_or_a_result_is_an_error(job: Job) -> None:
    assert job.step("gate").code == 2
    assert job.has(SLOWER).step("gate").code == 2


def test_a_baseline_that_is_not_a_word_of_ours_is_an_error(job: Job, repository: Repository) -> None:
    del repository
    told = job.pull_request().has(SLOWER).step("compare", "--baseline", "master", "--store", "file:.cg-bench")
    assert told.code == 2
    assert "not one of merge-base, branch, ab and file:PATH" in told.err


def test_a_base_may_be_a_file(job: Job) -> None:
    (job.root / "kept.json").write_bytes(encode(base_run()))
    job.pull_request().has(SLOWER).compared("--baseline", "file:kept.json")
    assert (job.outputs["verdict"], job.outputs["baseline-sha"]) == ("regression", BASE)


def test_the_base_is_left_with_the_python_functions_it_has(job: Job) -> None:
    python = python_profile({"parse:3": (1, 900_000)})
    (job.root / "kept.json").write_bytes(encode(base_run(one(python=python))))
    job.pull_request().has(SLOWER).compared("--baseline", "file:kept.json")
    (kept,) = decode((job.folder / "artifact" / "base.json").read_bytes(), "x").benchmarks
    assert (kept.python, kept.profile) == (python, one().profile)


@pytest.mark.parametrize("name", ["result.json", "base.json"])
@pytest.mark.parametrize("content", [b"", b'{"schema": "x"}', b"\xff"])
def test_a_result_that_is_invalid_is_an_error_for_all_to_see(job: Job, name: str, content: bytes) -> None:
    job.pull_request().has(SLOWER, base_run())
    (job.folder / "artifact" / name).write_bytes(content)
    told = job.step("compare", "--store", "none")
    assert told.code == 2
    assert noted(told, "error")
    assert name.replace(".", "") in job.summary.replace(".", "").replace("\\", "")
