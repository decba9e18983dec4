"""Every example workflow for GitHub, run for real with act: on a project of its own, under Valgrind, against a stub of the API."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.model.codec import decode
from tests.actions_run.project import COUNT, EXAMPLES, NAME, ROOT, STORE, outputs, slower, unrelated

if TYPE_CHECKING:
    from pathlib import Path

    from tests import act
    from tests.actions_run.project import Project

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "words"
version = "1"

[[tool.cg-bench.benchmark]]
id = "count"
command = ["python3", "bench.py"]
"""

pytestmark = [pytest.mark.valgrind, pytest.mark.unsealed, pytest.mark.slow]


def test_a_push_is_stored_a_regression_fails_and_is_commented_and_another_change_passes(project: Project) -> None:
    prepared, project.action = project.action, ROOT  # with a set-up of its own, as it really is
    first = project.push()
    project.action = prepared
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
    assert comment.startswith("### ❌ regression: count ")
    assert f"git checkout {found['baseline-sha'][:12]}" in comment
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
    assert sorted(files) == ["base.json", "comparison.html", "result.json"]
    assert {item.id for item in decode(files["result.json"], "result.json").benchmarks} == {"count", "words"}
    assert project.comments() == []

    said = project.after(project.run_id, "slow")
    assert (said.status, said.jobs) == (0, {"comment": "success"})
    (comment,) = project.comments()
    assert comment.startswith("### ❌ regression: count ")
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
    pages = {"CG_BENCH_PAGES": "true"}
    again = project.run("nightly.yml", "schedule", {"schedule": "17 3 * * *"}, rights, variables=pages)
    assert (again.status, again.jobs) == (0, {"trend": "success", "pages": "success"}), again.log[-3000:]
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
    assert "| where |" in comment
    assert re.match(r"### ❌ regression.*most of it in \S", comment)


def test_two_pushes_at_once_are_both_stored(project: Project) -> None:
    project.push()
    commits: list[str] = []
    for number in (1, 2):
        project.write("NOTES", str(number))
        commits.append(project.commit(f"commit {number}"))
    project.git("push", "--quiet", "origin", "main")

    def run(commit: str) -> act.Ran:
        payload = {"ref": "refs/heads/main", "after": commit, "deleted": False}
        return project.run("pull-request.yml", "push", payload, {"contents": "write", "actions": "read"})

    with ThreadPoolExecutor() as pool:
        both = list(pool.map(run, commits))
    assert [ran.status for ran in both] == [0, 0]
    assert {name.split("/")[-1].split(".")[0] for name in project.stored()} > {commit[:12] for commit in commits}


def test_a_merge_group_is_measured_gated_and_not_stored(project: Project, tmp_path: Path) -> None:
    project.push()
    base = project.git("rev-parse", "main")
    slower(project)
    branch = "gh-readonly-queue/main/pr-1-0123"
    project.git("checkout", "--quiet", "-b", branch)
    project.git("merge", "--quiet", "--no-ff", "--message", "merge", "slow")
    project.git("push", "--quiet", "origin", branch)
    workflow = tmp_path / "queue.yml"
    example = (EXAMPLES / "pull-request.yml").read_text("utf-8")
    workflow.write_text(example.replace("  pull_request:\n", "  pull_request:\n  merge_group:\n"), encoding="utf-8")
    group = {"head_sha": project.git("rev-parse", branch), "head_ref": f"refs/heads/{branch}", "base_sha": base}
    ran = project.run(workflow, "merge_group", {"merge_group": group}, {"contents": "write", "actions": "read"})
    assert ran.jobs == {"benchmarks": "failure"}
    assert (outputs(ran)["verdict"], outputs(ran)["baseline-sha"]) == ("regression", base)
    assert len(project.stored()) == 1


def test_without_a_history_both_commits_are_measured(project: Project, tmp_path: Path) -> None:
    workflow = tmp_path / "ab.yml"
    example = (EXAMPLES / "pull-request.yml").read_text("utf-8")
    given = "        with:\n          baseline: ab\n          store: none\n          require-baseline: true\n"
    workflow.write_text(example.replace("        # with:\n", given, 1), encoding="utf-8")
    slower(project)
    ran = project.pull("slow", example=workflow)
    assert ran.jobs == {"benchmarks": "failure"}
    assert outputs(ran)["verdict"] == "regression"
    assert outputs(ran)["baseline-sha"] == project.git("rev-parse", "main")
    assert project.stored() == []
    (comment,) = project.comments()
    assert "| where |" in comment


def test_a_benchmark_that_fails_is_reported_and_fails_the_job(project: Project) -> None:
    project.push()
    project.git("checkout", "--quiet", "-b", "broken")
    project.write("words.sh", "echo no good; exit 3\n")
    project.commit("broken")
    project.git("checkout", "--quiet", "main")
    ran = project.pull("broken")
    assert ran.jobs == {"benchmarks": "failure"}
    assert outputs(ran)["verdict"] == "failed"
    assert any(line.startswith("::error title=failed%3A words::") for line in ran.annotations)
    assert project.comments()[0].startswith("### 💥 ")


def test_a_python_package_is_installed_and_measured(project: Project) -> None:
    project.write("pyproject.toml", PYPROJECT)
    project.write("words/__init__.py", "def count(n):\n    return sum(i % 7 for i in range(n))\n")
    project.write("bench.py", "import words\nprint(words.count(2000))\n")
    (project.tree / "cg-bench.toml").unlink()
    project.commit("a package")
    first = project.push("python.yml")
    assert first.jobs == {"benchmarks": "success"}, first.log[-3000:]
    project.git("checkout", "--quiet", "-b", "broken")
    project.write("bench.py", "import no_such_module\n")
    project.commit("broken")
    project.git("checkout", "--quiet", "main")
    second = project.pull("broken", example="python.yml")
    assert outputs(second)["verdict"] == "failed"
    assert "ModuleNotFoundError: No module named 'no_such_module'" in second.summary
    assert len([line for line in second.annotations if "failed" in line]) == 1
