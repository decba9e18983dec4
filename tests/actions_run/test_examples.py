"""Every example workflow, run for real with act: on a project of its own, under Valgrind, against a stub of GitHub's API."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cachegrind_bench.model.codec import decode
from tests import act, github_stub
from tests.github_stub import BOT, Pull, Stub, Token

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "workflows"
REQUIREMENTS = ROOT / "scripts" / "action" / "requirements.txt"
NAME, TOKEN = "octo/project", "t0ken-of-the-job"
STORE = "cg-bench-data"

pytestmark = [pytest.mark.valgrind, pytest.mark.unsealed, pytest.mark.slow]

# Where rustup finds its toolchain, as the jobs have another home.
RUST = {
    variable: str(path)
    for variable, path in (("RUSTUP_HOME", Path.home() / ".rustup"), ("CARGO_HOME", Path.home() / ".cargo"))
    if path.is_dir()
}
SUITE = """
[[benchmark]]
id = "count"
command = ["sh", "count.sh"]

[[benchmark]]
id = "words"
command = ["sh", "words.sh"]
"""
COUNT = "i=0; while [ $i -lt {} ]; do i=$((i+1)); done\n"
WORDS = "for word in a b c d e f g h; do echo $word; done\n"


@pytest.fixture(scope="session")
def wheels() -> Path:
    """Return a folder with what the action installs, fetched once: its runs then need no network."""
    folder = ROOT / ".tools" / "action-wheels"
    done = folder / "requirements.txt"
    if not done.exists() or done.read_bytes() != REQUIREMENTS.read_bytes():
        shutil.rmtree(folder, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--require-hashes", "--only-binary=:all:", "-r", str(REQUIREMENTS), "-d", str(folder)]
        subprocess.run(command, check=True)
        shutil.copy(REQUIREMENTS, done)
    return folder


@dataclass(slots=True)
class Project:
    """A repository on a GitHub of our own: a bare origin, a clone to work in, and the API's stub."""

    folder: Path
    stub: Stub
    wheels: Path
    run_id: int = 100
    taken: set[str] = field(default_factory=set)
    heads: dict[int, dict[str, Any]] = field(default_factory=dict)  # what the runs were of

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def origin(self) -> Path:
        return self.folder / "origin.git"

    def git(self, *words: str, folder: Path | None = None) -> str:
        identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgSign=false"]
        done = subprocess.run(
            ["git", *identity, *words], cwd=folder or self.tree, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, name: str, text: str) -> None:
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def commit(self, message: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")

    def push(self, example: str = "pull-request.yml", **more: Any) -> act.Ran:
        """Push main, and run a workflow for that."""
        self.git("push", "--quiet", "origin", "main")
        payload = {"ref": "refs/heads/main", "after": self.git("rev-parse", "main"), "deleted": False}
        return self.run(example, "push", payload, {"contents": "write", "actions": "read"}, **more)

    def pull(
        self, branch: str, *, fork: bool = False, example: str = "pull-request.yml", number: int = 1, **more: Any
    ) -> act.Ran:
        """Open a pull request from this branch, or bring it up to date, and run a workflow for that."""
        head, base = self.git("rev-parse", branch), self.git("rev-parse", "main")
        self.git("checkout", "--quiet", "--detach", "main")
        self.git("merge", "--quiet", "--no-ff", "--message", "merge", branch)
        self.git(
            "push",
            "--quiet",
            "--force",
            "origin",
            f"HEAD:refs/pull/{number}/merge",
            f"{branch}:refs/pull/{number}/head",
        )
        self.git("checkout", "--quiet", "main")
        owner = "stranger" if fork else "octo"
        if number in self.stub.repository(NAME).issues:
            self.pull_request(number).head_sha = head
        else:
            self.stub.add_pull(NAME, head=f"{owner}:{branch}", head_sha=head, base_sha=base, number=number)
        side = {"sha": head, "ref": branch, "repo": {"full_name": f"{owner}/project", "fork": fork}}
        payload = {
            "number": number,
            "pull_request": {"number": number, "head": side, "base": {"ref": "main", "sha": base}},
        }
        rights = {"contents": "read"} if fork else {"pull-requests": "write", "actions": "read", "contents": "write"}
        return self.run(example, "pull_request", payload, rights, **more)

    def after(self, measured: int, branch: str, *, fork: bool = True) -> act.Ran:
        """Run the workflow that starts when that run of another has ended."""
        owner = "stranger" if fork else "octo"
        home = {"full_name": f"{owner}/project", "owner": {"login": owner}}
        run = {
            "id": measured,
            "name": "measure",
            "event": "pull_request",
            "conclusion": "failure",
            "head_sha": self.git("rev-parse", branch),
            "head_branch": branch,
            "head_repository": home,
        }
        payload = {"action": "completed", "workflow_run": run, "workflow": {"name": "measure"}}
        return self.run("fork-safe/comment.yml", "workflow_run", payload, {"pull-requests": "write", "actions": "read"})

    def run(self, example: str, event: str, payload: dict[str, Any], rights: dict[str, Any], **more: Any) -> act.Ran:
        self.run_id += 1
        pull = payload.get("pull_request", {}).get("head", {})
        self.heads[self.run_id] = {
            "branch": pull.get("ref", "main"),
            "sha": pull.get("sha", self.git("rev-parse", "main")),
            "fork": bool(pull and pull["repo"]["fork"]),
        }
        self.stub.tokens[TOKEN] = Token(BOT, rights)
        repository = {"full_name": NAME, "default_branch": "main", "owner": {"login": "octo"}, "fork": False}
        artifacts = self.folder / "artifacts" / str(self.run_id)
        artifacts.mkdir(parents=True)
        self.stub.before("GET .*/artifacts", lambda: self.offer(artifacts), times=10**6)
        ran = act.run(
            EXAMPLES / example,
            event=event,
            payload=payload | {"repository": repository, "sender": {"login": "octocat"}},
            repository=self.tree,
            origin=self.origin,
            artifacts=artifacts,
            api_url=self.stub.url,
            token=TOKEN,
            actions={"cachegrind-bench/cachegrind-bench": ROOT},
            environ={"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels), **RUST},
            run_id=self.run_id,
            **more,
        )
        self.offer(artifacts)
        assert self.stub.violations == []
        assert TOKEN not in ran.log
        return ran

    def offer(self, artifacts: Path) -> None:
        """Let the API know of the artifacts that a run has uploaded so far."""
        for path in sorted(artifacts.glob("*.zip")):
            if str(path) not in self.taken:
                self.taken.add(str(path))
                run = int(artifacts.name)
                self.stub.add_artifact(NAME, run, path.stem, path.read_bytes(), **self.heads[run])

    def artifact(self, beginning: str) -> dict[str, bytes]:
        """Return the files of the only artifact of the last run whose name begins so."""
        (path,) = (self.folder / "artifacts" / str(self.run_id)).glob(f"{beginning}*.zip")
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def stored(self) -> list[str]:
        """Return the files of the history, as its branch has them at the origin."""
        listed = subprocess.run(
            ["git", "ls-tree", "-r", "--name-only", STORE], cwd=self.origin, capture_output=True, text=True, check=False
        )
        return [name for name in listed.stdout.split() if name.startswith("runs/")]

    def pull_request(self, number: int) -> Pull:
        found = self.stub.repository(NAME).issues[number]
        assert isinstance(found, Pull)
        return found

    def comments(self, number: int = 1) -> list[str]:
        return [comment.body for comment in self.stub.comments(NAME, number)]


@pytest.fixture
def project(tmp_path: Path, wheels: Path) -> Iterator[Project]:
    act.find_act()
    with github_stub.serve() as stub:
        stub.repository(NAME)
        made = Project(tmp_path, stub, wheels)
        made.tree.mkdir()
        made.git("init", "--quiet", "--initial-branch=main")
        made.git("init", "--quiet", "--bare", "--initial-branch=main", str(made.origin))
        made.git("remote", "add", "origin", str(made.origin))
        files = {"cg-bench.toml": SUITE, "count.sh": COUNT.format(500), "words.sh": WORDS}
        for name, text in files.items():
            made.write(name, text)
        made.commit("the first")
        made.git("push", "--quiet", "origin", "main")
        yield made


def outputs(ran: act.Ran, job: str = "benchmarks") -> dict[str, str]:
    """Return the outputs of the comparison in this job."""
    (found,) = [
        values
        for place, values in ran.outputs.items()
        if place.startswith(f"{job}/") and "verdict" in values and place.endswith("/compare")
    ]
    return dict(found)


def slower(project: Project, branch: str = "slow") -> None:
    project.git("checkout", "--quiet", "-b", branch, "main")
    project.write("count.sh", COUNT.format(520))
    project.commit("slower")
    project.git("checkout", "--quiet", "main")


def unrelated(project: Project, branch: str = "other") -> None:
    project.git("checkout", "--quiet", "-b", branch, "main")
    project.write("NOTES", "a note")
    project.commit("a note")
    project.git("checkout", "--quiet", "main")


def test_a_push_is_stored_a_regression_fails_and_is_commented_and_another_change_passes(project: Project) -> None:
    first = project.push()
    assert (first.status, first.jobs) == (0, {"benchmarks": "success"})
    assert outputs(first)["verdict"] == "no baseline"
    assert any(line.startswith("::warning") and "no baseline" in line for line in first.annotations)
    assert "no baseline" in first.summary
    (stored,) = project.stored()
    assert project.git("rev-parse", "main")[:12] in stored

    slower(project)
    second = project.pull("slow")
    assert second.status != 0
    assert second.jobs == {"benchmarks": "failure"}
    found = outputs(second)
    assert (found["verdict"], found["regressions"], found["comparable"]) == ("regression", "1", "true")
    assert found["baseline-sha"] == project.git("rev-parse", "main")
    assert re.fullmatch(r"[1-9]\.?\d*%", found["max-regression"])
    assert [line for line in second.annotations if line.startswith("::error title=regression%3A count::")]
    assert second.summary.startswith("### ❌ regression")
    (comment,) = project.comments()
    assert comment.startswith("### ❌ regression\\: count score ")
    assert f"cg-bench ab {found['baseline-sha'][:12]}" in comment
    assert len(project.stored()) == 1
    assert re.findall("Failure - Main (.*) \\[", second.log)[0] == "Gate"  # the last step: all else was done

    # Mended, the same comment says so; a pull request that changes nothing gets none.
    project.git("checkout", "--quiet", "slow")
    project.write("count.sh", COUNT.format(500))
    project.commit("mended")
    project.git("checkout", "--quiet", "main")
    third = project.pull("slow")
    assert third.status == 0
    (comment,) = project.comments()
    assert comment.startswith("### ✔️ ")
    unrelated(project)
    fourth = project.pull("other", number=2)
    assert fourth.status == 0
    assert outputs(fourth)["verdict"] == "unchanged"
    assert project.comments(2) == []


def test_a_fork_is_measured_without_rights_and_commented_by_a_workflow_that_runs_nothing_of_it(
    project: Project,
) -> None:
    first = project.push("fork-safe/measure.yml")
    assert (first.status, first.jobs) == (0, {"measure": "success", "store": "success"})
    assert len(project.stored()) == 1

    slower(project)
    measured = project.pull("slow", fork=True, example="fork-safe/measure.yml")
    assert measured.jobs == {"measure": "failure"}
    assert measured.summary.startswith("### ❌ regression")
    files = project.artifact("cg-bench-result-")
    assert sorted(files) == ["base.json", "result.json"]
    assert {item.id for item in decode(files["result.json"], "result.json").benchmarks} == {"count", "words"}
    assert project.comments() == []

    said = project.after(project.run_id, "slow")
    assert (said.status, said.jobs) == (0, {"comment": "success"})
    (comment,) = project.comments()
    assert comment.startswith("### ❌ regression\\: count score ")
    assert "Measure" not in " ".join(step.name for step in said.steps)

    # Pushed to meanwhile: nothing is said of a commit that is no longer the last.
    project.pull_request(1).head_sha = "f" * 40
    late = project.after(project.run_id - 1, "slow")
    assert late.status == 0
    assert any("no open pull request has the commit" in line for line in late.annotations)
    assert project.comments() == [comment]


def test_jobs_that_measure_comment_and_store_apart(project: Project) -> None:
    first = project.push("separate-store.yml")
    assert first.jobs == {"measure": "success", "store": "success"}
    assert len(project.stored()) == 1
    slower(project)
    second = project.pull("slow", example="separate-store.yml")
    assert second.jobs["measure"] == "failure"
    (comment,) = project.comments()
    assert comment.startswith("### ❌ regression")
    assert len(project.stored()) == 1


def test_shards_are_collected_by_one_job(project: Project) -> None:
    first = project.push("shards.yml", timeout=600)
    assert first.jobs == {"measure": "success", "report": "success", "store": "success"}, first.log
    (stored,) = project.stored()
    text = project.git("show", f"{STORE}:{stored}", folder=project.origin)
    assert {item["id"] for item in json.loads(text)["benchmarks"]} == {"count", "words"}
    slower(project)
    second = project.pull("slow", example="shards.yml", timeout=600)
    assert second.jobs == {"measure": "success", "report": "failure"}
    assert outputs(second, "report")["verdict"] == "regression"
    (comment,) = project.comments()
    assert "count" in comment


def test_a_night_makes_a_report_and_keeps_issues(project: Project) -> None:
    for number, loops in enumerate((500, 500, 500, 560, 560, 560)):
        project.write("count.sh", COUNT.format(loops))
        project.write("NOTES", str(number))
        project.commit(f"commit {number}")
        project.git("push", "--quiet", "origin", "main")
        subprocess.run(
            [sys.executable, "-m", "cachegrind_bench", "run", "-q", "--save", "--store", f"git:{STORE}"],
            cwd=project.tree,
            check=True,
        )
    rights = {"contents": "read", "actions": "read", "issues": "write"}
    ran = project.run("nightly.yml", "schedule", {"schedule": "17 3 * * *"}, rights)
    assert (ran.status, ran.jobs["trend"]) == (0, "success")
    assert "regression" in ran.summary
    files = project.artifact("cg-bench-trend-")
    assert sorted(files) == ["report.html", "report.json", "report.md"]
    assert files["report.html"].startswith(b"<!doctype html>")
    (issue,) = project.stub.repository(NAME).issues.values()
    assert issue.state == "open"
    assert issue.title.startswith("count +")
    # The second night knows what the first told, and opens no second issue.
    again = project.run("nightly.yml", "schedule", {"schedule": "17 3 * * *"}, rights)
    assert again.status == 0
    assert len(project.stub.repository(NAME).issues) == 1
    assert json.loads(project.artifact("cg-bench-trend-")["report.json"])["headline"]["new"] == 0


@pytest.mark.parametrize("kind", ["c", "rust"])
def test_a_compiled_program_without_a_suite(project: Project, kind: str) -> None:
    if kind == "rust" and shutil.which("cargo") is None:
        from tests.conftest import without

        without("no cargo")
    (project.tree / "cg-bench.toml").unlink()
    if kind == "c":
        project.write("Makefile", "sieve: sieve.c\n\t$(CC) $(CFLAGS) -o $@ $<\n")
        project.write(".gitignore", "sieve\n")
        program = ROOT / "examples" / "c" / "sieve.c"
        shutil.copy(program, project.tree / "sieve.c")
    else:
        project.write("benches/words.txt", "one two three two one\n" * 50)
        project.write(".gitignore", "target\n")
        project.write("Cargo.toml", '[package]\nname = "wordcount"\nversion = "0.1.0"\nedition = "2021"\n')
        project.write("Cargo.lock", 'version = 3\n\n[[package]]\nname = "wordcount"\nversion = "0.1.0"\n')
        project.write(
            "src/main.rs",
            "fn main() {\n    let path = std::env::args().nth(1).unwrap();\n    let text = std::fs::read_to_string(path).unwrap();\n"
            '    println!("{}", text.split_whitespace().count());\n}\n',
            encoding="utf-8",
        )
    project.commit("a program")
    first = project.push(f"{kind}.yml")
    assert (first.status, first.jobs) == (0, {"benchmarks": "success"})
    (stored,) = project.stored()
    name = "sieve" if kind == "c" else "wordcount"
    text = project.git("show", f"{STORE}:{stored}", folder=project.origin)
    assert [item["id"] for item in json.loads(text)["benchmarks"]] == [name]

    # The history has no functions, the artifact of the push's run does: so the one that did it is named.
    source = "sieve.c" if kind == "c" else "src/main.rs"
    project.git("checkout", "--quiet", "-b", "slow")
    text = (project.tree / source).read_text("utf-8")
    more = (
        text.replace("count++;", "for (volatile int k = 0; k < 9; k++) count += k == 0;")
        if kind == "c"
        else text.replace("text.split", "text.repeat(2).split")
    )
    assert more != text
    project.write(source, more)
    project.commit("slower")
    project.git("checkout", "--quiet", "main")
    second = project.pull("slow", example=f"{kind}.yml")
    assert outputs(second)["verdict"] == "regression"
    (comment,) = project.comments()
    assert "| mostly in |" in comment
    assert re.match(r"### ❌ regression.*most of it in \S", comment)
