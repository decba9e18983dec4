"""A result that an earlier step of the job made takes the place of measuring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cachegrind_bench.model.codec import encode
from tests.cli.ci.job import SLOWER, base_run, noted, one, run

if TYPE_CHECKING:
    from tests.cli.ci.job import Job
    from tests.unit.repositories import Repository


def test_the_result_is_taken_as_it_is(job: Job) -> None:
    given = job.root / "given.json"
    given.write_bytes(encode(SLOWER))
    told = job.pull_request().step("measure", "--result", str(given))
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith("cg-bench: taken from ")
    assert (job.folder / "artifact" / "result.json").read_bytes() == given.read_bytes()


@pytest.mark.parametrize(
    ("data", "others", "message"),
    [
        (None, (), "cannot read"),
        (b"{}", (), "given.json"),
        (encode(SLOWER), ("--command", "true"), "result and command exclude each other"),
        (encode(SLOWER), ("--shard", "1/2"), "result and shard exclude each other"),
        (encode(SLOWER), ("--id", "a"), "result and id exclude each other"),
        (encode(SLOWER), ("--base", "abc"), "result and baseline: ab exclude each other"),
    ],
)
def test_what_is_not_a_result_or_has_inputs_for_measuring_is_an_error(
    job: Job, data: bytes | None, others: tuple[str, ...], message: str
) -> None:
    given = job.root / "given.json"
    if data is not None:
        given.write_bytes(data)
    told = job.pull_request().step("measure", "--result", str(given), *others)
    assert told.code != 0
    assert message in told.err
    assert any(message in each for each in noted(told, "error"))
    assert not (job.folder / "artifact" / "result.json").exists()


def test_a_result_of_another_commit_than_the_one_checked_out_is_refused(job: Job, repository: Repository) -> None:
    repository.commit()
    given = job.root / "given.json"
    given.write_bytes(encode(SLOWER))
    told = job.pull_request().step("measure", "--result", str(given))
    assert told.code == 2
    assert "given.json is of commit aaaaaaaaaaaa, and " in told.err


def test_a_report_says_how_to_do_it_again_with_pytest(job: Job) -> None:
    made = [
        replace(one(name=name), command=("pytest", "--cg-bench", name))
        for name in ("b/test_a.py::test_a[x]", "b/test_a.py::test_b", "c d.py::test_c")
    ]
    job.pull_request().has(run(*made), base_run(made[0])).compared()
    assert "pytest --cg-bench --cg-bench-output=../base.json b/test_a.py\n" in job.report
    assert "pytest --cg-bench --cg-bench-output=../candidate.json b/test_a.py 'c d.py'\n" in job.report
    assert "cg-bench diff ../base.json ../candidate.json" in job.report
    assert "cg-bench run" not in job.report
