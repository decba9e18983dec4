"""The steps of a job of GitHub Actions, with a simulated GitHub: what is told where, what fails, and what hostile data gets.

Nothing is measured: results are prepared, and the API is tests/github_stub.py. One file, though long: all of it needs `Job`.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import stat
import struct
import zipfile
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench import process
from cachegrind_bench.ci import api as ci_api
from cachegrind_bench.ci.api import Patience
from cachegrind_bench.ci.sticky import Outcome, marker, post
from cachegrind_bench.cli import ci_collect
from cachegrind_bench.model.codec import decode, encode
from cachegrind_bench.model.result import Commit, SealPart, SealState, Status, comparability_key
from cachegrind_bench.store.files import FileStore
from cachegrind_bench.store.record import run_record
from tests import github_stub
from tests.github_stub import BOT, Stub, Token
from tests.unit.comparing import counts, measured
from tests.unit.repositories import PATH, Repository, git_environment
from tests.unit.samples import HOSTILE, failed_benchmark, profile_of, result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cachegrind_bench.model.result import Benchmark, Result
    from tests.cli.conftest import CommandLine, Told

REPO, TOKEN = "base/prog", "ghs_16C7e42F292c6912E7710c838347Ae178B4a"
ENCODED = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()  # as git sends it
HEAD, BASE = "a" * 40, "b" * 40
MEASURING = "Measure"


# What GitHub makes of what a job leaves.


@dataclass(frozen=True)
class Order:
    """A workflow command that the runner found in a log: an annotation, or worse."""

    name: str
    title: str
    text: str


_ORDERS = (
    *("internal-set-repo-path", "set-env", "set-output", "save-state", "add-path", "add-mask", "remove-matcher"),
    *("add-matcher", "warning", "error", "notice", "debug", "group", "endgroup", "echo", "stop-commands"),
)


def orders(log: str) -> list[Order]:
    """Return the commands in a log as the runner finds them (actions/runner, ActionCommand.cs).

    One begins a line with `::`, or, as an older form has it, stands anywhere in it behind `##[`.
    """
    found: list[Order] = []
    stopped = ""
    for line in re.split(r"\r\n|\r|\n", log):
        known = (*_ORDERS, *([stopped] if stopped else []))
        new = re.match(r"\s*::([^\s:]+)(?: ([^\n]*?))?::(.*)", line)
        old = re.search(r"##\[([^\s;\]]+)(?: ([^\n\]]*?))?;?\](.*)", line)
        match = next((each for each in (new, old) if each and each[1] in known), None)
        if match is None:
            continue
        if stopped:
            stopped = "" if match[1] == stopped else stopped
        elif match[1] == "stop-commands":
            assert len(match[3]) > 20, "a word that can be guessed"
            stopped = match[3]
        else:
            title = re.search(r"title=([^,]*)", match[2] or "")
            found.append(Order(match[1], title[1] if title else "", match[3]))
    assert not stopped, "commands were stopped for good"
    return found


def noted(told: Told, level: str = "") -> list[str]:
    """Return the annotations of a step, and see to it that there is no other command in its log."""
    found = [each for each in orders(told.out) if each.name not in {"group", "endgroup"}]
    assert {each.name for each in found} <= {"error", "warning", "notice"}
    assert all(each.title == "cg-bench" or ": " in each.title.replace("%3A", ":") for each in found)
    assert [each.name for each in orders(told.err)] == []
    return [f"{each.title}: {each.text}" for each in found if level in ("", each.name)]


_OURS = (
    *("details", "/details", "summary", "/summary", "sub", "/sub", "br"),
    *("!-- cg-bench:[0-9a-f]{16} --", "!-- cg-bench:[0-9a-f]{16} --"),
)
_ACTIVE = {
    "a tag": re.compile(rf"<(?!(?:{'|'.join(_OURS)})>)[A-Za-z/!?]"),
    "a mention": re.compile(r"@[A-Za-z0-9]"),
    "a reference": re.compile(r"#[0-9]|\bGH\\?-[0-9]"),  # it reads them in spite of a backslash
    "a link": re.compile(r"(?<!\\)\]\((?!https://github\.com/base/prog/actions/runs/|http://127)|(?<!\\)\]:"),
    "an image": re.compile(r"(?<!\\)!\["),
    "an address": re.compile(r"(?<!\()https?:/|www\.[a-z]", re.IGNORECASE),
    "emphasis": re.compile(r"(?<!\\)\*\*b|(?<!\\)`x"),
    "a formula": re.compile(r"(?<!\\)\$x"),
    "a heading": re.compile(r"^\s*#{1,6} (?!(❌|💥|❓|🚫|🌊|↔️|✅|🆕|✔️) )", re.MULTILINE),
    "a control character": re.compile("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]"),
}
# Of these, what matters within HTML as well, where no Markdown is read: the title of what is folded.
_EVERYWHERE = ("a tag", "a mention", "a reference", "an address", "a control character")
_TITLE = re.compile(r"(?<=<details><summary>).*?(?=</summary>$)", re.MULTILINE)
_FENCE = re.compile(r"^```(?:sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def active(markdown: str) -> dict[str, list[str]]:
    """Return what GitHub would make more than text of, but for what our reports consist of."""
    assert all("```" not in block for block in _FENCE.findall(markdown))
    outside = _FENCE.sub("", markdown)
    titles = "\n".join(_TITLE.findall(outside))
    outside = _TITLE.sub("", outside)
    assert not re.search(r"(?<!\\)```", outside)
    found = {name: [each[0] for each in pattern.finditer(outside)] for name, pattern in _ACTIVE.items()}
    for name in _EVERYWHERE:
        found[name] += [each[0] for each in _ACTIVE[name].finditer(titles)]
    return {name: each for name, each in found.items() if each}


def unescaped(markdown: str) -> str:
    return markdown.replace("\\", "")


def outputs(text: str) -> dict[str, str]:
    """Read a file of outputs as the runner does."""
    found: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in filter(None, lines):
        name, mark, delimiter = line.partition("<<")
        assert mark, line
        value: list[str] = []
        for each in lines:
            if each == delimiter:
                break
            value.append(each)
        found[name] = "\n".join(value)
    return found


# A job.


@dataclass
class Job:
    """One job: its event, its folder, what it leaves, and GitHub."""

    root: Path
    stub: Stub
    cg_bench: CommandLine
    monkeypatch: pytest.MonkeyPatch
    folder: Path = field(init=False)
    output: Path = field(init=False)
    page: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder = self.root / "shared"
        (self.folder / "artifact").mkdir(parents=True)
        self.output, self.page = self.root / "output", self.root / "summary"
        self.stub.repository(REPO)
        self.variables = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.stub.url,
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_REPOSITORY": REPO,
            "GITHUB_RUN_ID": "99",
            "GITHUB_WORKFLOW": "Benchmarks",
            "GITHUB_JOB": "benchmarks",
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.page),
            "GITHUB_EVENT_PATH": str(self.root / "event.json"),
            "RUNNER_TEMP": str(self.root),
        }
        self.is_for("push", {}, GITHUB_REF="refs/heads/main")

    def is_for(self, name: str, payload: Mapping[str, object], **more: str) -> Job:
        whole = {"repository": {"full_name": REPO, "default_branch": "main"}, **payload}
        Path(self.variables["GITHUB_EVENT_PATH"]).write_text(json.dumps(whole))
        self.variables |= {"GITHUB_EVENT_NAME": name, "GITHUB_SHA": HEAD, **more}
        for variable, value in self.variables.items():
            self.monkeypatch.setenv(variable, value)
        return self

    def pull_request(self, *, number: int = 7, head: str = HEAD, repo: str | None = REPO) -> Job:
        side = {"sha": head, "ref": "topic", "repo": None if repo is None else {"full_name": repo}}
        pull = {"number": number, "head": side, "base": {"sha": BASE, "ref": "main"}}
        return self.is_for("pull_request", {"pull_request": pull}, GITHUB_REF=f"refs/pull/{number}/merge")

    def workflow_run(self, **changes: object) -> Job:
        home = {"full_name": "contributor/prog", "owner": {"login": "contributor"}}
        run = {"id": 42, "name": MEASURING, "event": "pull_request", "head_sha": HEAD, "head_branch": "topic"}
        payload = {"workflow_run": {**run, "head_repository": home, **changes}}
        return self.is_for("workflow_run", payload, GITHUB_REF="refs/heads/main")

    def has(self, candidate: Result, base: Result | None = None) -> Job:
        """Leave a result as 'measure' does, maybe with a base measured beside it."""
        (self.folder / "artifact" / "result.json").write_bytes(encode(candidate))
        if base is not None:
            (self.folder / "artifact" / "base.json").write_bytes(encode(base))
        return self

    def step(self, name: str, *words: str) -> Told:
        told = self.cg_bench("ci", name, *([] if name == "plan" else ["--folder", str(self.folder)]), *words)
        everything = [told.out, told.err, self.summary, self.report, json.dumps(self.outputs)]
        everything += [path.read_text("utf-8", "replace") for path in self.folder.rglob("*") if path.is_file()]
        assert not any(secret in text for text in everything for secret in (TOKEN, ENCODED))
        assert told.code != 70, told.err
        return told

    def compared(self, *words: str) -> Told:
        told = self.step("compare", "--store", "none", *words)
        assert told.code == 0, told.err
        assert self.report in self.summary
        return told

    @property
    def summary(self) -> str:
        return self.page.read_text() if self.page.exists() else ""

    @property
    def outputs(self) -> dict[str, str]:
        return outputs(self.output.read_text()) if self.output.exists() else {}

    @property
    def report(self) -> str:
        path = self.folder / "report.md"
        return path.read_text() if path.exists() else ""

    def comments(self, number: int = 7) -> list[str]:
        return [each.body for each in self.stub.comments(REPO, number)]


@pytest.fixture(scope="module")
def server() -> Iterator[Stub]:
    with github_stub.serve() as found:
        yield found


@pytest.fixture
def stub(server: Stub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """Return the one stand-in of these tests, with nothing in it."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    for kept in (server.tokens, server.repositories, server.violations, server.requests, server._events):
        kept.clear()
    server._ids = count(101)
    server.tokens[TOKEN] = Token(BOT, {"actions": "read", "issues": "write", "pull-requests": "write"})
    yield server
    assert server.violations == []


