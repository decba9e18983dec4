"""`cg-bench ci gitlab-comment`: compares in a job of its own, and comments on the merge request."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.ci import gitlab as api
from cachegrind_bench.ci.github import Patience
from cachegrind_bench.model.call_graph import CallGraph, Code
from cachegrind_bench.model.codec import encode
from tests.cli.ci.job import SLOWER, active, base_run, one, run, unescaped
from tests.github_stub import Token
from tests.gitlab_stub import LOGIN, GitLab
from tests.unit.repositories import Repository, git_environment
from tests.unit.samples import HOSTILE

if TYPE_CHECKING:
    from cachegrind_bench.model.result import Result
    from tests.cli.conftest import CommandLine, Told

TOKEN = "glpat-0123456789abcdefghij"


class Pipeline:
    """A job of a merge request's pipeline, whose token is in its environment."""

    def __init__(self, stub: GitLab, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stub, self.cg_bench = stub, cg_bench
        stub.tokens[TOKEN] = Token(LOGIN, {"pull-requests": "write"})
        monkeypatch.setattr(api, "Patience", lambda: Patience(backoff_s=0.001))
        for name, value in (stub.variables() | {"CG_BENCH_TOKEN": TOKEN}).items():
            monkeypatch.setenv(name, value)

    def comment(self, candidate: Result, *words: str) -> Told:
        Path("base.json").write_bytes(encode(base_run()))
        Path("result.json").write_bytes(encode(candidate))
        return self.cg_bench("ci", "gitlab-comment", "base.json", "result.json", *words)


@pytest.fixture
def pipeline(gitlab: GitLab, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    return Pipeline(gitlab, cg_bench, monkeypatch)


def test_what_moved_is_commented_then_kept_up_to_date_and_the_verdict_ends_nothing(pipeline: Pipeline) -> None:
    told = pipeline.comment(SLOWER)
    assert (told.code, told.out) == (0, "")
    assert "comment on merge request 7: written" in told.err
    (body,) = pipeline.stub.bodies()
    assert unescaped(body).startswith("### ❌ regression: a score +10 %")
    assert "[the pipeline](https://gitlab.com/base/prog/-/pipelines/99)" in body
    assert pipeline.comment(run(one())).code == 0
    (body,) = pipeline.stub.bodies()
    assert body.startswith("### ✔️ unchanged")
    assert TOKEN not in told.err + body


def test_the_comment_names_the_hunk_of_the_change(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository(tmp_path / "words", git_environment(tmp_path))
    monkeypatch.chdir(repository.path)
    sides: list[Result] = []
    for body, number in (("return 1;", 5), ("return 2;", 9)):
        Path("words.c").write_text(f"int split(void) {{\n    {body}\n}}\n", encoding="utf-8")
        repository.git("add", ".")
        repository.commit()
        own = {Code("words", str(repository.path / "words.c"), "split"): number * 1_000_000}
        calls = CallGraph(own, {}, dict.fromkeys(own, 1))
        sides.append(run(one(number * 1_000_000, calls=calls), commit=repository.info()))
    for name, side in zip(("base.json", "result.json"), sides, strict=True):
        Path(name).write_bytes(encode(side))
    assert pipeline.cg_bench("ci", "gitlab-comment", "base.json", "result.json").code == 0
    (body,) = pipeline.stub.bodies()
    assert "functions that the change touches: split at words.c:2" in unescaped(body)


@pytest.mark.parametrize(
    ("when", "ir", "number"), [("on-change", 1_000_000, 0), ("always", 1_000_000, 1), ("never", 1_100_000, 0)]
)
def test_when_there_is_a_comment_is_chosen(pipeline: Pipeline, when: str, ir: int, number: int) -> None:
    assert pipeline.comment(run(one(ir)), "--comment", when).code == 0
    assert len(pipeline.stub.bodies()) == number


def test_a_threshold_of_the_configuration_holds(pipeline: Pipeline) -> None:
    Path("cg-bench.toml").write_text('threshold = "20%"\n')
    assert pipeline.comment(SLOWER).code == 0
    assert pipeline.stub.bodies() == []


def test_hostile_names_are_text(pipeline: Pipeline) -> None:
    names = [HOSTILE, "/approve", "\n/merge\n", "a\n  /close", "!1 @all #1"]
    Path("base.json").write_bytes(encode(base_run(*(one(name=name) for name in names))))
    Path("result.json").write_bytes(encode(run(*(one(1_100_000, name=name) for name in names))))
    told = pipeline.cg_bench("ci", "gitlab-comment", "base.json", "result.json")
    assert told.code == 0
    (body,) = pipeline.stub.bodies()
    found = active(
        body.replace("https://gitlab.com/base/prog/-/pipelines/99", "https://github.com/base/prog/actions/runs/99")
    )
    assert found == {}


def test_a_merge_request_that_moved_on_gets_no_comment_and_nothing_fails(pipeline: Pipeline) -> None:
    pipeline.stub.sha = "c" * 40
    told = pipeline.comment(SLOWER)
    assert (told.code, pipeline.stub.bodies()) == (0, [])
    assert "has a newer commit" in told.err
    pipeline.stub.state = "closed"
    assert "was closed or merged" in pipeline.comment(SLOWER).err


def test_without_a_token_nothing_is_asked_and_that_is_an_error(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CG_BENCH_TOKEN")
    told = pipeline.comment(SLOWER)
    assert told.code == 2
    assert "CG_BENCH_TOKEN" in told.err
    assert pipeline.stub.requests == []


@pytest.mark.parametrize("around", ["{}\n", " {}\r\n", "{}\nx", "{} {}", "{}\x7f", "ä{}"])
def test_a_token_with_more_than_the_line_break_that_was_pasted_with_it_is_an_error_that_does_not_show_it(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, around: str
) -> None:
    monkeypatch.setenv("CG_BENCH_TOKEN", around.format(TOKEN, TOKEN))
    told = pipeline.comment(SLOWER)
    plain = around.strip() == "{}"
    assert (told.code, len(pipeline.stub.bodies())) == ((0, 1) if plain else (2, 0))
    assert ("a character that no token has" in told.err) != plain
    assert TOKEN not in told.out + told.err


@pytest.mark.parametrize("status", [502, 403])
def test_a_comment_that_cannot_be_written_is_an_error_without_githubs_commands(pipeline: Pipeline, status: int) -> None:
    pipeline.stub.fail_next(1000, status)
    told = pipeline.comment(SLOWER)
    assert told.code == 2
    assert f"HTTP status {status}" in told.err
    assert "::" not in told.out + told.err


def test_what_git_runs_does_not_see_the_token(pipeline: Pipeline) -> None:
    seen = list[str | None]()
    pipeline.stub.before("", lambda: seen.append(os.environ.get("CG_BENCH_TOKEN")))
    assert pipeline.comment(SLOWER).code == 0
    assert seen == [None]


def test_outside_a_merge_request_it_says_where_it_works(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI_MERGE_REQUEST_IID")
    told = pipeline.comment(SLOWER)
    assert told.code == 2
    assert "merge request pipelines of GitLab" in told.err
