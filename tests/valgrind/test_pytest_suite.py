"""Benchmarks in pytest as part of a suite: what `pytest --cg-bench` counts, in an environment that has nothing but pytest."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from cachegrind_bench.config.load import load
from cachegrind_bench.errors import MeasurementError
from cachegrind_bench.harness.pytest import collected
from cachegrind_bench.startup.exchange import CHECKOUT, WORKTREE
from tests.conftest import ROOT
from tests.suites import suite_python
from tests.unit.repositories import Repository, git_environment

pytestmark = [pytest.mark.valgrind, pytest.mark.slow]

TESTS = """
import json, pytest
def test_dumps(benchmark): benchmark(json.dumps, list(range(300)))
@pytest.mark.long
@pytest.mark.parametrize("n", [10, 100])
def test_sort(benchmark, n): benchmark(sorted, [3, 1, 2] * n)
@pytest.mark.skip
def test_skipped(benchmark): benchmark(int)
def test_plain(): pass
"""
IDS = ["tests/test_it.py::test_dumps", "tests/test_it.py::test_sort[10]", "tests/test_it.py::test_sort[100]"]


@pytest.fixture
def project(tmp_path: Path) -> Repository:
    found = Repository(tmp_path / "project", git_environment(tmp_path))
    (found.path / "tests").mkdir()
    (found.path / "tests" / "test_it.py").write_text(TESTS)
    (found.path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\nmarkers =\n  long: takes long\n")
    (found.path / "cg-bench.toml").write_text('[[benchmark]]\npytest = "tests"\ntags = "py"\n')
    found.git("add", ".")
    found.commit("all")
    return found


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Return an environment that has pytest and what that needs, and nothing else."""
    bare = tmp_path / "bare"
    venv.create(bare, symlinks=True)
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        _link(bare, name)
    return bare


def _site(environment: Path) -> Path:
    return next(environment.glob("lib/*/site-packages"))


def _link(environment: Path, name: str) -> list[Path]:
    """Install a distribution by links, and return these."""
    found = distribution(name)
    links: list[Path] = []
    for top in sorted({file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}):
        links.append(_site(environment) / top)
        links[-1].symlink_to(str(found.locate_file(top)))
    return links


def cg_bench(project: Repository, *words: str, **variables: str) -> tuple[int, str, str]:
    command = [sys.executable, "-P", "-m", "cachegrind_bench", *words]
    env = {**project.environ, **variables}
    done = subprocess.run(command, cwd=project.path, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def measured(path: Path) -> dict[str, Any]:
    """Return what was counted and what decides whether that may be compared, by ids."""
    found = json.loads(path.read_text())["benchmarks"]
    return {item["id"]: (item["counts"], item["key"], item["runs"]) for item in found}


def test_the_counts_are_the_same_through_pytest_run_and_ab_whether_or_not_the_plugin_is_installed(
    project: Repository, bare: Path, tmp_path: Path
) -> None:
    plugin = _site(bare) / "cachegrind_bench"
    plugin.symlink_to(ROOT / "cachegrind_bench")
    needed = [plugin, *_link(bare, "msgspec"), *_link(bare, "pyelftools")]
    metadata = _site(bare) / "cachegrind_bench-9.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: cachegrind-bench\nVersion: 9\n")
    (metadata / "entry_points.txt").write_text("[pytest11]\ncg_bench = cachegrind_bench.pytest_plugin\n")
    target = tmp_path / "direct.json"
    command = [f"{bare}/bin/python", "-P", "-m", "pytest", "tests", "--cg-bench", f"--cg-bench-output={target}"]
    subprocess.run(command, cwd=project.path, env=project.environ, check=True)
    direct = measured(target)
    assert list(direct) == IDS
    for link in needed:
        link.unlink()
    shutil.rmtree(metadata)
    environment = {"VIRTUAL_ENV": str(bare)}
    code, _, err = cg_bench(project, "run", "-o", str(tmp_path / "run.json"), **environment)
    assert code == 0, err
    assert "test_it.py::test_skipped  skipped" in err
    assert measured(tmp_path / "run.json") == direct
    words = ("ab", "HEAD", "--keep", str(tmp_path), "-k", "100]", "--format", "json")
    code, out, err = cg_bench(project, *words, **environment)
    assert code == 0, err
    assert json.loads(out)["states"] == {"unchanged": 1}
    assert measured(tmp_path / "base.json") == {IDS[2]: direct[IDS[2]]}


