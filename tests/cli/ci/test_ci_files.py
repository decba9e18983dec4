"""The files of a job that its steps read and write."""

from __future__ import annotations

import pytest

from cachegrind_bench.process import Completed
from tests.cli.ci.job import BASE, SLOWER, Job, base_run, noted, run, unescaped
from tests.unit.samples import failed_benchmark

STEPS = [
    (("compare", "--store", "none"), "artifact/result.json"),
    (("compare", "--store", "none"), "artifact/base.json"),
    (("gate", "--hold", "verdict"), "verdict.json"),
]


@pytest.mark.parametrize(("step", "name"), STEPS, ids=[name for _, name in STEPS])
def test_what_is_not_the_file_of_an_earlier_step_is_an_error(job: Job, step: tuple[str, ...], name: str) -> None:
    job.pull_request().has(SLOWER, base_run()).compared()
    path = job.folder / name
    path.write_bytes(b"\xff\x1b[31m\n::error::x\n")
    told = job.cg_bench("ci", step[0], "--folder", str(job.folder), *step[1:])  # the job itself would read them
    assert told.code == 2
    assert str(path) in noted(told, "error")[0]


@pytest.mark.parametrize("summary", ["/dev", "/dev/full"])
def test_a_summary_that_cannot_be_written_does_not_hide_why_a_step_failed(job: Job, summary: str) -> None:
    job.variables["GITHUB_STEP_SUMMARY"] = summary
    told = job.pull_request().has(run(failed_benchmark(id="broken"))).step("gate", "--hold", "failure")
    assert told.code == 4
    assert "1 of the benchmarks failed: broken" in noted(told, "error")[0]
    warning, error = told.err.splitlines()[:2]
    assert warning.startswith(f"cg-bench: warning: cannot write {summary}")
    assert error == "cg-bench: error: 1 of the benchmarks failed: broken"


def test_where_nothing_was_measured_the_summary_has_the_reason_and_its_advice(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = (
        b"cg-bench: error: abc could not be measured: cg-bench.toml:1: pkg is installed as a copy of your checkout\n"
        b"  install it with 'pip install -e'\n"
    )
    ended = Completed(status=4, signal=None, timed_out=False, stdout=b"", stderr=said, wall_ms=1)
    monkeypatch.setattr("cachegrind_bench.process.run", lambda *_, **__: ended)
    told = job.pull_request().step("measure", "--base", BASE)
    reason = "abc could not be measured: cg-bench.toml:1: pkg is installed as a copy"
    assert told.code == 4
    assert f"nothing was measured: {reason} of your checkout (install it with 'pip install -e'; " in unescaped(
        job.summary
    )
    assert f"nothing was measured: {reason} of your checkout\n  install it with 'pip install -e'; " in told.err
