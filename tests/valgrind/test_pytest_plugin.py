"""`pytest --cg-bench` under a real Valgrind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cachegrind_bench.model.codec import decode
from cachegrind_bench.model.metrics import ZERO
from tests.projects import Project

pytestmark = pytest.mark.slow

_SUITE = """
import json, os, random
import pytest


@pytest.mark.benchmark
def test_empty(): pass


class TestMethods:
    @pytest.mark.benchmark
    def test_empty(self, tmp_path): pass


def test_first(benchmark): benchmark(lambda: None)


@pytest.mark.parametrize("n", [5, 10])
def test_dumps(benchmark, n): benchmark(json.dumps, {str(i): list(range(n)) for i in range(n)})


def test_random(benchmark):
    benchmark(lambda: sorted(random.random() for _ in range(50)) + list(os.urandom(8)))


def test_setup(benchmark):
    assert benchmark.pedantic(sorted, setup=lambda: (([3, 2, 1],), {}), rounds=3) == [1, 2, 3]


def test_last(benchmark): benchmark(lambda: None)


def test_no_benchmark(): raise AssertionError
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def _counted(found: dict[str, Any]) -> dict[str, Any]:
    return {name: (item["key"], item["counts"], item["profile"]) for name, item in found.items()}


def test_counts_do_not_depend_on_which_others_are_measured_in_which_order_or_beside(project: Project) -> None:
    project.write(_SUITE)
    first = project.measure()
    assert list(first) == [
        *("test_empty", "TestMethods::test_empty", "test_first", "test_dumps[5]", "test_dumps[10]"),
        *("test_random", "test_setup", "test_last"),
    ]
    wanted = _counted(first)
    assert _counted(project.measure("--cg-bench-jobs=2")) == wanted
    assert _counted(project.measure(*(f"test_it.py::{name}" for name in reversed(first)))) == wanted
    alone = _counted(project.measure("-k", "test_dumps and 10"))
    assert alone == {"test_dumps[10]": wanted["test_dumps[10]"]}
    assert {first[name]["score"]["value"] for name in ("test_empty", "TestMethods::test_empty")} == {0}
    assert first["test_first"]["counts"]["Ir"] == first["test_last"]["counts"]["Ir"] > 0
    for item in first.values():
        assert item["counts"] == dict.fromkeys(item["counts"], 0) or item["profile"]
        assert sum(row[2] for row in item["profile"]) == item["counts"]["Ir"]
        assert item["key_fields"]["measured"] == "pytest/13"


@pytest.mark.parametrize(("more", "mark"), [(1, ""), (2, "@pytest.mark.parametrize('n', [1])")])
def test_a_benchmark_counts_the_same_at_each_place_in_a_file_whatever_was_imported_before(
    project: Project, more: int, mark: str
) -> None:
    # Each of these shifts what is allocated afterwards, and so decides which traces of a place would be seen.
    lines = [f"class C{number}: pass\ndef f{number}(n{number}): return n{number}.a{number}" for number in range(more)]
    project.write("\n".join([f"junk = [f'{{number}}x' for number in range({more * 37})]", *lines]), "conftest.py")
    words = (
        "import json, re, textwrap\nWORDS = [f'word{number % 97}' for number in range(600)]\nTEXT = ' '.join(WORDS)\n"
    )
    data = (
        "DATA = {word: [number, word, None] for number, word in enumerate(WORDS * 3)}\nJSON = json.dumps([DATA] * 4)\n"
    )
    calls = {
        "dumps": "json.dumps, [DATA] * 8",
        "loads": "json.loads, JSON",
        "sub": r"re.sub, r'word(\d+)', r'\1', TEXT",
        "wrap": "textwrap.wrap, TEXT, 70",
        "sorted": "sorted, WORDS",
        "set": "set, WORDS",
    }
    places = [
        f"{mark}\ndef test_{name}_{place}(benchmark{', n' if mark else ''}): benchmark({call})\n"
        for place in range(4)
        for name, call in calls.items()
    ]
    project.write("import pytest\n" + words + data + "".join(places))
    counted = _counted(project.measure())
    for name in calls:
        first, *others = (counted[f"test_{name}_{place}{'[1]' if mark else ''}"] for place in range(4))
        assert others == [first] * 3, name


