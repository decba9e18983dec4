"""What lies in the folders that Python imports from moves nothing on the heap, and what is measured has Python as it is."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.harness.pytest_session.workers import CODE, OPTIONS
from tests.conftest import ROOT
from tests.suites import VERSIONS, suite_python

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# Where new objects of many sizes lie, after imports from the folder argv[1] and a look for distributions there. It is
# changed on the days argv[3:]; with "listed" Python has listed it before, as it has some folders when it starts.
_ADDRESSES = """
import importlib.metadata, importlib.util, os, sys
from cachegrind_bench.startup import import_finder, site_init
def begin():
    import_finder.import_without_listing()
    site_init.list_elsewhere()
if sys.argv[2] == "narrow":
    begin()
sys.path.insert(0, sys.argv[1])
if sys.argv[2] == "listed":
    assert importlib.util.find_spec("nowhere") is None
    begin()
import one
for day in map(int, sys.argv[3:]):
    os.utime(sys.argv[1], (day * 86400, day * 86400))
    assert importlib.util.find_spec("nowhere") is None
    assert importlib.metadata.version("Thing") == "1.5"
import_finder.undo_replacements()
made = [bytes(size) for size in range(1, 1500, 9) for _ in range(4)]
print([id(item) for item in made], id(object()), id([]), id({}))
"""


def _project(base: Path) -> Path:
    folder = base / "folder"
    (folder / "thing-1.5.dist-info").mkdir(parents=True)
    (folder / "thing-1.5.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1.5\n")
    (folder / "one.py").write_text("")
    return folder


def _addresses(python: Path, folder: Path, how: str, days: Sequence[int] = (20000, 20000, 20000)) -> str:
    # Without what the kernel places at random, and with one hash seed, one Python is like the other.
    argv = ["setarch", "-R", str(python), "-c", _ADDRESSES, str(folder), how, *map(str, days)]
    env = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(argv, cwd=folder.parent, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_file_in_a_folder_that_python_imports_from_moves_nothing(version: str, tmp_path: Path) -> None:
    python, folder = suite_python(version), _project(tmp_path)
    before, as_ever = (_addresses(python, folder, how) for how in ("narrow", "plain"))
    assert _addresses(python, folder, "narrow") == before
    for number in range(40):
        (folder / f"a_file_of_another_length_{number}.txt").write_text("")
    assert _addresses(python, folder, "narrow") == before
    assert _addresses(python, folder, "plain") != as_ever  # it is told where something moves


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_folder_that_changes_meanwhile_moves_nothing(version: str, tmp_path: Path) -> None:
    python, folder = suite_python(version), _project(tmp_path)
    # Another test may do it between two of these starts; reading what is compiled takes other memory than compiling.
    package = ROOT / "cachegrind_bench"
    subprocess.run([python, "-m", "compileall", "-q", "-l", package, package / "startup"], check=True)
    before, listed, as_ever = (_addresses(python, folder, how) for how in ("narrow", "listed", "plain"))
    for days in ((20000, 20001, 20001), (20000, 20000, 20001), (20000, 20001, 20000)):
        assert _addresses(python, folder, "narrow", days) == before
        assert _addresses(python, folder, "listed", days) == listed
    assert _addresses(python, folder, "plain", days) != as_ever  # it is told where something moves


# What Python is like, apart from where it finds our package and that -S is among its flags.
_LIKE = """
import builtins, json, os, site, subprocess, sys
import of_pth, of_python_path
print(json.dumps([
    [folder for folder in sys.path if folder != ROOT], sys.prefix, sys.exec_prefix, sys.argv, os.environ.get("PYTHONPATH"),
    site.ENABLE_USER_SITE, hasattr(builtins, "exit"), hasattr(sys, "__interactivehook__"), sys.executed, site.os is os,
    sorted(name for name in sys.modules if "custom" in name), subprocess._args_from_interpreter_flags(),
]))
"""


def _environment(base: Path, python: Path, executed: str = "0") -> tuple[Path, dict[str, str]]:
    """Make an environment with a .pth file that executes this, and customizations along PYTHONPATH; return its Python and variables."""
    subprocess.run([str(python), "-m", "venv", "--without-pip", str(base / "env")], check=True)
    packages = next((base / "env").glob("lib/python*/site-packages"))
    (base / "of_pth").mkdir()
    (base / "of_pth" / "of_pth.py").write_text("")
    (packages / "some.pth").write_text(f"{base / 'of_pth'}\nimport sys, os; sys.executed = {executed}\n")
    (base / "src").mkdir()
    for name in ("of_python_path", "sitecustomize", "usercustomize"):
        (base / "src" / f"{name}.py").write_text("")
    variables = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(base), "PATH": "/usr/bin:/bin"}
    return base / "env" / "bin" / "python", {**variables, "PYTHONPATH": f"{base / 'src'}:relative:{base / 'src'}"}


def _start(python: Path, env: dict[str, str], code: str, *, ours: bool) -> str:
    """Start Python without the kernel's randomness, ours or as ever, and return what this code prints."""
    options, words = ([*OPTIONS], [env.pop("PYTHONPATH")]) if ours else (["-P"], [])
    whole = (CODE if ours else "") + f"ROOT = {str(ROOT)!r}\n{code}"
    argv = ["setarch", "-R", str(python), *options, "-c", whole, *words]
    done = subprocess.run(argv, cwd=python.parent, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_python_starts_as_ever(version: str, tmp_path: Path) -> None:
    python, env = _environment(tmp_path, suite_python(version), "sorted(os.listdir())")
    as_ever, ours = (json.loads(_start(python, {**env}, _LIKE, ours=ours)) for ours in (False, True))
    assert ours == as_ever
    assert ours[-2] == ["sitecustomize"]  # a virtual environment has no usercustomize


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_file_that_is_there_when_python_starts_moves_nothing(version: str, tmp_path: Path) -> None:
    code = "import of_pth; print([id(bytes(size)) for size in range(1, 1500, 9)], id(object()), id([]), id({}))"
    python, env = _environment(tmp_path, suite_python(version))
    as_ever, before = (_start(python, {**env}, code, ours=ours) for ours in (False, True))
    packages = next((tmp_path / "env").glob("lib/python*/site-packages"))
    for folder in (packages, tmp_path / "src", tmp_path / "of_pth"):
        for number in range(40):
            (folder / f"a_file_of_another_length_{number}.txt").write_text("")
        assert _start(python, {**env}, code, ours=True) == before, folder
        moved = _start(python, {**env}, code, ours=False)
        assert moved != as_ever, folder  # it is told where something moves
        as_ever = moved


_MEASURED = """
import importlib, importlib.metadata, os, sys, threading
from importlib.machinery import FileFinder
import _pytest.main, _pytest.python
def now():
    return FileFinder._fill_cache, importlib.metadata.FastPath.children, _pytest.main.scandir, _pytest.python.scandir
before = now()
from zipimport import zipimporter
from cachegrind_bench.pytest_plugin.inner import run
from cachegrind_bench.pytest_plugin.inner.meter import Between
from cachegrind_bench.startup import import_finder, site_init
import_finder.import_without_listing()
site_init.list_elsewhere()
run.look_only_towards(sys.argv[1] + "/one.py")
assert not set(before) & set(now())
sys.path.insert(0, sys.argv[1])
import one
finder = sys.path_importer_cache[sys.argv[1]]
assert "anything" in finder._path_cache
Between().watch()  # as before the fork
assert not set(before) & set(now())
import_finder.undo_replacements()
assert now() == before
assert {type(finder) for finder in sys.path_importer_cache.values()} <= {FileFinder, type(None), zipimporter}
def forbidden(): raise AssertionError
os.fork = site_init.Real.fork = forbidden
importlib.metadata.FastPath.__new__.cache_clear()
assert importlib.metadata.version("thing") == "1.5"
open(sys.argv[1] + "/two.py", "w").close()
import two
assert {"one.py", "two.py"} <= finder._path_cache
"""


def test_what_is_measured_has_python_as_it_is(tmp_path: Path) -> None:
    folder = _project(tmp_path)
    env = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [sys.executable, "-c", _MEASURED, str(folder)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


_DERIVED = """
import sys
from importlib.machinery import FileFinder, SourceFileLoader
from cachegrind_bench.startup import import_finder
class Derived(FileFinder):
    __slots__ = ("asked",)
    def find_spec(self, name, target=None):
        self.asked = name
        return super().find_spec(name, target)
finder = sys.path_importer_cache[sys.argv[1]] = Derived(sys.argv[1], (SourceFileLoader, [".py"]))
sys.path.insert(0, sys.argv[1])
import_finder.import_without_listing()
import one
assert finder.asked == "one"
open(sys.argv[1] + "/two.py", "w").close()
import two
import_finder.undo_replacements()
open(sys.argv[1] + "/three.py", "w").close()
import three
assert (type(finder), finder.asked) == (Derived, "three")
"""


def test_a_finder_of_the_projects_own_stays_what_it_is(tmp_path: Path) -> None:
    env = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [sys.executable, "-c", _DERIVED, str(_project(tmp_path))]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


_MEANWHILE = """
import importlib.metadata, os, sys
from cachegrind_bench.startup import import_finder, site_init
sys.path.insert(0, sys.argv[1])
import_finder.import_without_listing()
site_init.list_elsewhere()
assert importlib.metadata.version("thing") == "1.5"
if sys.argv[2] == "no process":
    site_init.Real.fork = lambda: os.kill(0, 99)
os.rename(sys.argv[1] + "/thing-1.5.dist-info", sys.argv[1] + "/other-1.5.dist-info")
print(importlib.metadata.version("other"))
"""


@pytest.mark.parametrize("how", ["as ever", "no process"])
def test_a_distribution_that_comes_meanwhile_is_found(how: str, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", _MEANWHILE, str(_project(tmp_path)), how]
    done = subprocess.run(argv, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1.5\n"), done.stderr


_LISTED = """
import importlib.metadata, os, sys
from cachegrind_bench.startup import import_finder, site_init
import_finder.import_without_listing()
site_init.list_elsewhere()
site_init.{broken}
def forbidden(*_): raise AssertionError
os.fork = os.pipe = os.waitpid = forbidden
sys.path.insert(0, sys.argv[1])
print(importlib.metadata.version("thing"))
"""


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("_LENGTH", id="whole"),
        pytest.param("_MOST_BYTES = 5", id="too long"),
        pytest.param("Real.fork = lambda: os.kill(0, 99)", id="no process"),
        pytest.param("Real.listdir = len", id="replaced"),
    ],
)
def test_distributions_are_found_whatever_comes_of_the_other_process(broken: str, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", _LISTED.format(broken=broken), str(_project(tmp_path))]
    done = subprocess.run(argv, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1.5\n"), done.stderr


_EARLY = """
import xdist  # as sitecustomize may, and other plugins do
from cachegrind_bench.pytest_plugin.inner import server
server._import_plugins([], autoload=True)
import sys
assert "pytest_cov.plugin" in sys.modules
"""


def test_plugins_may_be_imported_before_pytest_rewrites_them() -> None:
    argv = [sys.executable, "-c", _EARLY]
    done = subprocess.run(argv, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


_VERSIONS = """
import importlib.metadata, sys
from cachegrind_bench.pytest_plugin.inner import server
from cachegrind_bench.startup.import_finder import undo_replacements
class Mine(importlib.metadata.PathDistribution):
    pass
sys.path[:0] = [sys.argv[1] + "/first", sys.argv[1] + "/second"]
def found():
    kinds = importlib.metadata.Distribution, Mine
    return [importlib.metadata.version("A.thing"), *(kind.from_name("other").version for kind in kinds)]
whole, kept = found(), vars(importlib.metadata.Distribution)["from_name"]
server._see_plugins_alone([f"{folder}/a_thing-{number}.dist-info" for number, folder in enumerate(sys.path[:2])])
assert vars(importlib.metadata.Distribution)["from_name"] is not kept
assert found() == whole == ["0", "2", "2"], (found(), whole)
for name in ("", None):
    try:
        importlib.metadata.version(name)
    except ValueError:
        pass
undo_replacements()
assert vars(importlib.metadata.Distribution)["from_name"] is kept
"""


def test_a_plugin_finds_its_own_version_and_the_first_of_two(tmp_path: Path) -> None:
    for folder, name, version in (("first", "a_thing", 0), ("second", "a_thing", 1), ("second", "other", 2)):
        metadata = tmp_path / folder / f"{name}-{version}.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    argv = [sys.executable, "-c", _VERSIONS, str(tmp_path)]
    done = subprocess.run(argv, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