@pytest.fixture(autouse=True)
def _steps_change_no_environment_but_their_own() -> Iterator[None]:
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def job(tmp_path: Path, stub: Stub, cg_bench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setattr(ci_api, "Patience", lambda: Patience(secondary_s=0.01, backoff_s=0.001))
    return Job(tmp_path, stub, cg_bench, monkeypatch)


def run(*benchmarks: Benchmark, sha: str = HEAD, **changes: Any) -> Result:
    commit = Commit(sha=sha, parent=None, branch="main", dirty=False, committed_at="2026-01-30T12:00:00Z")
    return result(*benchmarks, commit=changes.pop("commit", commit), **changes)


def one(ir: int = 1_000_000, name: str = "a", **changes: Any) -> Benchmark:
    value = counts(ir)
    return measured(name, value, **{"profile": profile_of(main=value), **changes})


def base_run(*benchmarks: Benchmark, **changes: Any) -> Result:
    return run(*(benchmarks or (one(),)), sha=BASE, **changes)


SLOWER = run(one(1_100_000))


def zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


# Plan.


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


def test_after_a_push_there_is_nothing_to_comment_on_and_that_is_told(job: Job) -> None:
    told = job.workflow_run(event="push").step("plan")
    assert (told.code, job.outputs["collect"], job.outputs["comment"]) == (0, "", "false")
    (notice,) = noted(told, "notice")
    assert "nothing to comment on: what was measured is a push" in notice
    assert "nothing to do" in told.out


def test_pull_request_target_is_refused_for_all_to_see(job: Job) -> None:
    job.pull_request()
    job.monkeypatch.setenv("GITHUB_EVENT_NAME", "pull_request_target")
    told = job.step("plan")
    assert told.code == 2
    assert "pull_request_target is not supported" in told.err
    assert any("pull_request_target is not supported" in each for each in noted(told, "error"))
    assert "pull\\_request\\_target is not supported" in job.summary
    assert job.outputs == {}


def test_outside_of_a_job_it_is_said_what_to_use(job: Job) -> None:
    job.monkeypatch.delenv("GITHUB_EVENT_NAME")
    told = job.step("plan")
    assert told.code == 2
    assert "this is no job of GitHub Actions" in told.err


@pytest.mark.parametrize("name", ["../x", "x.toml", "\n::error::x/cg-bench.toml", "cg-bench.toml"])
def test_a_configuration_that_is_none_is_told_without_what_its_name_would_do(job: Job, name: str) -> None:
    told = job.step("plan", "--config", name)
    assert told.code == 2
    assert len(noted(told)) == 1


def test_commands_run_where_the_configuration_is(job: Job) -> None:
    (job.root / "sub").mkdir()
    (job.root / "sub" / "cg-bench.toml").write_text("")
    assert job.step("plan", "--config", "sub/cg-bench.toml").code == 0
    assert job.outputs["directory"] == str(job.root / "sub")


# Compare, and the gate after it.


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
    assert f"git checkout {BASE[:12]}  # then build or install it, and:\ncg-bench run -o base.json" in job.report
    assert "cg-bench diff base.json candidate.json" in job.report
    assert "Valgrind 3.24.0 on x86" in job.report
    assert "ba9876543210" in job.report
    assert "(https://github.com/base/prog/actions/runs/99)" in job.report
    assert "fully sealed" in job.report


def test_of_a_command_its_words_are_told_and_only_its_benchmark_is_compared(job: Job) -> None:
    job.pull_request().has(SLOWER, base_run(one(), one(name="of another command")))
    job.compared("--command", "./a 'b c' \"`id`\" $HOME", "--id", "a")
    assert "cg-bench run -o candidate.json --id a -- ./a 'b c' ''id'' '$HOME'" in job.report.replace("'\"'\"'", "'")
    assert "of another command" not in job.report
    assert job.outputs["verdict"] == "regression"


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
    assert any("no baseline" in each for each in noted(told, "warning"))
    assert "no baseline" in job.summary
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
def test_what_fails_is_chosen_and_what_was_found_is_told_all_the_same(
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


def test_a_gate_without_a_comparison_or_a_result_is_an_error(job: Job) -> None:
    assert job.step("gate").code == 2
    assert job.has(SLOWER).step("gate").code == 2
    (job.folder / "verdict.json").write_text('{"headline": "fine", "code": "zero"}')
    assert job.step("gate").code == 2


def test_a_baseline_that_is_no_word_of_ours_is_an_error(job: Job, repository: Repository) -> None:
    del repository
    told = job.pull_request().has(SLOWER).step("compare", "--baseline", "master", "--store", "file:.cg-bench")
    assert told.code == 2
    assert "none of merge-base, branch, ab and file:PATH" in told.err


def test_a_base_may_be_a_file(job: Job) -> None:
    (job.root / "kept.json").write_bytes(encode(base_run()))
    job.pull_request().has(SLOWER).compared("--baseline", "file:kept.json")
    assert (job.outputs["verdict"], job.outputs["baseline-sha"]) == ("regression", BASE)


@pytest.mark.parametrize("name", ["result.json", "base.json"])
@pytest.mark.parametrize("content", [b"", b"[]", b'{"schema": "x"}', b"{" * 100_000, b"\xff", b"NaN"])
def test_a_result_that_is_none_is_an_error_for_all_to_see(job: Job, name: str, content: bytes) -> None:
    job.pull_request().has(SLOWER, base_run())
    (job.folder / "artifact" / name).write_bytes(content)
    told = job.step("compare", "--store", "none")
    assert told.code == 2
    assert noted(told, "error")
    assert name.replace(".", "") in job.summary.replace(".", "").replace("\\", "")


# With a history.


@pytest.fixture
def repository(job: Job) -> Repository:
    if shutil.which("git", path=PATH) is None:
        pytest.skip("no git")
    found = Repository(job.root / "repository", git_environment(job.root))
    for name, value in found.environ.items():
        job.monkeypatch.setenv(name, value)
    job.monkeypatch.setenv("PATH", os.pathsep.join([str(Path(shutil.which("python3") or "/usr/bin/x").parent), PATH]))
    job.monkeypatch.chdir(found.path)
    return found


def save(*runs: Result) -> None:
    FileStore(Path(".cg-bench").absolute()).add([run_record(item) for item in runs])


STORE = ("--store", "file:.cg-bench")


def test_a_pull_request_is_compared_with_what_it_was_merged_with(job: Job, repository: Repository) -> None:
    base = repository.commit("base")
    repository.git("switch", "--quiet", "-c", "topic")
    repository.commit("topic")
    repository.git("switch", "--quiet", "main")
    main = repository.commit("main goes on")
    repository.git("merge", "--quiet", "--no-ff", "-m", "merge", "topic")
    merge = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "--quiet", "--detach")
    save(run(one(1), sha=base), run(one(), sha=main))
    job.pull_request().monkeypatch.setenv("GITHUB_SHA", merge)
    told = job.has(run(one(1_100_000), sha=merge)).step("compare", *STORE, "--token", TOKEN)
    assert told.code == 0, told.err
    assert (job.outputs["verdict"], job.outputs["baseline-sha"]) == ("regression", main)


def test_an_empty_history_is_no_baseline_and_says_so(job: Job, repository: Repository) -> None:
    sha = repository.commit("a")
    job.monkeypatch.setenv("GITHUB_SHA", sha)
    told = job.has(run(one(), sha=sha)).step("compare", *STORE)
    assert told.code == 0, told.err
    assert job.outputs["verdict"] == "no baseline"
    assert any("no baseline" in each for each in noted(told, "warning"))
    assert "no baseline" in job.summary


def test_an_environment_that_changed_is_no_baseline_and_what_changed_is_told(job: Job, repository: Repository) -> None:
    first, second = repository.commit("a"), repository.commit("b")
    there = run(one(), sha=first)
    fields = {**there.env.fields, "valgrind": "3.16.1"}
    save(replace(there, env=replace(there.env, fields=fields, key=comparability_key(fields))))
    job.monkeypatch.setenv("GITHUB_SHA", second)
    here = run(one(), sha=second)
    here = replace(here, env=replace(here.env, key=comparability_key(here.env.fields)))
    told = job.has(here).step("compare", *STORE, "--require-baseline")
    assert told.code == 0, told.err
    assert job.outputs["verdict"] == "no baseline"
    assert "valgrind 3.16.1 → 3.24.0" in job.summary
    assert job.step("gate").code == 3


def test_a_push_is_stored_for_its_commit_and_found_by_the_next(job: Job, repository: Repository) -> None:
    first = repository.commit("a")
    job.monkeypatch.setenv("GITHUB_SHA", first)
    told = job.has(run(one(), sha=first)).step("store", *STORE, "--token", TOKEN)
    assert told.code == 0, told.err
    assert noted(told) == []
    assert any((repository.path / ".cg-bench").rglob("*"))
    second = repository.commit("b")
    job.monkeypatch.setenv("GITHUB_SHA", second)
    assert job.has(run(one(1_100_000), sha=second)).step("compare", *STORE).code == 0
    assert (job.outputs["verdict"], job.outputs["baseline-sha"]) == ("regression", first)


def test_a_result_of_another_commit_is_not_stored(job: Job) -> None:
    told = job.has(run(one(), sha="c" * 40)).step("store", *STORE)
    assert told.code == 2
    assert "not stored" in told.err
    assert noted(told, "error")
    assert not Path(".cg-bench").exists()
    told = job.workflow_run(event="push", head_sha="d" * 40).has(run(one())).step("store", *STORE)
    assert told.code == 2


def stored_quietly(job: Job) -> list[list[str]]:
    """Let no command of our own run, and return what would have."""
    words: list[list[str]] = []

    def fake(command: list[str], **_: Any) -> SimpleNamespace:
        words.append(command)
        return SimpleNamespace(status=0, signal=None, stdout=b"", stderr=b"", timed_out=False, wall_ms=1)

    job.monkeypatch.setattr(process, "run", fake)
    return words


@pytest.mark.parametrize("dirty", [True, False])
def test_what_no_report_would_show_is_stored_with_a_warning(job: Job, *, dirty: bool) -> None:
    words = stored_quietly(job)
    commit = Commit(sha=HEAD, parent=None, branch=None, dirty=True, committed_at="2026-01-30T12:00:00Z")
    told = job.has(run(one(), commit=commit if dirty else None)).step("store", *STORE)
    assert told.code == 0, told.err
    (warning,) = noted(told, "warning")
    assert ("building changed files" if dirty else "without a commit") in warning
    assert words[-1][-2:] == ["file:.cg-bench", str(job.folder / "artifact" / "result.json")]


def test_a_history_that_cannot_be_written_is_an_error_with_the_reason_and_the_permission(job: Job) -> None:
    told = b"x\ncg-bench: error: the branch is protected\n  ::error::x\n"
    done = SimpleNamespace(status=2, signal=None, stdout=b"", stderr=told, timed_out=False, wall_ms=1)
    job.monkeypatch.setattr(process, "run", lambda *_, **__: done)
    found = job.has(run(one())).step("store", *STORE)
    assert found.code == 2
    (error,) = noted(found, "error")
    assert "the result was not stored: the branch is protected" in error
    assert "contents: write" in error


# Tokens.


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


def test_what_a_program_prints_is_no_command_of_the_workflow(job: Job) -> None:
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


# Comments.


def commented(job: Job, *words: str) -> Told:
    return job.step("comment", "--token", TOKEN, *words)


def test_what_moved_is_commented_and_then_kept_up_to_date(job: Job) -> None:
    job.stub.add_pull(REPO, head="base:topic", number=7)
    job.pull_request().has(SLOWER, base_run()).compared()
    told = commented(job)
    assert (told.code, noted(told)) == (0, [])
    (body,) = job.comments()
    assert unescaped(body).startswith("### ❌ regression: a score +10 %")
    assert len(body) < 60_000
    job.has(run(one())).compared()
    assert commented(job).code == 0
    (body,) = job.comments()
    assert body.startswith("### ✔️ unchanged")


@pytest.mark.parametrize(
    ("when", "ir", "number"),
    [
        ("on-change", 1_000_000, 0),
        ("always", 1_000_000, 1),
        ("never", 1_100_000, 0),
        ("on-change", 900_000, 1),
        ("on-change", 1_100_000, 1),
    ],
)
def test_when_there_is_a_comment_is_chosen(job: Job, when: str, ir: int, number: int) -> None:
    job.stub.add_pull(REPO, head="base:topic", number=7)
    job.pull_request().has(run(one(ir)), base_run()).compared()
    assert commented(job, "--comment", when).code == 0
    assert len(job.comments()) == number


def test_no_baseline_alone_is_no_reason_for_a_comment(job: Job) -> None:
    job.stub.add_pull(REPO, head="base:topic", number=7)
    job.pull_request().has(run(one())).compared()
    assert commented(job).code == 0
    assert job.comments() == []


def test_a_fork_may_not_comment_which_is_a_warning_and_fails_nothing(job: Job) -> None:
    job.stub.tokens[TOKEN] = Token(BOT, {"pull-requests": "read"})
    job.stub.add_pull(REPO, number=7)
    job.pull_request(repo="contributor/prog").has(SLOWER, base_run()).compared()
    told = commented(job)
    assert (told.code, job.comments()) == (0, [])
    (warning,) = noted(told, "warning")
    assert "no comment" in warning
    assert "403" in warning


def test_a_head_that_moved_gets_no_comment_and_fails_nothing(job: Job) -> None:
    job.stub.add_pull(REPO, head="base:topic", head_sha="c" * 40, number=7)
    job.pull_request().has(SLOWER, base_run()).compared()
    told = commented(job)
    assert (told.code, job.comments()) == (0, [])
    assert "has a newer commit" in told.out


def test_a_closed_pull_request_gets_no_comment_and_fails_nothing(job: Job) -> None:
    job.stub.add_pull(REPO, head="base:topic", state="closed", number=7)
    job.pull_request().has(SLOWER, base_run()).compared()
    told = commented(job)
    assert (told.code, job.comments()) == (0, [])
    assert "was closed" in told.out


def test_two_jobs_and_two_artifacts_have_a_comment_each(job: Job) -> None:
    job.stub.add_pull(REPO, head="base:topic", number=7)
    job.pull_request().has(SLOWER, base_run()).compared()
    for artifact in ("one", "two", "one"):
        assert commented(job, "--artifact", artifact).code == 0
    job.monkeypatch.setenv("GITHUB_JOB", "other")
    assert commented(job, "--artifact", "one").code == 0
    assert len(job.comments()) == 3


def test_without_a_token_there_is_no_comment_and_that_is_told(job: Job) -> None:
    job.pull_request().has(SLOWER, base_run()).compared()
    told = job.step("comment")
    assert told.code == 0
    assert any("no token" in each for each in noted(told, "warning"))


def test_a_comment_before_there_is_a_report_is_an_error_in_words(job: Job) -> None:
    assert job.pull_request().step("comment", "--token", TOKEN).code == 2


def test_a_bad_day_of_github_ends_in_one_comment(job: Job) -> None:
    job.stub.add_pull(REPO, head="base:topic", number=7)
    for number in range(150):
        job.stub.add_comment(REPO, 7, f"comment {number}")
    job.stub.add_comment(REPO, 7, marker("Benchmarks", "benchmarks", ""), "someone")
    job.pull_request().has(SLOWER, base_run()).compared()
    job.stub.fail_next(2, 502, "GET .*/pulls")
    job.stub.rate_limit_next(1, 429, 0, "GET .*/comments")
    job.stub.fail_next(1, 502, "POST .*/comments", works=True)
    assert commented(job).code == 0
    assert len(job.comments()) == 152
    assert job.comments()[-1].startswith("### ❌ regression")


@pytest.mark.parametrize("status", [502, 403])
def test_a_github_that_never_answers_is_a_warning(job: Job, status: int) -> None:
    job.stub.add_pull(REPO, head="base:topic", number=7)
    job.pull_request().has(SLOWER, base_run()).compared()
    job.stub.fail_next(1000, status)
    told = commented(job)
    assert told.code == 0
    assert len(noted(told, "warning")) == 1


def test_on_an_enterprise_server_it_is_the_same(job: Job) -> None:
    job.stub.add_pull(REPO, number=7)
    job.monkeypatch.setenv("GITHUB_API_URL", job.stub.enterprise_url)
    job.variables["GITHUB_API_URL"] = job.stub.enterprise_url
    job.stub.add_artifact(
        REPO, 42, "cg-bench-result-x", {"result.json": encode(SLOWER), "base.json": encode(base_run())}
    )
    assert job.workflow_run().step("collect", "--run", "42", "--token", TOKEN).code == 0
    job.compared()
    assert commented(job).code == 0
    assert len(job.comments()) == 1
    assert all(each.path.startswith(("/api/", "/blob/")) for each in job.stub.requests)


# The pair for forks: collect, compare and comment after the run that measured.


def sent(
    job: Job, files: Mapping[str, bytes] | bytes, name: str = "cg-bench-result-benchmarks-0", number: int = 42
) -> None:
    content = files if isinstance(files, bytes) else zipped(files)
    job.stub.add_artifact(REPO, number, name, content, fork=True, branch="topic", sha=HEAD)


GOOD = {"result.json": encode(SLOWER), "base.json": encode(base_run())}


def collected(job: Job) -> Told:
    return job.step("collect", "--run", "42", "--token", TOKEN)


def whole(job: Job) -> Told:
    """Do all that is done after the run that measured."""
    assert collected(job).code == 0
    job.compared()
    return commented(job)


def test_a_forks_pull_request_is_commented_by_who_may(job: Job) -> None:
    job.stub.add_pull(REPO, number=7)
    sent(job, GOOD)
    told = whole(job.workflow_run())
    assert (told.code, noted(told)) == (0, [])
    (body,) = job.comments()
    assert unescaped(body).startswith("### ❌ regression: a score +10 %")
    assert marker(MEASURING) in body
    assert job.outputs["baseline-sha"] == BASE
    assert job.step("gate", "--hold", "nothing").code == 0


def test_what_has_no_base_with_it_is_searched_nowhere_else(job: Job) -> None:
    """The candidate's commit says whose it is, and the candidate is a fork's."""
    job.stub.add_pull(REPO, number=7)
    sent(job, {"result.json": GOOD["result.json"]})
    assert collected(job.workflow_run()).code == 0
    told = job.step("compare", *STORE, "--token", TOKEN)
    assert told.code == 0, told.err
    assert job.outputs["verdict"] == "no baseline"
    assert "no baseline: the measuring job found none" in unescaped(job.summary)


def test_the_number_of_the_pull_request_is_never_taken_from_the_artifact(job: Job) -> None:
    """The artifact says in every place it has that it is of number 8 of somebody else, and is commented where it belongs."""
    job.stub.add_pull(REPO, number=7)
    job.stub.add_pull(REPO, head="victim:topic", head_sha="d" * 40, number=8)
    claim = json.loads(encode(run(one(1_100_000), sha="d" * 40)))
    claim |= {"pull_request": 8, "number": 8, "head": "victim:topic"}
    claim["commit"]["branch"] = "victim:topic"
    claim["env"]["info"] = {"pull_request": 8, "github_ref": "refs/pull/8/merge"}
    sent(job, {"result.json": json.dumps(claim).encode(), "base.json": GOOD["base.json"]})
    assert whole(job.workflow_run()).code == 0
    assert (len(job.comments(7)), len(job.comments(8))) == (1, 0)


@pytest.mark.parametrize("name", ["NR", "pr_number", "../8", "number.txt"])
def test_a_file_with_a_number_beside_the_result_is_refused(job: Job, name: str) -> None:
    sent(job, {**GOOD, name: b"8"})
    told = collected(job.workflow_run())
    assert told.code == 2
    assert "does not belong there" in told.err


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"head_sha": "c" * 40}, "no open pull request has the commit"),
        ({"state": "closed"}, "no open pull request has the commit"),
        ({"head_repo": ""}, "no open pull request has the commit"),
        ({"head_repo": "contributor/another"}, "no open pull request has the commit"),
        ({"head": "another:topic"}, "no open pull request has the commit"),
    ],
)
def test_a_head_that_moved_was_closed_or_is_another_forks_gets_no_comment_and_fails_nothing(
    job: Job, changes: dict[str, str], words: str
) -> None:
    job.stub.add_pull(REPO, number=7, **changes)
    sent(job, GOOD)
    told = whole(job.workflow_run())
    assert (told.code, job.comments()) == (0, [])
    (notice,) = noted(told, "notice")
    assert words in notice


