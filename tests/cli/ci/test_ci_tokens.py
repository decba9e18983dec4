"""Who sees the token, and who is taken for a command."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench import process
from cachegrind_bench.model.codec import encode
from tests.cli.ci.job import BASE, ENCODED, SLOWER, STORE, TOKEN, Job, active, noted, one, run

if TYPE_CHECKING:
    from tests.unit.repositories import Repository

NAMES = ("CG_BENCH_TOKEN", "GITHUB_TOKEN", "GH_TOKEN")


@pytest.mark.parametrize("base", [(), ("--base", BASE)])
def test_what_measures_sees_no_token_and_no_input_of_the_action(job: Job, base: tuple[str, ...]) -> None:
    seen: list[dict[str, str]] = []

    def fake(command: list[str], *, env: dict[str, str], **_: Any) -> SimpleNamespace:
        seen.append(env)
        assert TOKEN not in " ".join(command)
        (job.folder / "ab").mkdir()
        for place in ("artifact/result.json", "ab/candidate.json", "ab/base.json"):
            (job.folder / place).write_bytes(encode(SLOWER))
        return SimpleNamespace(status=0, signal=None, stdout=b"", stderr=b"", timed_out=False, wall_ms=1)

    job.monkeypatch.setattr(process, "run", fake)
    for name in NAMES:
        job.monkeypatch.setenv(name, TOKEN)
    for name in ("COMMAND", "FOLDER", "MODE", "STORE", "THRESHOLD", "FAIL_ON", "ISSUES", "BASELINE"):
        job.monkeypatch.setenv(f"CG_BENCH_{name}", {"COMMAND": "./a", "FOLDER": str(job.folder)}.get(name, "x"))
    job.monkeypatch.setenv("MY_SETTING", "stays")
    told = job.pull_request().step("measure", *base)
    assert told.code == 0, told.err
    (environ,) = seen
    assert not [name for name, value in environ.items() if TOKEN in value or ENCODED in value or name in NAMES]
    assert not [name for name in environ if name.startswith("CG_BENCH_") and name != "CG_BENCH_PYTHON"]
    assert environ["MY_SETTING"] == "stays"


def test_a_program_of_our_own_gets_the_token_for_git_only(job: Job, repository: Repository) -> None:
    """Of the variables that hold it, none is called so, and git alone reads those."""
    seen: list[dict[str, str]] = []

    def fake(command: list[str], *, env: dict[str, str], **_: Any) -> SimpleNamespace:
        seen.append(env)
        assert TOKEN not in " ".join(command)
        return SimpleNamespace(status=0, signal=None, stdout=b"", stderr=b"", timed_out=False, wall_ms=1)

    sha = repository.commit("a")
    for name in NAMES:
        job.monkeypatch.setenv(name, TOKEN)
    job.monkeypatch.setenv("GITHUB_SHA", sha)
    job.has(run(one(), sha=sha)).monkeypatch.setattr(process, "run", fake)
    assert job.step("store", *STORE).code == 0
    environ = seen[-1]
    assert not [name for name, value in environ.items() if TOKEN in value]
    (holder,) = (name for name, value in environ.items() if ENCODED in value)
    assert holder.startswith("GIT_CONFIG_VALUE_")
    assert "http.https://github.com/.extraheader" in environ.values()


def test_what_a_program_prints_is_not_a_command_of_the_workflow(job: Job) -> None:
    def fake(_: list[str], *, echo: Any, **__: Any) -> SimpleNamespace:
        echo(b"::error::from the program\n##[add-mask]e\n::set-output name=verdict::unchanged\n::endgroup::\n")
        (job.folder / "artifact" / "result.json").write_bytes(encode(SLOWER))
        return SimpleNamespace(status=4, signal=None, stdout=b"", stderr=b"", timed_out=False, wall_ms=1)

    job.monkeypatch.setattr(process, "run", fake)
    told = job.pull_request().step("measure")
    assert told.code == 0, told.err
    assert "from the program" in told.out
    assert noted(told) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a && b", "no shell runs it"),
        ("a > b", "no shell runs it"),
        ("it's", "command:"),
        ("a\nb", "several lines"),
        ("a\n::error::b", "several lines"),
    ],
)
def test_a_command_that_would_need_a_shell_is_refused_with_the_way_to_write_it(job: Job, text: str, words: str) -> None:
    told = job.step("measure", "--command", text)
    assert told.code == 2
    assert words in told.err
    assert len(noted(told, "error")) == 1


def test_nothing_measured_is_an_error_whose_reason_may_be_any_text(job: Job) -> None:
    said = b"cg-bench: error: no \x1b[2J ##[add-mask]e <b> @someone\r::error::x\n"
    done = SimpleNamespace(status=2, signal=None, stdout=b"", stderr=said, timed_out=False, wall_ms=1)
    job.monkeypatch.setattr(process, "run", lambda *_, **__: done)
    told = job.step("measure")
    assert told.code == 4
    (error,) = noted(told, "error")
    assert "nothing was measured: no " in error
    assert active(job.summary) == {}
