"""Options that were given, those that cannot be handed over, -s, and files that are new, each measured."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.suites import suite_python
from tests.valgrind.measuring import measure

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

_CONFTEST = """
import enum

class Size(enum.Enum):
    SMALL = 1
    LARGE = 100

def pytest_addoption(parser):
    parser.addoption("--size", type=lambda text: Size[text], default=Size.SMALL)
"""
_SUITE = """
import logging

def test_size(benchmark, request):
    print("h\\u00e9llo from inside")
    size = request.config.getoption("size", None)
    assert size is None or size.name == "SMALL"
    benchmark(int)

def test_logs(benchmark):
    logging.getLogger().warning("kept in a log")
    benchmark(int)
    print("said once")
    assert not "this"
"""


def test_an_option_of_another_folder_does_no_harm_and_s_shows_output_on_any_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "{tmp}"
    for name, text in (("a/conftest.py", _CONFTEST), ("a/test_a.py", _SUITE), ("b/test_b.py", _SUITE)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    plain = measure(folder, "a", "b", "-s", env=ascii_only)
    assert "2 failed, 2 passed" in plain.said
    assert plain.said.count("h\\xe9llo from inside") == 2
    assert plain.said.count("said once\n") == 2
    assert "kept in a log" in plain.said
    assert "could not be passed" not in plain.said
    given = measure(folder, "a", "b", "--size=LARGE", "-k", "size")
    assert "1 failed, 1 passed" in given.said  # which is a's, as it got what was given
    assert (
        "the value of --size could not be passed to the benchmarks of b/test_b.py, which see its default "
        "(ModuleNotFoundError: No module named 'conftest')"
    ) in given.said
    assert given.said.count("could not be passed") == 1


_READLINE = """
import sys
at_start = sorted({"pdb", "readline"} & set(sys.modules))

def test_it(benchmark):
    assert at_start == ["pdb"]
    import readline  # which is there for those who want it
    benchmark(readline.get_current_history_length)
"""


def test_pytest_starts_no_readline_as_that_looks_whether_a_second_has_begun(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(_READLINE)
    done = measure(tmp_path, python=suite_python("3.13"))
    assert done.status == 0, done.said


_IMPORTS = """
import importlib.metadata

def test_print(benchmark): benchmark(print, "hello")

def test_after_imports(benchmark):
    import other
    importlib.metadata.version("pytest")
    benchmark(lambda: [str(number) * 20 for number in range(300)])
"""


def test_a_new_file_where_python_imports_from_moves_no_count(tmp_path: Path) -> None:
    # An environment with a package that is installed editable, and a folder on PYTHONPATH.
    suites = suite_python("3.12")
    subprocess.run([str(suites), "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    packages = next((tmp_path / "env").glob("lib/python*/site-packages"))
    paths = (*suites.parent.parent.glob("lib/python*/site-packages"), ROOT, tmp_path / "editable")
    (packages / "paths.pth").write_text("".join(f"{path}\n" for path in paths))
    folders = [packages, *(tmp_path / name for name in ("editable", "src", "project"))]
    for folder in folders[1:]:
        folder.mkdir()
    for name, text in (("pytest.ini", "[pytest]\n"), ("other.py", ""), ("test_it.py", _IMPORTS)):
        (tmp_path / "project" / name).write_text(text)

    def counts() -> dict[str, dict[str, int]]:
        env = {"PYTHONPATH": str(tmp_path / "src")}
        done = measure(tmp_path / "project", python=tmp_path / "env" / "bin" / "python", env=env)
        assert done.status == 0, done.said
        return {name: item["counts"] for name, item in done.found.items()}

    first = counts()
    for folder in folders:
        for number in range(3):
            (folder / f"new_file_{number}").touch()
    assert counts() == first


def test_the_model_ir_counts_the_same_instructions_of_a_benchmark_without_simulating_caches(tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "test_ir.py").write_text("def test_sort(benchmark):\n    benchmark(sorted, range(1000))\n")
    full, only_ir = (
        measure(folder, *options).found["test_sort"]["counts"] for options in ((), ("--cg-bench-model=ir",))
    )
    assert only_ir["Ir"] == full["Ir"]
    assert {name for name, count in only_ir.items() if count} == {"Ir"}