def test_of_two_pull_requests_with_one_head_none_is_commented_and_that_is_told(job: Job) -> None:
    job.stub.add_pull(REPO, number=7)
    job.stub.add_pull(REPO, base_branch="next", number=8)
    sent(job, GOOD)
    told = whole(job.workflow_run())
    assert (told.code, job.comments(7), job.comments(8)) == (0, [], [])
    assert any("2 pull requests have this commit" in each for each in noted(told, "notice"))


def test_a_run_without_a_branch_gets_no_comment_and_that_is_told(job: Job) -> None:
    job.stub.add_pull(REPO, number=7)
    sent(job, GOOD)
    told = whole(job.workflow_run(head_branch=None))
    assert (told.code, job.comments()) == (0, [])
    assert noted(told, "notice")


def test_a_fork_that_was_deleted_gets_no_comment_and_fails_nothing(job: Job) -> None:
    job.stub.add_pull(REPO, head_repo="", number=7)
    sent(job, GOOD)
    job.workflow_run(head_repository=None)
    told = collected(job)
    assert told.code == 0, told.err
    job.compared()
    told = commented(job)
    assert (told.code, job.comments()) == (0, [])
    assert noted(told, "notice")


def test_here_a_comment_that_cannot_be_written_is_an_error(job: Job) -> None:
    job.stub.tokens[TOKEN] = Token(BOT, {"actions": "read", "pull-requests": "read"})
    job.stub.add_pull(REPO, number=7)
    sent(job, GOOD)
    told = whole(job.workflow_run())
    assert told.code == 2
    assert any("403" in each for each in noted(told, "error"))