ODD = """
import os, threading
def test_broken(benchmark): benchmark(lambda: 1 / 0)
def test_url(benchmark): benchmark(lambda: os.environ["DATABASE_URL"])
@pytest.mark.xfail(reason="known to be wrong")
def test_wrong(benchmark):
    benchmark(int)
    assert False
def begin():
    thread = threading.Thread(target=sum, args=[range(1000)])
    thread.start()
    thread.join()
def test_thread(benchmark): benchmark(begin)
def test_spawn(benchmark): benchmark(lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0))
"""


def test_a_suite_chooses_among_what_pytest_lists_and_reports_what_fails_or_is_skipped(project: Repository) -> None:
    (project.path / "tests" / "test_it.py").write_text(TESTS + ODD)
    code, out, _ = cg_bench(project, "list", "--tag", "long", "--format", "json")
    listed = json.loads(out)["benchmarks"]
    assert (code, [(item["id"], item["tags"], item["parameters"]) for item in listed]) == (
        0,
        [(IDS[1], ["py", "long"], {"n": "10"}), (IDS[2], ["py", "long"], {"n": "100"})],
    )
    words = ("run", "-k", "broken or 10] or url or wrong or thread or spawn", "--cached", "-o", "result.json")
    code, out, err = cg_bench(project, *words, DATABASE_URL="sqlite://")
    found = {
        item["id"].partition("::")[2]: item
        for item in json.loads((project.path / "result.json").read_text())["benchmarks"]
    }
    assert (code, {name: item["status"] for name, item in found.items()}) == (
        4,
        {"test_sort[10]": "ok", "test_broken": "failed", "test_url": "failed", "test_thread": "ok", "test_spawn": "ok"},
    )
    assert "test_broken  FAILED" in err
    assert err.count("; measured, since benchmarks of pytest always are)") == 5
    assert "  | E   ZeroDivisionError: division by zero" in err
    assert "if it needs DATABASE_URL, which the seal holds back, add --env DATABASE_URL" in found["test_url"]["error"]
    assert "test_wrong  skipped  (expected to fail: known to be wrong)" in err
    assert "5 benchmarks, 2 failed, 1 skipped" in out
    assert ("[6/6]" in err, "/6]" in err.partition("[6/6]")[2]) == (True, False)
    spawned = [name for name, item in found.items() if any("starts processes" in text for text in item["warnings"])]
    assert spawned == ["test_spawn"]
    code, out, err = cg_bench(project, "run", "-k", "skipped")
    assert (code, "every benchmark skips itself" in err) == (4, True)
    assert "unconditional skip" in out
    (project.path / "tests" / "test_it.py").write_text("import nowhere_to_be_found\n")
    code, _, err = cg_bench(project, "run")
    assert code == 4
    assert "cg-bench.toml:1: pytest could not collect the benchmarks, and ended with exit status 2" in err
    assert "No module named 'nowhere_to_be_found'" in err


CONFTEST = """
import pytest
def pytest_configure(config):
    assert config.pluginmanager.hasplugin("benchmark")
    assert not config.getoption("--benchmark-skip") and not config.getoption("--cov")
def pytest_collection_modifyitems(config, items):
    if not config.getoption("--benchmark-only"):
        for item in items:
            item.add_marker(pytest.mark.skip(reason="need --benchmark-only"))
"""
ASKS = """
import pytest
def test_sum(benchmark): benchmark(sum, range(100))
def test_mean(benchmark):
    benchmark(int)
    assert benchmark.stats["mean"] < 1
class TestOwn:
    @pytest.fixture
    def benchmark(self): return lambda function: function()
    def test_hidden(self, benchmark): benchmark(int)
"""


