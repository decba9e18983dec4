"""The release workflow, run by act as far as it goes: all of it but PyPI and GitHub's API, which are stand-ins."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests import act

ROOT = Path(__file__).resolve().parents[2]
NAME = "cachegrind-bench/cachegrind-bench"

pytestmark = pytest.mark.slow

# Notes what it is asked; of a release it says that there is none.
GH = """#!/bin/sh
echo "gh $*" >>"$GH_LOG"
case "$1 $2" in "release view") exit 1 ;; esac
"""


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgSign=false"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a repository of what this one has, without its past, whose changelog has a released version."""
    tree = tmp_path / "tree"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    changelog = (tree / "CHANGELOG.md").read_text("utf-8")
    released = changelog.replace("## [Unreleased]", "## [Unreleased]\n\n## [1.2.0] - 2026-01-31", 1)
    (tree / "CHANGELOG.md").write_text(released, encoding="utf-8")
    (tree / "cachegrind_bench" / "_version.py").write_text(
        '"""The version, in one place."""\n\n__version__ = "1.2.0"\n', encoding="utf-8"
    )
    git(tree, "init", "--quiet", "--initial-branch=main")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", "a release")
    return tree


def release(tree: Path, tag: str) -> tuple[act.Ran, list[str], list[str]]:
    """Push a tag; return what became of it, the names of what was published, and what gh was asked."""
    folder = tree.parent
    origin, published, log = folder / "origin.git", folder / "published", folder / "gh.log"
    git(tree, "tag", "--annotate", "--message", tag, tag)
    git(folder, "clone", "--quiet", "--bare", str(tree), str(origin))
    published.mkdir()
    (folder / "programs").mkdir()
    (folder / "programs" / "gh").write_text(GH, encoding="utf-8")
    (folder / "programs" / "gh").chmod(0o755)
    payload = {"ref": f"refs/tags/{tag}", "after": git(tree, "rev-parse", "HEAD"), "deleted": False}
    payload["repository"] = {"full_name": NAME, "default_branch": "main"}
    workflow = folder / "release.yml"
    text = (tree / ".github" / "workflows" / "release.yml").read_text("utf-8")
    # The only way onto the PATH of steps; a runner has the real one there.
    workflow.write_text(text.replace("GH_TOKEN:", f"BASH_ENV: {folder}/path.sh\n          GH_TOKEN:"), encoding="utf-8")
    (folder / "path.sh").write_text(f"PATH={folder}/programs:$PATH\n", encoding="utf-8")
    ran = act.run(
        workflow,
        event="push",
        payload=payload,
        repository=tree,
        origin=origin,
        artifacts=folder / "artifacts",
        api_url="http://127.0.0.1:9",
        token="t0ken",
        environ={"CG_BENCH_TEST_PUBLISHED": str(published), "GH_LOG": str(log)},
        network=True,
        timeout=300,
    )
    asked = log.read_text("utf-8").splitlines() if log.exists() else []
    return ran, sorted(path.name for path in published.iterdir()), asked


def test_a_tag_is_built_checked_published_and_followed_by_the_actions_tag(tree: Path) -> None:
    act.find("act")
    ran, published, asked = release(tree, "v1.2.0")
    assert ran.jobs == {"build": "success", "publish": "success", "release": "success"}, ran.log[-4000:]
    assert published == ["cachegrind_bench-1.2.0-py3-none-any.whl", "cachegrind_bench-1.2.0.tar.gz"]
    assert any(line.startswith("gh release create v1.2.0 ") for line in asked)
    assert asked[-1].startswith(
        "gh api --method POST repos/cachegrind-bench/cachegrind-bench/git/refs -f ref=refs/tags/v1 "
    )


def test_a_tag_of_another_version_publishes_nothing(tree: Path) -> None:
    act.find("act")
    ran, published, asked = release(tree, "v1.3.0")
    assert ran.status != 0
    assert ran.jobs == {"build": "failure"}
    assert (published, asked) == ([], [])