def test_a_configuration_that_lies_around_does_not_decide_over_a_foreign_result(job: Job) -> None:
    Path("cg-bench.toml").write_text("this is [no configuration")
    job.stub.add_pull(REPO, number=7)
    sent(job, GOOD)
    assert whole(job.workflow_run()).code == 0


def test_parts_are_merged_and_other_artifacts_are_left_alone(job: Job) -> None:
    for number, name in enumerate("ab"):
        part = {"result.json": encode(run(one(name=name))), "base.json": encode(base_run(one(name=name)))}
        sent(job, part, f"cg-bench-part-measure-{number}", 99)
    sent(job, {"anything": b"else"}, "coverage", 99)
    told = job.pull_request().step("collect", "--run", "99", "--token", TOKEN)
    assert told.code == 0, told.err
    job.compared()
    assert "every benchmark is within its threshold" in job.report
    assert sorted(item.id for item in decode(Path(job.outputs["result-path"]).read_bytes(), "x").benchmarks) == [
        "a",
        "b",
    ]


def test_parts_that_contradict_each_other_are_refused(job: Job) -> None:
    sent(job, {"result.json": encode(run(one()))}, "cg-bench-part-0", 99)
    sent(job, {"result.json": encode(run(one(2_000_000)))}, "cg-bench-part-1", 99)
    told = job.pull_request().step("collect", "--run", "99", "--token", TOKEN)
    assert told.code == 3
    assert noted(told, "error")


