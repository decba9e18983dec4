"""A project on a GitHub of our own: a bare origin, a clone to work in, the API's stub, and workflows run by act."""

from __future__ import annotations

import subprocess
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from tests import act
from tests.github_stub import BOT, Pull, Token

if TYPE_CHECKING:
    from tests.github_stub import Stub

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "workflows"
REQUIREMENTS = ROOT / "scripts" / "action" / "requirements.txt"
NAME, TOKEN = "octo/project", "t0ken-of-the-job"
STORE = "cg-bench-data"


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


@dataclass(slots=True)
class Project:
    """A repository on a GitHub of our own: a bare origin, a clone to work in, and the API's stub."""

    folder: Path
    stub: Stub
    wheels: Path
    action: Path
    run_id: int = 100
    lock: Lock = field(default_factory=Lock)
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

    def push(self, example: str | Path = "pull-request.yml", **more: Any) -> act.Ran:
        """Push main, and run a workflow for that."""
        self.git("push", "--quiet", "origin", "main")
        payload = {"ref": "refs/heads/main", "after": self.git("rev-parse", "main"), "deleted": False}
        return self.run(example, "push", payload, {"contents": "write", "actions": "read"}, **more)

    def pull(
        self, branch: str, *, fork: bool = False, example: str | Path = "pull-request.yml", number: int = 1, **more: Any
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

    def run(
        self, example: str | Path, event: str, payload: dict[str, Any], rights: dict[str, Any], **more: Any
    ) -> act.Ran:
        """Run a workflow, by its name among the examples or by its path, with a token of these rights."""
        with self.lock:
            self.run_id += 1
            run_id = self.run_id
        pull = payload.get("pull_request", {}).get("head", {})
        self.heads[run_id] = {
            "branch": pull.get("ref", "main"),
            "sha": pull.get("sha") or payload.get("after") or self.git("rev-parse", "main"),
            "fork": bool(pull and pull["repo"]["fork"]),
        }
        self.stub.tokens[TOKEN] = Token(BOT, rights)
        repository = {"full_name": NAME, "default_branch": "main", "owner": {"login": "octo"}, "fork": False}
        artifacts = self.folder / "artifacts" / str(run_id)
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
            actions={"OWNER_OF_YOUR_COPY/cachegrind-bench": self.action},
            environ={"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels), **RUST},
            run_id=run_id,
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
