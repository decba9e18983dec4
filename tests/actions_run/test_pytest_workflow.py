"""The workflow for benchmarks in pytest, run by act: a real suite's way from the first push to a pull request that is red."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.actions_run.project import EXAMPLES, ROOT, outputs
from tests.suites import suite_python

if TYPE_CHECKING:
    from pathlib import Path

    from tests.actions_run.project import Project

pytestmark = [pytest.mark.valgrind, pytest.mark.unsealed, pytest.mark.slow]

_WORDS = """
def clean(word):
    return word.strip().lower()

def count(text):
    found = {}
    for word in text.split():
        word = clean(word)
        found[word] = found.get(word, 0) + 1
    return found
"""
_TESTS = """
from words import count
TEXT = "The quick brown fox jumps over the lazy dog. " * 5
def test_count(benchmark): assert benchmark(count, TEXT)["the"] == 10
def test_fine(): pass
"""


def _workflow(folder: Path, python: Path) -> Path:
    """Return the example for a machine that has everything installed already, and no network."""
    text = (EXAMPLES / "pytest.yml").read_text("utf-8")
    for old, new in (
        ("sudo apt-get install --yes valgrind", "valgrind --version"),
        (
            "python3 -m pip install . pytest git+https://github.com/OWNER_OF_YOUR_COPY/cachegrind-bench@0000000000000000000000000000000000000000",
            f"{python} -c 'import pytest, pytest_benchmark, cachegrind_bench, words'",
        ),
        ("python3 -m pytest", f"{python} -m pytest"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = folder / "pytest.yml"
    path.write_text(text, encoding="utf-8")
    return path


def _without_history(workflow: Path, python: Path) -> Path:
    """Return the workflow with the steps that the guide has for jobs without a history."""
    text = workflow.read_text("utf-8")
    guide = (ROOT / "docs" / "pytest.md").read_text("utf-8")
    _, steps = re.findall(r"^```yaml\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    steps = steps.replace("python3 -m pip install . &&", "").replace("python3 -m pytest", f"{python} -m pytest")
    head, found, _ = text.partition("      - run: >\n")
    assert found
    checkout = "          persist-credentials: false"
    assert head.count(checkout) == 1
    path = workflow.with_name("without-history.yml")
    path.write_text(head.replace(checkout, f"          fetch-depth: 2\n{checkout}") + steps, encoding="utf-8")
    return path


def _change(project: Project, branch: str, name: str, text: str) -> None:
    project.git("checkout", "--quiet", "-b", branch, "main")
    project.write(name, text)
    project.commit(branch)
    project.git("checkout", "--quiet", "main")


def test_a_suite_for_pytest_benchmark_gates_pull_requests_and_names_the_function(
    project: Project, tmp_path: Path
) -> None:
    workflow = _workflow(tmp_path, suite_python("3.12"))
    for name in ("cg-bench.toml", "count.sh", "words.sh"):
        (project.tree / name).unlink()
    for name, text in (
        ("words.py", _WORDS),
        ("tests/test_words.py", _TESTS),
        ("pytest.ini", "[pytest]\npythonpath = .\n"),
    ):
        project.write(name, text)
    project.write(".gitignore", "__pycache__/\n.pytest_cache/\n.benchmarks/\n")
    project.commit("a suite")
    first = project.push(workflow)
    assert first.jobs == {"benchmarks": "success"}, first.log[-3000:]
    assert outputs(first)["verdict"] == "no baseline"
    assert len(project.stored()) == 1

    _change(project, "other", "NOTES", "a note")
    same = project.pull("other", example=workflow)
    assert same.jobs == {"benchmarks": "success"}, same.log[-3000:]
    assert outputs(same)["verdict"] == "unchanged"

    _change(project, "slow", "words.py", _WORDS.replace("word.strip().lower()", "word.strip().strip('.,').lower()"))
    slow = project.pull("slow", example=workflow, number=2)
    assert slow.jobs == {"benchmarks": "failure"}
    found = outputs(slow)
    assert (found["verdict"], found["regressions"], found["comparable"]) == ("regression", "1", "true")
    assert any("title=regression" in line and ",file=words.py,line=2::" in line for line in slow.annotations)
    comment = project.comments(2)[0].replace("\\", "")
    assert "each call of clean (words.py:2) costs " in comment
    assert "words.py:2" in comment
    assert "pytest --cg-bench --cg-bench-output=../base.json" in comment

    other = project.pull("slow", example=_without_history(workflow, suite_python("3.12")), number=3)
    assert other.jobs == {"benchmarks": "failure"}, other.log[-3000:]
    assert outputs(other)["verdict"] == "regression"

    project.git("checkout", "--quiet", "-b", "entry", "slow")
    project.write("cg-bench.toml", f'[[benchmark]]\npytest = "tests"\npython = "{suite_python("3.12")}"\n')
    project.commit("a suite of cg-bench")
    project.git("checkout", "--quiet", "main")
    entry = project.pull("entry", number=4)
    assert entry.jobs == {"benchmarks": "failure"}, entry.log[-3000:]
    growth = [float(each["max-regression"].rstrip("%")) for each in map(outputs, (slow, other, entry))]
    assert max(growth) - min(growth) < 0.05
    assert project.comments(3) == []
    assert "most of it in" in other.summary or "largest share" in other.summary