def test_parts_that_are_missing_fail_and_are_seen_everywhere(job: Job) -> None:
    part = run(one())
    part = replace(part, env=replace(part.env, info={**part.env.info, "shard_benchmarks": 3}))
    sent(job, {"result.json": encode(part), "base.json": encode(base_run())}, "cg-bench-part-0", 99)
    assert job.pull_request().step("collect", "--run", "99", "--token", TOKEN).code == 0
    told = job.compared()
    assert any("2 benchmarks of the suite were not measured" in each for each in noted(told, "error"))
    assert "not measured" in job.summary
    assert job.step("gate").code == 4


def test_a_run_without_a_result_is_an_error_that_says_what_is_needed(job: Job) -> None:
    sent(job, {"a": b""}, "coverage")
    told = collected(job.workflow_run())
    assert told.code == 2
    assert "run 42 has no result of cg-bench" in told.err
    assert noted(told, "error")


def test_of_artifacts_of_one_name_the_newest_counts_and_expired_ones_are_none(job: Job) -> None:
    sent(job, b"of an attempt before")
    sent(job, GOOD)
    job.stub.add_artifact(REPO, 42, "cg-bench-result-benchmarks-0", b"", expired=True)
    told = collected(job.workflow_run())
    assert (told.code, told.err) == (0, "")
    assert (job.folder / "artifact" / "result.json").read_bytes() == GOOD["result.json"]