def test_a_conftest_finds_plugins_that_stay_out_and_a_test_that_wants_their_times_says_so(project: Repository) -> None:
    (project.path / "pytest.ini").write_text("[pytest]\n")
    (project.path / "conftest.py").write_text(CONFTEST)
    (project.path / "tests" / "test_it.py").write_text(ASKS)
    text = f'[[benchmark]]\npytest = "tests"\npython = "{suite_python("3.11")}"\n'
    (project.path / "cg-bench.toml").write_text(text)
    code, out, err = cg_bench(project, "run", "-o", "-")
    assert out, err
    plain, mean, hidden = json.loads(out)["benchmarks"]
    assert (code, plain["status"]) == (4, "ok")
    assert "test_it.py:6: cg-bench takes no times, so benchmark.stats is None" in mean["error"]
    assert "test_it.py:8 has a fixture 'benchmark' of its own, which hides that of cg-bench" in hidden["error"]


def test_nothing_but_pytest_is_needed_where_the_project_is_and_its_own_click_and_msgspec_are_measured(
    project: Repository, bare: Path
) -> None:
    for name in ("click", "msgspec"):
        (project.path / name).mkdir()
        (project.path / name / "__init__.py").write_text("def work(): return sorted(range(99))\n")
    (project.path / "conftest.py").touch()
    (project.path / "tests" / "test_it.py").write_text(
        "import sys, click, msgspec\n"
        "def test_work(benchmark):\n"
        "    import importlib.util\n"
        "    assert not any(importlib.util.find_spec(name) for name in ('rich', 'elftools', 'hypothesis'))\n"
        "    assert not any('elftools' in name for name in sys.modules)\n"
        "    benchmark(lambda: [click.work(), msgspec.work()])\n"
    )
    text = f'[[benchmark]]\nid = "bare"\npytest = "tests"\npython = "{bare}/bin/python"\n'
    (project.path / "cg-bench.toml").write_text(text)
    code, out, err = cg_bench(project, "run", "--format", "json")
    assert out, err
    assert (code, [item["id"] for item in json.loads(out)["benchmarks"]]) == (
        0,
        ["bare/tests/test_it.py::test_work"],
    ), err


def test_what_an_environment_imports_from_the_checkout_comes_from_a_worktree(
    project: Repository, bare: Path, tmp_path: Path
) -> None:
    source = project.path / "src" / "mine.py"
    source.parent.mkdir()
    source.write_text("")
    (project.path / "tests" / "test_it.py").write_text("import mine\ndef test_work(benchmark): benchmark(mine.work)\n")
    project.git("add", "--all")
    project.commit("with a module")
    (_site(bare) / "editable.pth").write_text(str(source.parent))
    (project.path / ".venv").symlink_to(bare)
    worktree = tmp_path / "worktree"
    project.git("worktree", "add", str(worktree))
    (entry,) = load(worktree / "cg-bench.toml").entries
    environ = {
        **project.environ,
        CHECKOUT: str(project.path),
        WORKTREE: json.dumps([str(project.path), str(worktree), []]),
    }
    found = collected(entry, environ)
    assert ([item.nodeid for item in found.items], found.elsewhere) == (["tests/test_it.py::test_work"], ())
    (entry,) = load(project.path / "cg-bench.toml").entries
    here = collected(entry, project.environ)
    assert found.python.variables == here.python.variables == ()
    path = [each.replace(str(worktree), str(project.path)) for each in found.imports["sys_path"]]
    assert path == here.imports["sys_path"], "counts depend on it"
    (entry,) = load(worktree / "cg-bench.toml").entries
    assert found.python.executable == f"{project.path}/.venv/bin/python"
    (_site(bare) / "editable.pth").unlink()
    (_site(bare) / "mine.py").write_text("")
    metadata = _site(bare) / "mine-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (metadata / "RECORD").write_text("mine.py,,\n")
    (metadata / "direct_url.json").write_text(json.dumps({"url": project.path.as_uri(), "dir_info": {}}))
    with pytest.raises(MeasurementError, match="mine is installed as a copy of your checkout"):
        collected(entry, {**project.environ, CHECKOUT: str(project.path)})
