"""A job of GitHub Actions, simulated: its variables and files, what GitHub makes of what it leaves, and results for it.

Nothing is measured: results are prepared, and the API is tests/github_stub.py.
"""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachegrind_bench.model.codec import encode
from cachegrind_bench.model.result import Commit
from cachegrind_bench.store.files import FileStore
from cachegrind_bench.store.record import run_record
from tests.unit.comparing import counts, measured
from tests.unit.samples import profile_of, result

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from cachegrind_bench.model.result import Benchmark, Result
    from tests.cli.conftest import CommandLine, Told
    from tests.github_stub import Stub


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
    *("details", "/details", "summary", "/summary"),
    *("!-- cg-bench:[0-9a-f]{16} --", "!-- cg-bench:[0-9a-f]{16} --"),
)
_ACTIVE = {
    "a tag": re.compile(rf"<(?!(?:{'|'.join(_OURS)})>)[A-Za-z/!?]"),
    "a mention": re.compile(r"@[A-Za-z0-9]"),
    "a reference": re.compile(
        r"#[0-9]|\bG[HL]\\?-[0-9]|(?<!\\)[!%&~](?=[0-9]|bug)|\[[a-z_]+\\?:7"
    ),  # some in spite of a backslash
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


def save(*runs: Result) -> None:
    FileStore(Path(".cg-bench").absolute()).add([run_record(item) for item in runs])


STORE = ("--store", "file:.cg-bench")


def commented(job: Job, *words: str) -> Told:
    return job.step("comment", "--token", TOKEN, *words)


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