def test_together_artifacts_are_bounded_as_well(job: Job) -> None:
    job.monkeypatch.setattr(ci_collect, "_MOST_BYTES", len(GOOD["result.json"]) + len(GOOD["base.json"]))
    sent(job, GOOD)
    assert collected(job.workflow_run()).code == 0
    sent(job, GOOD, "cg-bench-result-benchmarks-1")
    told = collected(job)
    assert told.code == 2
    assert "too large" in told.err


def test_more_artifacts_than_a_matrix_can_have_are_refused_before_any_is_fetched(job: Job) -> None:
    for number in range(257):
        sent(job, b"", f"cg-bench-result-{number}")
    told = collected(job.workflow_run())
    assert told.code == 2
    assert not any("/zip" in each.path or "/blob" in each.path for each in job.stub.requests)


# Hostile artifacts.


def bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("result.json", b" " * 50_000_001)
    return buffer.getvalue()


def lying() -> bytes:
    data = bytearray(bomb())
    struct.pack_into("<I", data, 22, 1000)
    struct.pack_into("<I", data, data.index(b"PK\x01\x02") + 24, 1000)
    return bytes(data)


def encrypted() -> bytes:
    data = bytearray(zipped({"result.json": b"{}"}))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def twice() -> bytes:
    return zipped({"result.json": b"{}", "resultXjson": b"{}"}).replace(b"resultXjson", b"result.json")


def link() -> bytes:
    entry = zipfile.ZipInfo("result.json")
    entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    return buffer.getvalue()


ARTIFACTS = {
    "path traversal": zipped({**GOOD, "../../evil": b"x"}),
    "absolute": zipped({**GOOD, "/tmp/cg-bench-evil": b"x"}),
    "another name": zipped({**GOOD, "README.md": b"x"}),
    "no result": zipped({"base.json": GOOD["base.json"]}),
    "larger than is sent": bytes(20_000_001),
    "a file of fifty megabytes": bomb(),
    "a bomb that lies": lying(),
    "encrypted": encrypted(),
    "two of one name": twice(),
    "a link": link(),
    "a zip in the zip": zipped({"result.json": zipped(GOOD)}),
    "cut off": zipped(GOOD)[:-30],
    "no zip": b"::error::x\n" * 100,
    "empty": b"",
    "no JSON": zipped({"result.json": b"\xff\xfe"}),
    "deep": zipped({"result.json": b"[" * 1_000_000}),
    "another schema": zipped({"result.json": b'{"schema": "\\n::error::x ##[error]y"}'}),
    "no benchmarks": zipped({"result.json": encode(replace(SLOWER, benchmarks=()))}),
    "a bad base": zipped({**GOOD, "base.json": b"{}"}),
}


@pytest.mark.parametrize("what", ARTIFACTS)
def test_an_artifact_that_is_not_ours_ends_the_job_and_leaves_nothing(job: Job, what: str) -> None:
    job.stub.add_pull(REPO, number=7)
    sent(job, ARTIFACTS[what])
    told = collected(job.workflow_run())
    assert told.code == 2
    assert len(noted(told)) == len(noted(told, "error")) == 1
    assert active(job.summary) == {}
    left = [path.name for path in job.folder.rglob("*") if path.is_file()]
    assert left == (["result.json"] if what == "a bad base" else [])
    assert not Path("/tmp/cg-bench-evil").exists()
    assert not (job.root.parent / "evil").exists()