def test_a_file_that_comes_where_python_imports_nothing_from_moves_no_instruction(project: Project) -> None:
    (project.folder / "tests").mkdir()
    project.write(_SUITE, "tests/test_it.py")
    command = str(Path(sys.executable).with_name("pytest"))
    output = project.folder / "result.json"
    found: list[dict[str, int]] = []
    for _ in range(2):  # the first time it is not there yet
        words = [
            command,
            "-p",
            "no:cacheprovider",
            "--cg-bench",
            "--cg-bench-jobs=1",
            f"--cg-bench-output={output}",
            "-k",
            "dumps or random",
        ]
        done = subprocess.run(words, cwd=project.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        found.append({item["id"]: item["counts"]["Ir"] for item in json.loads(output.read_text())["benchmarks"]})
    assert found[0] == found[1]


def test_a_distribution_that_is_installed_moves_no_count(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(_SUITE)
    site = tmp_path / "site"
    asking = site / "asking_plugin-1.5.dist-info"
    asking.mkdir(parents=True)
    (asking / "METADATA").write_text("Metadata-Version: 2.1\nName: asking-plugin\nVersion: 1.5\n")
    (asking / "entry_points.txt").write_text("[pytest11]\nasking = asking\n")
    (site / "asking.py").write_text(
        "import importlib.metadata\nassert importlib.metadata.version('asking-plugin') == '1.5'\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(site))
    found: list[dict[str, dict[str, int]]] = []
    for number in range(2):
        measured = project.measure("-k", "dumps or random")
        found.append({name: item["counts"] for name, item in measured.items()})
        metadata = site / f"anything-{number}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: anything\nVersion: {number}\n")
        (metadata / "entry_points.txt").write_text("[console_scripts]\nanything = anything:main\n")
    assert found[0] == found[1]


def test_other_warm_ups_are_another_kind_of_measurement(project: Project) -> None:
    project.write("def test_int(benchmark): benchmark(int, '7')\n")
    usual, cold = project.measure()["test_int"], project.measure("--cg-bench-warmup=0")["test_int"]
    assert usual["key"] != cold["key"]
    assert cold["key_fields"]["measured"] == "pytest/13 warmup=0"


def test_a_result_with_an_empty_benchmark_can_be_read_and_compared(project: Project, tmp_path: Path) -> None:
    project.write(_SUITE)
    base = tmp_path / "base.json"
    assert project.run(f"--cg-bench-output={base}", "-k", "empty or first").returncode == 0
    found = {item.id: item for item in decode(base.read_bytes(), "base.json").benchmarks}
    assert found["test_it.py::test_empty"].counts == ZERO
    same = project.run(f"--cg-bench-compare={base}", "-k", "empty or first")
    assert same.returncode == 0, same.stdout
    over = project.run(f"--cg-bench-compare={base}", f"--cg-bench-output={base}")
    assert over.returncode == 4
    assert "would overwrite" in over.stderr


def test_a_comparison_of_nothing_is_not_green(project: Project, tmp_path: Path) -> None:
    project.write("def test_int(benchmark): benchmark(int, '7')\n")
    base = tmp_path / "base.json"
    assert project.run(f"--cg-bench-output={base}").returncode == 0
    other = project.run(f"--cg-bench-compare={base}", "--cg-bench-warmup=3")
    assert other.returncode == 1
    assert "not comparable" in other.stdout


def test_a_folder_of_the_projects_own_survives_and_leftovers_do_not(project: Project, tmp_path: Path) -> None:
    kept = tmp_path / "kept" / "inside"
    kept.mkdir(parents=True)
    project.write(
        f"import os, tempfile\nos.environ['TMPDIR'] = tempfile.tempdir = {str(kept.parent)!r}\n", "conftest.py"
    )
    project.write(
        """
import os, tempfile
def test_first(benchmark): benchmark(lambda: os.close(tempfile.mkstemp(dir=os.environ["CG_TMP"])[0]))
def test_second(benchmark): benchmark(lambda: os.close(tempfile.mkstemp(dir=os.environ["CG_TMP"])[0]))
"""
    )
    (project.folder / "pytest.ini").write_text("[pytest]\n")
    project.write(
        "import os\nos.environ['CG_TMP'] = os.environ.get('TMPDIR', '')\n"
        + (project.folder / "conftest.py").read_text(),
        "conftest.py",
    )
    both = project.measure()
    alone = project.measure("-k", "second")
    assert kept.is_dir()
    assert alone["test_second"]["counts"]["Ir"] == both["test_second"]["counts"]["Ir"]


def test_default_arguments_and_patches_do_not_disturb_whole_tests(project: Project) -> None:
    project.write(
        """
import pytest
from unittest import mock
@pytest.mark.benchmark
def test_default(n=1000): return sum(range(n))
@pytest.mark.benchmark
@mock.patch("os.getcwd")
def test_patched(getcwd): getcwd()
"""
    )
    assert {item["status"] for item in project.measure().values()} == {"ok"}


def test_failures_in_a_benchmark_are_those_of_its_test(project: Project) -> None:
    project.write(
        """
import os, pytest
def test_wrong(benchmark):
    found = benchmark(lambda: 3)
    assert found == 4
def test_unused(benchmark): pass
def test_dies(benchmark): os._exit(5)
@pytest.mark.skip(reason="not today")
def test_skipped(benchmark): benchmark(int)
def test_good(benchmark): benchmark(int)
"""
    )
    found = project.measure("-rA", status=1)
    assert {name: item["status"] for name, item in found.items()} == {
        "test_wrong": "failed",
        "test_unused": "failed",
        "test_dies": "failed",
        "test_good": "ok",
    }
    assert "assert 3 == 4" in found["test_wrong"]["error"]
    assert "never called the fixture" in found["test_unused"]["error"]
    assert "ended with exit status 5" in found["test_dies"]["error"]
    done = project.run("-x")
    assert "stopping after 1 failures" in done.stdout
    skipped = project.run("-k", "skipped")
    assert (skipped.returncode, "nothing was measured: 1 benchmark skipped" in skipped.stdout) == (5, True)
    assert ">       assert found" in done.stdout or ">   assert found" in done.stdout.replace("       ", "   ")


def test_a_regression_fails_the_run_and_names_the_function(project: Project, tmp_path: Path) -> None:
    text = "def work(): return sum(range({}))\ndef test_sum(benchmark): benchmark(work)\n"
    project.write(text.format(100))
    base = tmp_path / "base.json"
    assert project.run(f"--cg-bench-output={base}").returncode == 0
    same = project.run(f"--cg-bench-compare={base}")
    assert same.returncode == 0, same.stdout
    project.write(text.format(200))
    worse = project.run(f"--cg-bench-compare={base}")
    assert worse.returncode == 1
    assert "regression" in worse.stdout
    assert "sum" in worse.stdout


def test_without_valgrind_it_is_bad_usage(project: Project) -> None:
    project.write(_SUITE)
    done = project.run("--cg-bench-valgrind=/no/such/valgrind")
    assert done.returncode == 4
    assert "cg-bench:" in done.stderr
