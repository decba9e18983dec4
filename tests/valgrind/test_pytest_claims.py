"""What docs/pytest.md says of fixtures, other plugins and odd places, each measured: many claims for each pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.suites import suite_python
from tests.valgrind.measuring import measure

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

_CONFTEST = """
import enum, pathlib
import pytest

class Size(enum.Enum):
    SMALL = 1
    LARGE = 100

def pytest_addoption(parser):
    parser.addoption("--data", type=pathlib.Path)
    parser.addoption("--size", type=lambda text: Size[text], default=Size.SMALL)
    parser.addoption("--odd", type=lambda text: (lambda: text))

def pytest_benchmark_update_json(config, benchmarks, output_json): raise AssertionError

@pytest.fixture(scope="session")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "file").write_text("12 34")
    return folder

@pytest.fixture
def anyio_backend(): return "asyncio"
"""

_SUITE = """
import asyncio, os, pathlib, tempfile, unittest
import pytest
from conftest import Size

FOLDER = tempfile.mkdtemp()
KEPT = []

@pytest.fixture(scope="module")
def words(): return ["a", "b"] * 50

@pytest.mark.benchmark
@pytest.mark.asyncio
async def test_asyncio():
    await asyncio.sleep(0)
    sum(range(1000))

@pytest.mark.benchmark
@pytest.mark.anyio
async def test_anyio(anyio_backend):
    assert anyio_backend == "asyncio"
    await asyncio.sleep(0)

@pytest.mark.benchmark
@pytest.mark.asyncio
async def test_asyncio_empty(): pass

class TestOld(unittest.TestCase):
    def setUp(self): self.values = list(range(50))

    @pytest.mark.benchmark
    def test_whole(self): self.assertEqual(sum(self.values), 1225)

    @pytest.fixture
    def keep(self, benchmark): self.benchmark = benchmark

    @pytest.mark.usefixtures("keep")
    def test_fixture(self): self.assertEqual(self.benchmark(sum, self.values), 1225)