def altered(**changes: object) -> bytes:
    document = json.loads(GOOD["result.json"])
    for path, value in changes.items():
        place: Any = document
        *first, last = path.split("__")
        for name in first:
            place = place[int(name)] if name.isdigit() else place[name]
        place[int(last) if last.isdigit() else last] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "content",
    [
        altered(benchmarks__0__counts__Ir=1_100_000.0),
        altered(benchmarks__0__counts__Ir=1.5),
        altered(benchmarks__0__score__value=1e300),
        altered(benchmarks__0__wall_ms=0.5),
        altered(benchmarks__0__counts__Ir=-1),
        altered(benchmarks__0__counts__Ir=10**30),
        altered(benchmarks__0__counts__Ir="1100000"),
        altered(benchmarks__0__counts__Ir=True),
        altered(benchmarks__0__counts__Ir=None),
        altered(benchmarks__0__profile__functions__0__2=1_100_000.0),
        altered(benchmarks__0__id=7),
        altered(benchmarks__0__id="\udc80"),
        altered(commit__sha=None),
        altered(strings=[1, 2]),
        GOOD["result.json"].replace(b"1100000", b"NaN", 1),
        GOOD["result.json"].replace(b"1100000", b"Infinity", 1),
        GOOD["result.json"].replace(b"1100000", b"1" * 5000, 1),
    ],
)
def test_only_whole_numbers_in_their_places_are_taken(job: Job, content: bytes) -> None:
    assert content != GOOD["result.json"]
    sent(job, {**GOOD, "result.json": content})
    told = collected(job.workflow_run())
    assert told.code == 2
    assert noted(told, "error")
    assert not (job.folder / "artifact" / "result.json").exists()


TEXTS = {
    "everything": HOSTILE,
    "mentions": "@someone @org/team",
    "HTML": "<img src=x onerror=alert(1)><script>alert(1)</script></details></sub><!-- cg-bench:0123456789abcdef -->",
    "links": "![x](http://e.vil/x.png) [x](http://e.vil) <http://e.vil> https://e.vil www.e.vil [x]: http://e.vil",
    "references": "fixes #1 GH-2 octo/prog#3",
    "commands": "\n::error::x\n::set-output name=verdict::unchanged\n::add-mask::e\n::stop-commands::x",
    "commands behind a carriage return": "\r::error::x\r\n::endgroup::",
    "commands of the older form": "##[error]x ##[set-output name=verdict;]unchanged ##[add-mask]e",
    "blocks": "a\n\n```\n</details>\n\n# heading\n\n- [ ] task\n\n| a | b |\n| - | - |",
    "fences": "```sh\nrm -rf /\n``` ~~~ `x`",
    "other ends of lines": "%0A::error::x %25 \u2028\u2029\x85\x0b\x0c::error::x",
    "terminal": "\x1b[2J\x1b]0;x\x07\u202e\u200b",
    "signs": "$x$ $$x$$ **b** __b__ ~~x~~ || x",
    "outputs": "verdict<<EOF\nunchanged\nEOF",
}
ANY_TEXT = pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))


def hostile(text: str) -> tuple[Result, Result]:
    """Return candidate and base with this text in every place that takes text."""

    def bench(ir: int, name: str, **changes: Any) -> Benchmark:
        value = counts(ir)
        return one(
            ir,
            f"{name} {text}",
            command=(text, text if ir == 1_000_000 else "x"),
            profile=profile_of(**{text: value}),
            warnings=(text,),
            parameters={text: text},
            tags=(text,),
            seal={text: SealPart(state=SealState.UNAVAILABLE, why=text)},
            **changes,
        )

    def side(sha: str, ir: int, *more: Benchmark) -> Result:
        made = run(bench(ir, "slow"), *more)
        fields = {**made.env.fields, "valgrind": text, "architecture": text}
        info = {"kernel": f"{text} {sha}", "os": text, "cpu_model": f"{text} {ir}"}
        commit = Commit(sha=sha, parent=text, branch=text, dirty=True, committed_at=text)
        env = replace(made.env, fields=fields, info=info, key=text)
        return replace(made, commit=commit, env=env, tool_version=text, created_at=text)

    failed = failed_benchmark(id=f"failed {text}", error=f"{text}\n{text}\n{text}", status=Status.FAILED)
    keyed = bench(1000, "key", key=text, key_fields={text: text, "libc": text})
    candidate = side(text, 1_100_000, failed, keyed, bench(1, "new"))
    base = side(text, 1_000_000, replace(keyed, key="x", key_fields={"libc": "x"}), bench(1, "missing"))
    return candidate, base


@ANY_TEXT
def test_no_text_of_a_fork_is_more_than_text_in_log_summary_outputs_or_comment(job: Job, text: str) -> None:
    job.stub.add_pull(REPO, head=f"contributor:{text}", number=7)
    candidate, base = hostile(text)
    sent(job, {"result.json": encode(candidate), "base.json": encode(base)}, f"cg-bench-result-{text}"[:200])
    job.workflow_run(head_branch=text, name=text)
    told = collected(job)
    assert told.code == 0, told.err
    assert noted(told) == []
    assert noted(job.compared()) == []  # the job that measured has told it
    found = job.outputs
    assert set(found) == {
        *("verdict", "score", "regressions", "improvements", "max-regression", "comparable", "baseline-sha"),
        *("result-path", "report-path"),
    }
    assert (found["verdict"], found["regressions"], found["comparable"]) == ("regression", "1", "false")
    assert active(job.summary) == {}
    told = commented(job)
    assert (told.code, noted(told)) == (0, []), told.err
    (body,) = job.comments()
    assert active(body) == {}
    assert body.endswith(f"{marker(text)}\n")
    outside = _FENCE.sub("", body)
    assert outside.count("<details>") == outside.count("</details>") > 0
    told = job.step("gate")
    assert told.code == 1
    assert noted(told) == []
    told = job.pull_request().compared()
    assert len(noted(told, "error")) >= 2
    assert active(job.summary) == {}


def test_a_mark_in_a_forks_text_does_not_make_our_comment_that_of_another_job(job: Job) -> None:
    """Marks are no secret. Who finds his own in our comment would write over it, or remove it as one too many."""
    job.stub.add_pull(REPO, number=7)
    other = marker("Benchmarks", "benchmarks", "")
    candidate, base = hostile(other)
    sent(job, {"result.json": encode(candidate), "base.json": encode(base)})
    assert whole(job.workflow_run()).code == 0
    client = ci_api.Client(api_url=job.stub.url, repository=REPO, token=TOKEN)
    assert post(client, 7, "### Of another job", other, wanted=True) is Outcome.WRITTEN
    first, second = job.comments()
    assert "regression" in first
    assert "Of another job" in second


@ANY_TEXT
def test_no_text_in_an_error_about_a_forks_data_is_more_than_text(job: Job, text: str) -> None:
    job.stub.add_pull(REPO, number=7)
    first, second = hostile(text)
    document = json.loads(encode(first))
    document["benchmarks"][0]["status"] = text
    wrong: list[bytes | Mapping[str, bytes]] = [
        {"result.json": json.dumps(document).encode()},
        {"result.json": json.dumps({"schema": text}).encode()},
        {"result.json": json.dumps({**document, "benchmarks": document["benchmarks"][:1] * 2}).encode()},
        {"result.json": GOOD["result.json"], text: b""},
        zipped(GOOD)[:-30],
    ]
    job.workflow_run()
    for files in wrong:
        job.stub.repository(REPO).artifacts.clear()
        sent(job, files, f"cg-bench-result-{text}"[:200])
        told = collected(job)
        assert told.code == 2, told.err
        assert len(noted(told)) == 1
    job.stub.repository(REPO).artifacts.clear()
    sent(job, {"result.json": encode(first)}, f"cg-bench-result-{text}"[:200])
    sent(job, {"result.json": encode(second)}, f"cg-bench-result-2{text}"[:200])
    told = collected(job)
    assert told.code == 3
    assert len(noted(told)) == 1
    assert active(job.summary) == {}


