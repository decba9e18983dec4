"""The guide, followed word for word: its commands, its workflow, and what it says will happen."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.actions_run.project import ROOT, outputs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.actions_run.project import Project

pytestmark = [pytest.mark.valgrind, pytest.mark.unsealed, pytest.mark.slow]

GUIDE = (ROOT / "docs" / "ci-guide.md").read_text("utf-8")


def test_from_nothing_to_a_gated_repository(project: Project, tmp_path: Path) -> None:
    for name in ("cg-bench.toml", "count.sh", "words.sh"):
        (project.tree / name).unlink()
    # 1. A benchmark
    (commands,) = re.findall(r"### 1\. A benchmark\n.*?```\n(.*?)```", GUIDE, re.DOTALL)
    first, second = commands.strip().splitlines()
    shell = ["sh", "-ec", first.partition("#")[0].replace("cg-bench", f"{sys.executable} -m cachegrind_bench")]
    done = subprocess.run(shell, cwd=project.tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert second.startswith("git add . && git commit")
    project.commit("A first benchmark")
    # 2. A workflow
    (block,) = re.findall(r"```yaml\n(on: .*?)```", GUIDE, re.DOTALL)
    workflow = tmp_path / "benchmarks.yml"
    # Written as blocks, as what checks the names of inputs needs it.
    workflow.write_text(re.sub(r"with: \{ (.*?): (.*?) \}", r"with:\n          \1: \2", block), encoding="utf-8")
    # 3. The first push, and the first pull request
    pushed = project.push(workflow)
    assert pushed.jobs == {"benchmarks": "success"}
    assert "no baseline" in pushed.summary
    assert len(project.stored()) == 1
    project.git("checkout", "--quiet", "-b", "slow")
    configuration = (project.tree / "cg-bench.toml").read_text("utf-8")
    assert "200000" in configuration
    project.write("cg-bench.toml", configuration.replace("200000", "220000"))
    project.commit("slower")
    project.git("checkout", "--quiet", "main")
    requested = project.pull("slow", example=workflow)
    assert requested.jobs == {"benchmarks": "failure"}
    assert outputs(requested)["verdict"] == "regression"
    assert any(line.startswith("::error title=regression") for line in requested.annotations)
    (comment,) = project.comments()
    assert comment.startswith("### ❌ regression")
    assert "cg-bench diff ../base.json ../candidate.json" in comment
    artifact = project.artifact("cg-bench-result-")
    assert sorted(artifact) == ["base.json", "comparison.html", "result.json"]
    assert b"<h1>main" in artifact["comparison.html"]
    assert "artifact has all details on one page, `comparison.html`" in comment
