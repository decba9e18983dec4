"""The workflow for pull requests, run by act on a configuration that has an entry for a framework's benchmarks."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.actions_run.project import ROOT, outputs

if TYPE_CHECKING:
    from tests import act
    from tests.actions_run.project import Project

pytestmark = [pytest.mark.valgrind, pytest.mark.unsealed, pytest.mark.slow]

SUITE = """\
[[benchmark]]
google-benchmark = "./bench"
setup = "cc -O1 -g -o bench bench.c"
"""


def test_benchmarks_that_a_framework_lists_gate_pull_requests(project: Project) -> None:
    for name in ("count.sh", "words.sh"):
        (project.tree / name).unlink()
    source = project.tree / "bench.c"
    shutil.copyfile(ROOT / "tests" / "data" / "native" / "state.c", source)
    project.write("cg-bench.toml", SUITE)
    project.write(".gitignore", "bench\n")
    project.commit("a suite")
    first = project.push()
    assert first.jobs == {"benchmarks": "success"}, first.log[-3000:]
    assert outputs(first)["verdict"] == "no baseline"
    assert len(project.stored()) == 1

    def pull(branch: str, old: str, new: str, number: int) -> act.Ran:
        project.git("checkout", "--quiet", "-b", branch, "main")
        text = source.read_text("utf-8")
        assert text.count(old) == 1
        project.write("bench.c", text.replace(old, new))
        project.commit(branch)
        project.git("checkout", "--quiet", "main")
        return project.pull(branch, number=number)

    slow = pull("slow", "WORK 1000", "WORK 1010", 1)
    assert slow.jobs == {"benchmarks": "failure"}
    found = outputs(slow)
    assert (found["verdict"], found["regressions"], found["comparable"]) == ("regression", "4", "true")
    assert any(line.startswith("::error title=regression%3A plain/8::") for line in slow.annotations)
    (comment,) = project.comments(1)
    assert comment.startswith(
        "### ❌ regression: plain/8 score +0.999 % (threshold 0.5 %), most of it in work; 4 regressions"
    )

    broken = pull("broken", "int main", "int", 2)
    assert broken.jobs == {"benchmarks": "failure"}
    assert "nothing was measured: cg-bench.toml\\:1: its setup failed with exit status 1" in broken.summary