@pytest.mark.parametrize(
    ("state", "letter"), [("regression", "&"), ("regression", "\u202e"), ("failed", "&"), ("missing", "@")]
)
def test_a_thousand_benchmarks_with_endless_names_fit_into_a_comment(job: Job, letter: str, state: str) -> None:
    job.stub.add_pull(REPO, head="base:topic", number=7)
    names = [f"{number:04}{letter * 500}" for number in range(1000 if (state, letter) == ("regression", "&") else 250)]
    value = counts(1_100_000)
    profile = profile_of(**{letter * 500: value})
    before = [measured(name, profile=None) for name in names]
    error = "\n".join([letter * 300] * 30)
    after = {
        "regression": lambda name: measured(name, value, profile=profile),
        "failed": lambda name: failed_benchmark(id=name, error=error),
        "missing": lambda name: measured(f"new {name}", value, profile=None),
    }[state]
    made = run(*map(after, names))
    fields = {**made.env.fields, "valgrind": letter * 5000}
    made = replace(made, env=replace(made.env, fields=fields, key=letter * 5000), tool_version=letter * 5000)
    there = replace(base_run(*before), env=made.env)
    words = () if state == "missing" else ("--command", "x" * 20_000)
    told = job.pull_request().has(made, there).compared(*words)
    assert len(job.report) < 60_000
    assert commented(job).code == 0
    (body,) = job.comments()
    assert len(body) < 60_000
    assert active(body) == {}
    assert body.count("<details>") == body.count("</details>")
    for line in told.out.splitlines():
        assert len(line) < 100_000
    assert len(noted(told, "error")) <= 10


# The report of every night.


@pytest.fixture
def history(job: Job, repository: Repository) -> Repository:
    """Return a repository in which a benchmark got slower, every commit measured."""
    for number in range(8):
        at = f"2026-01-{number + 1:02}T12:00:00Z"
        sha = repository.commit(f"commit {number}", GIT_COMMITTER_DATE=at)
        commit = Commit(sha=sha, parent=None, branch="main", dirty=False, committed_at=at)
        save(run(one(1_000_000 if number < 4 else 1_100_000), commit=commit, created_at=at))
    job.is_for("schedule", {}, GITHUB_REF="refs/heads/main", GITHUB_SHA=repository.git("rev-parse", "HEAD"))
    return repository


def test_a_report_is_made_and_its_findings_kept_as_issues(job: Job, history: Repository) -> None:
    sha = history.git("rev-parse", "HEAD~3")
    words = ("trend", *STORE, "--token", TOKEN, "--artifact", "cg-bench-trend-x-0", "--issues")
    told = job.step(*words)
    assert told.code == 0, told.err
    assert noted(told) == []
    assert "issues: 1 opened" in told.out
    assert Path(job.outputs["report-path"]).read_text().startswith("<!doctype html>")
    assert json.loads(Path(job.outputs["result-path"]).read_text())["title"] == REPO
    assert "a" in job.summary
    (issue,) = job.stub.repository(REPO).issues.values()
    assert sha in (issue.body or "")
    assert "regression" in issue.title
    # A pull request's artifact of the same name, and one of another branch, are nobody's last report.
    report = Path(job.outputs["result-path"]).read_bytes()
    fake = report.replace(b'"state": "new"', b'"state": "open"')
    job.stub.add_artifact(REPO, 90, "cg-bench-trend-x-0", {"report.json": report})
    job.stub.add_artifact(REPO, 91, "cg-bench-trend-x-0", {"report.json": fake + b"x"}, fork=True)
    job.stub.add_artifact(REPO, 92, "cg-bench-trend-x-0", {"report.json": b"{"}, branch="topic")
    told = job.step(*words)
    assert told.code == 0, told.err
    assert noted(told) == []
    (found,) = json.loads(Path(job.outputs["result-path"]).read_text())["findings"]
    assert found["state"] == "open"
    assert len(job.stub.repository(REPO).issues) == 1


def test_without_a_history_there_is_no_report_and_that_is_an_error(job: Job) -> None:
    done = SimpleNamespace(status=2, signal=None, stdout=b"", stderr=b"", timed_out=False, wall_ms=1)
    job.monkeypatch.setattr(process, "run", lambda *_, **__: done)
    told = job.is_for("schedule", {}).step("trend", *STORE)
    assert told.code == 2
    assert any("there is no report" in each for each in noted(told, "error"))


def test_a_last_report_that_cannot_be_read_is_a_warning_and_issues_without_permission_an_error(
    job: Job, history: Repository
) -> None:
    del history
    job.stub.add_artifact(REPO, 90, "cg-bench-trend-x-0", {"../report.json": b"{}"})
    job.stub.tokens[TOKEN] = Token(BOT, {"actions": "read", "issues": "read"})
    told = job.step("trend", *STORE, "--token", TOKEN, "--artifact", "cg-bench-trend-x-0", "--issues")
    assert told.code == 2
    assert any("the last report cannot be read" in each for each in noted(told, "warning"))
    assert any("403" in each for each in noted(told, "error"))
    assert list(job.stub.repository(REPO).issues) == []


def test_the_checks_of_these_tests_see_what_they_are_for() -> None:
    log = (
        "x\n::error title=a::b\n  ::notice::c\nx ##[warning]d\n::stop-commands::0123456789abcdefghijklm\n::error::no\n"
    )
    log += "::0123456789abcdefghijklm::\n::nothing::x\nx::error::y\n"
    assert [(each.name, each.text) for each in orders(log)] == [("error", "b"), ("notice", "c"), ("warning", "d")]
    bad = {"a tag": "<b>", "a mention": "hi @x", "a reference": "a #1", "a link": "[a](b)", "an image": "![a]"}
    bad |= {"an address": "http://x", "emphasis": "**b**", "a formula": "$x$", "a heading": "# x"}
    for name, text in bad.items():
        assert name in active(f"{text}\n")
    assert active("### ❌ a@\u200bx #\u200b1 &lt;b&gt; <sub>x</sub>\n```sh\n@x # <b>\n```\n") == {}
