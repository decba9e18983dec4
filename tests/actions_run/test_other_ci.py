"""The examples for other services: the plain script whole, and of the one for GitLab the scripts of its jobs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cachegrind_bench.model.codec import decode
from tests.github_stub import Token
from tests.gitlab_stub import LOGIN, NUMBER, GitLab

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "workflows"
STORE = "cg-bench-data"
SUITE = '[[benchmark]]\nid = "count"\ncommand = ["sh", "count.sh"]\n'
COUNT = "i=0; while [ $i -lt {} ]; do i=$((i+1)); done\n"

pytestmark = [pytest.mark.valgrind, pytest.mark.unsealed]


class Project:
    """A bare origin, and clones as a service makes them: of one branch, and shallow."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tree, self.origin = folder, folder / "tree", folder / "origin.git"
        self.git(folder, "init", "--quiet", "--initial-branch=main", str(self.tree))
        self.git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(self.origin))
        self.git(self.tree, "remote", "add", "origin", str(self.origin))
        (self.tree / "cg-bench.toml").write_text(SUITE, encoding="utf-8")
        self.commit("main", "the first", 500)

    def git(self, folder: Path, *words: str) -> str:
        identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgSign=false"]
        done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, branch: str, message: str, loops: int) -> None:
        (self.tree / "count.sh").write_text(COUNT.format(loops), encoding="utf-8")
        self.git(self.tree, "add", ".")
        self.git(self.tree, "commit", "--quiet", "--message", message)
        self.git(self.tree, "push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")

    def clone(self, branch: str) -> Path:
        place = self.folder / f"clone-{len(list(self.folder.glob('clone-*')))}"
        address = f"file://{self.origin}"
        self.git(self.folder, "clone", "--quiet", "--depth=1", f"--branch={branch}", address, str(place))
        return place

    def run(self, script: str, place: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(self.folder), **variables}
        return subprocess.run(
            ["sh", "-c", script], cwd=place, env=environ, capture_output=True, text=True, check=False, timeout=120
        )

    def stored(self) -> list[str]:
        listed = self.git(self.origin, "ls-tree", "-r", "--name-only", STORE)
        return [name for name in listed.splitlines() if name.startswith("runs/")]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_the_plain_script_stores_on_the_target_branch_and_compares_on_others(project: Project) -> None:
    script = (EXAMPLES / "plain.sh").read_text("utf-8")
    first = project.run(script, project.clone("main"))
    assert first.returncode == 0, first.stderr
    assert len(project.stored()) == 1
    project.commit("slow", "slower", 520)
    place = project.clone("slow")
    second = project.run(script, place)
    assert second.returncode == 1, second.stderr
    assert (place / "cg-bench-out" / "report.md").read_text("utf-8").startswith("### ❌ regression")
    assert len(project.stored()) == 1


def gitlab_scripts() -> dict[str, str]:
    """Return the script of each job; of the template, what installs."""
    text = (EXAMPLES / "gitlab-ci.yml").read_text("utf-8")
    found: dict[str, str] = {}
    for job in re.split(r"^(?=[\w.-]+:$)", text, flags=re.MULTILINE):
        match = re.search(r"^  script:\n    - \|\n((?:      .*\n|\n)+)", job, re.MULTILINE)
        if match:
            found[job.partition(":")[0]] = textwrap.dedent(match[1])
    return found


def test_gitlabs_jobs_store_on_the_default_branch_and_gate_and_comment_on_merge_requests(
    project: Project, gitlab: GitLab
) -> None:
    scripts = gitlab_scripts()
    assert sorted(scripts) == ["benchmarks", "comment-benchmarks", "store-benchmarks"]
    common = {"CI_DEFAULT_BRANCH": "main", "GITLAB_CI": "true", "CI": "true"}

    def commit_of(place: Path) -> dict[str, str]:
        return common | {"CI_COMMIT_SHA": project.git(place, "rev-parse", "HEAD")}

    place = project.clone("main")
    measured = project.run(scripts["benchmarks"], place, **commit_of(place), CI_COMMIT_BRANCH="main")
    assert measured.returncode == 0, measured.stderr
    # The address that the script makes of GitLab's variables, led to our origin.
    storing = scripts["store-benchmarks"]
    assert "$BENCH_PUSH_TOKEN" in storing
    led = re.sub(r'GIT_CONFIG_VALUE_0="[^"]*"', f'GIT_CONFIG_VALUE_0="file://{project.origin}"', storing)
    stored = project.run(led, place, **commit_of(place), CI_COMMIT_BRANCH="main")
    assert stored.returncode == 0, stored.stderr
    assert len(project.stored()) == 1
    assert json.loads((place / "cg-bench-out" / "code-quality.json").read_text()) == []

    project.commit("slow", "slower", 520)
    place = project.clone("slow")
    request = {"CI_MERGE_REQUEST_IID": str(NUMBER), "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
    gated = project.run(scripts["benchmarks"], place, **commit_of(place), **request)
    assert gated.returncode == 1, gated.stderr
    (found,) = decode((place / "cg-bench-out" / "result.json").read_bytes(), "result.json").benchmarks
    assert found.id == "count"
    (finding,) = json.loads((place / "cg-bench-out" / "code-quality.json").read_text())
    assert finding["location"] == {"path": "cg-bench.toml", "lines": {"begin": 1}}

    gitlab.tokens["glpat"] = Token(LOGIN, {"pull-requests": "write"})
    commenting = re.sub("^.*pip install.*$", "", scripts["comment-benchmarks"], flags=re.MULTILINE)
    variables = gitlab.variables(**request, CI_COMMIT_SHA=commit_of(place)["CI_COMMIT_SHA"])
    assert project.run(commenting, place, **variables).returncode == 0
    assert gitlab.bodies() == []  # without a token
    gitlab.sha = variables["CI_COMMIT_SHA"]
    commented = project.run(commenting, place, **variables, BENCH_COMMENT_TOKEN="glpat")
    assert commented.returncode == 0, commented.stderr
    (body,) = gitlab.bodies()
    assert body.startswith("### ❌ regression")