def test_fixtures(benchmark, made, words, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getcwd", lambda: "nowhere")
    (tmp_path / "x").write_text("y")
    found = benchmark(lambda: (os.getcwd(), "".join(words), (made / "file").read_text(), (tmp_path / "x").read_text()))
    assert found == ("nowhere", "ab" * 50, "12 34", "y")

def test_decorator(benchmark):
    @benchmark
    def found(): return 7 * 6
    assert found == 42

def test_pedantic(benchmark):
    told = []
    def setup():
        told.append("setup")
        return ([3, 1, 2],), {"reverse": True}
    def teardown(values, reverse): told.append((tuple(values), reverse))
    assert benchmark.pedantic(sorted, setup=setup, teardown=teardown, rounds=5) == [3, 2, 1]
    assert told == ["setup", ((3, 1, 2), True)] * (len(told) // 2)

def test_cache(benchmark, cache, request):
    assert request.config.cache is cache
    assert cache.get("mine/value", 5) == 5
    cache.set("mine/value", 7)
    assert benchmark(cache.get, "mine/value", 0) == 7

def test_cache_of_others(benchmark, cache): assert benchmark(cache.get, "mine/value", 5) == 5

def test_options(benchmark, request):
    option = request.config.option
    assert (option.data, option.size, option.odd) == (pathlib.Path("/data"), Size.LARGE, None)
    benchmark(int)

def test_environment(benchmark):
    assert (os.environ["PASSED"], os.environ["MODE"], os.environ.get("HELD")) == ("on", "fast", None)
    benchmark(int)

def test_folder_of_the_module(benchmark): assert benchmark(os.listdir, FOLDER) == []

@pytest.mark.flaky(reruns=2)
@pytest.mark.timeout(0.001)
@pytest.mark.parametrize("n", [pytest.param(3, id="three"), 5])
def test_parameters(benchmark, n): benchmark(range, n)

def test_forks(benchmark):
    def work():
        if not (pid := os.fork()): os._exit(0)
        os.waitpid(pid, 0)
    benchmark(work)

def test_grows(benchmark): benchmark(lambda: KEPT.append([0] * 1000) or sum(map(len, KEPT)))
"""


def test_suites_find_their_fixtures_and_other_plugins_stay_out_of_the_way(folder: Path) -> None:
    (folder / "conftest.py").write_text(_CONFTEST)
    (folder / "test_it.py").write_text(_SUITE)
    done = measure(
        folder,
        *("-W", "ignore", "-n", "2", "--cov=.", "--cov-fail-under=100", "--reruns=1", "--timeout=0.001", "--forked"),
        *("--data=/data", "--size=LARGE", "--odd=x", "--benchmark-min-rounds=3"),
        *("--cg-bench-jobs=2", "--cg-bench-env=PASSED", "--cg-bench-env=MODE=fast", "--cg-bench-model=ir"),
        python=suite_python("3.11"),
        env={"PASSED": "on", "HELD": "back"},
    )
    assert done.status == 0, done.said
    assert "17 passed" in done.said
    assert {item["status"] for item in done.found.values()} == {"ok"}
    assert "-n does not distribute benchmarks" in done.said
    assert "the value of --odd could not be passed to the benchmarks" in done.said
    assert "Required test coverage" not in done.said
    assert not list(folder.glob(".coverage*"))
    assert not list(folder.glob(".pytest_cache/v/mine"))  # inside, pytest caches elsewhere
    assert all(item["score"]["value"] == item["counts"]["Ir"] for item in done.found.values())
    assert done.found["test_asyncio_empty"]["counts"]["Ir"] == 0
    assert done.found["test_asyncio"]["counts"]["Ir"] > done.found["test_anyio"]["counts"]["Ir"] / 2 > 0
    # In the order of the file, whatever pytest-randomly wants.
    assert [name for name in done.found if "parameters" in name] == ["test_parameters[three]", "test_parameters[5]"]
    assert next(iter(done.found)) == "test_asyncio"
    assert done.found["test_parameters[5]"]["parameters"] == {"n": "5"}
    inexact = [name for name, item in done.found.items() if not item["processes_exact"]]
    assert inexact == ["test_forks"]
    assert any("starts processes" in warning for warning in done.found["test_forks"]["warnings"])
    assert "did not settle" in done.found["test_grows"]["warnings"][0]


def test_what_is_shown_moves_no_count_and_what_moves_counts_is_in_the_key(folder: Path) -> None:
    (folder / "test_it.py").write_text(
        """
import pytest
drawn = []
def test_prints(benchmark): benchmark(print, "hello from inside")
@pytest.mark.benchmark
def test_whole(): assert [1] == [1]
def test_numpy(benchmark):
    numpy = pytest.importorskip("numpy.random")  # which "import numpy" leaves for later
    benchmark(lambda: drawn.append(numpy.random()))
    assert len(set(drawn)) == 1 < len(drawn)
"""
    )
    first = measure(folder)
    assert first.status == 0, first.said
    assert "hello from inside" not in first.said
    (folder / "result.json").touch()
    again = measure(folder)  # .pytest_cache is new as well, in a folder that Python imports from
    assert {name: item["counts"] for name, item in again.found.items()} == {
        name: item["counts"] for name, item in first.found.items()
    }
    shown = measure(folder, "-s", "-q", "-rA", "--tb=no", f"--log-file={folder.parent}/log")
    assert "hello from inside" in shown.said
    assert {name: (item["key"], item["counts"]) for name, item in again.found.items()} == {
        name: (item["key"], item["counts"]) for name, item in shown.found.items()
    }
    optimised = measure(folder, "-W", "ignore", "--assert=plain", "-k", "whole", flags=("-O",)).found["test_whole"]
    assert optimised["counts"]["Ir"] == 0  # there is no assert
    kept = optimised["key_fields"]
    assert (kept["optimize"], kept["asserts"], kept["pytest"]) == ("1", "plain", pytest.__version__)
    assert optimised["key"] != first.found["test_whole"]["key"]
    assert "pytest" not in first.found["test_prints"]["key_fields"]


def test_plugins_named_by_the_environment_are_those_inside(folder: Path) -> None:
    (folder.parent / "helpful.py").write_text("import pytest\n@pytest.fixture\ndef help(): return 7\n")
    (folder / "test_it.py").write_text(
        """
def test_it(benchmark, help, request):
    assert not request.config.pluginmanager.hasplugin("xdist")
    assert benchmark(int, help) == 7
"""
    )
    done = measure(
        folder,
        env={
            "PYTHONPATH": str(folder.parent),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "cachegrind_bench.pytest_plugin,helpful,pytest_cov.plugin",
        },
    )
    assert done.status == 0, done.said
    assert done.found["test_it"]["status"] == "ok"
