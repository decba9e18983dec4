"""The corpus of innocent edits (benchmarks/robustness), on packages that are made here: what the rules make of them."""

from __future__ import annotations

import ast
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.robustness import native_rules, native_text, plant, python_rules
from benchmarks.robustness.edit import Edit, Source, proposals
from benchmarks.robustness.runner import Journal
from benchmarks.robustness.table import table

PYTHON = '''"""A package."""

import os


class Counter:
    """Counts."""

    def __init__(self, start):
        self.total = start

    def add(self, values, factor=2):
        for value in values:
            product = value * factor
            self.total += product
        return self.total


def first(text):
    """Return the length."""
    size = len(text)
    if size > 1000:
        raise ValueError("the text is too long")
    return size


def second(text):
    found = {letter: text.count(letter) for letter in text}
    return sorted(found.items())


def work():
    counter = Counter(1)
    counter.add(range(9))
    return [counter.total, first("abc"), second("abcab"), os.sep]
'''
EXECUTED = {"package.py": frozenset({"Counter.__init__", "Counter.add", "first", "second", "work"})}
C = """#include <stdio.h>
/* A comment with a brace: { */
static unsigned twice(unsigned value) {
    unsigned product = value * 2;
    return product;
}

static unsigned thrice(unsigned value)
{
    if (value > 1000000000u) fprintf(stderr, "this value is too large\\n");
    return value * 3;
}

int main(void) {
    unsigned sum = 0, i;
    for (i = 0; i < 1000; i++) sum += twice(i) ^ thrice(i);
    printf("%u {\\n", sum);
    return 0;
}
"""
ENVIRONMENT = {"dependency", "upgrade"}


def result_of(text: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(text, "package.py", "exec"), names)  # noqa: S102 # the text is ours
    return names["work"]()


@pytest.fixture
def source(tmp_path: Path) -> Source:
    (tmp_path / "package.py").write_text(PYTHON)
    return Source(root=tmp_path, executed=EXECUTED)


@pytest.fixture
def c_source(tmp_path: Path) -> Source:
    (tmp_path / "main.c").write_text(C)
    return Source(root=tmp_path, executed={"main.c": frozenset()})


def test_each_rule_edits_a_python_module_innocently_and_always_in_the_same_way(source: Source) -> None:
    for name, (rule, _times) in python_rules.RULES.items():
        edits = list(itertools.islice(proposals(rule, source, f"key {name}"), 3))
        assert edits, name
        assert edits == list(itertools.islice(proposals(rule, source, f"key {name}"), 3)), name
        for edit in edits:
            assert bool(edit.requirements) == (name in ENVIRONMENT), name
            for file, text in edit.files.items():
                assert text != PYTHON, edit.what
                assert result_of(text if file == "package.py" else PYTHON) == result_of(PYTHON), edit.what


def test_a_local_is_renamed_wherever_it_is_used_and_no_attribute_is(source: Source) -> None:
    edits = list(proposals(python_rules.rename_local, source, "any"))
    product = next(edit for edit in edits if edit.what.startswith("product "))
    assert product.files["package.py"].count("product_") == 2
    assert not any(
        edit.what.startswith(("total ", "letter ", "values ")) and "second" not in edit.what for edit in edits
    )


def test_a_planted_loop_is_run_by_the_function_that_is_named_and_changes_nothing_else() -> None:
    text = plant.python_loop(PYTHON, "Counter.add", 7)
    assert "        for _planted in [None] * 7:\n            pass\n        for value" in text
    assert result_of(text) == result_of(PYTHON)
    assert not plant.can_hold("def one(): return 1\n", "one")
    assert not plant.can_hold("def one(): return 1\n", "another")


def test_functions_of_c_and_rust_are_found_in_spite_of_comments_strings_and_containers() -> None:
    assert [item.name for item in native_text.functions(C, rust=False)] == ["twice", "thrice", "main"]
    rust = """impl<'a> Thing<'a> {
    /// { a brace
    pub fn get(&self) -> char { if self.one { '}' } else { '\\'' } }
}
mod inner { fn two() -> &'static str { r#"}"# } }
struct Three { field: u32 }
fn four() {}
"""
    assert [item.name for item in native_text.functions(rust, rust=True)] == ["get", "two", "four"]


def built(folder: Path, edit: Edit) -> str:
    for name, text in ({"main.c": C} | dict(edit.files)).items():
        (folder / name).write_text(text)
    library = ["-Wl,--no-as-needed", "-lm"] if edit.requirements else []
    names = ["main.c", *edit.link]
    subprocess.run(["gcc", "-w", "-O1", *names, *library, "-o", "program"], cwd=folder, check=True)
    return subprocess.run([folder / "program"], capture_output=True, text=True, check=True).stdout


def test_each_rule_edits_a_c_program_innocently(c_source: Source) -> None:
    expected = built(c_source.root, Edit(what="nothing"))
    for name, (rule, _times) in native_rules.RULES.items():
        edit = next(proposals(rule, c_source, "key"), None)
        assert edit is not None, name
        assert built(c_source.root, edit) == expected, edit.what
        (c_source.root / "main.c").write_text(C)


def test_the_probe_notes_results_and_calls(tmp_path: Path) -> None:
    (tmp_path / "package.py").write_text(PYTHON)
    (tmp_path / "bench_it.py").write_text(
        "import package\n\ndef test_work(benchmark):\n    assert benchmark(package.work)\n"
    )
    probe = Path(plant.__file__).parent
    command = [sys.executable, "-m", "pytest", "-q", "-p", "probe", "-p", "no:cg_bench", "-p", "no:cacheprovider"]
    environ = {"PYTHONPATH": str(probe), "ROBUSTNESS_PROBE": str(tmp_path / "out.json"), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([*command, "bench_it.py"], cwd=tmp_path, env=environ, check=True, capture_output=True)
    noted = json.loads((tmp_path / "out.json").read_text())["bench_it.py::test_work"]
    calls = {qualname: count for file, qualname, count, _suspended in noted["calls"] if file.endswith("package.py")}
    assert {"work", "first", "second", "Counter.__init__", "Counter.add"} <= set(calls)
    assert len(noted["digest"]) == 16
    ast.parse(probe.joinpath("probe.py").read_text(), feature_version=(3, 11))


def test_an_interrupted_journal_goes_on_and_the_table_counts_edits_not_benchmarks(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    row: dict[str, Any] = {
        "label": "after",
        "project": "one",
        "blamed": None,
        "what": "x",
        "ir_ppm": 0,
        "score_ppm": 0,
        "Ir": 1,
    }
    rows: list[dict[str, Any]] = [
        row | {"edit": "comment-0", "planted": 0, "benchmark": "a", "state": "unchanged"},
        row
        | {"edit": "comment-0", "planted": 0, "benchmark": "b", "state": "improvement", "blamed": {"function": "f"}},
        row | {"edit": "comment-0", "planted": 1, "benchmark": "a", "state": "regression", "ir_ppm": 9000},
    ]
    Journal(path).add(rows)
    with path.open("a") as file:
        file.write('{"label": "after", "proj')  # killed while it wrote
    journal = Journal(path)
    assert journal.has("after", "one", "comment-0", 1)
    assert not journal.has("after", "one", "comment-0", 2)
    assert "| after | one | 1 | 1 of 1 (100.0 %) | 1 of 1 (100.0 %) | 1 of 1 (100.0 %) |" in table(journal.rows)
    journal.add([rows[0] | {"edit": "string-0"}])
    assert Journal(path).has("after", "one", "string-0", 0)
