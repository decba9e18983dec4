"""Where Python functions are: the files as reports name them, and the lines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cachegrind_bench.measure.source_locations import Places
from cachegrind_bench.model.python_profile import TOP, PythonFunction, PythonRow, profile_of
from tests.unit.repositories import Repository, git_environment

if TYPE_CHECKING:
    from pathlib import Path


def test_files_are_named_from_the_working_directory_and_functions_have_lines(tmp_path: Path) -> None:
    inside, link = tmp_path / "work", tmp_path / "link"
    inside.mkdir()
    link.symlink_to(inside)
    (inside / "a.py").write_text("\ndef f(): pass\n")
    (tmp_path / "b.py").write_text("def f(): pass\n")
    files = {
        str(inside / "a.py"): ("a.py", 2),
        "a.py": ("a.py", 2),
        str(tmp_path / "b.py"): (str(tmp_path / "b.py"), 1),
        "<string>": ("<string>", 0),
        "<frozen importlib._bootstrap>": ("<frozen importlib._bootstrap>", 0),
        str(inside / "gone.py"): ("gone.py", 0),
        "/dev/stdin": ("/dev/stdin", 0),
        str(inside): (str(inside), 0),
        "x\0y": ("x\0y", 0),
        "": ("", 0),
    }
    rows = tuple(PythonRow(TOP, PythonFunction(file, "f", 0), 1, 5) for file in files)
    for cwd in (inside, link):
        found = Places(cwd, {}).located(profile_of(rows, total=100, cut=True))
        assert {(function.file, function.line) for function in found.functions} == set(files.values())
        assert (found.total, found.native, found.cut) == (100, 50, True)
        (both,) = [cost for cost in found.costs() if cost.function.file == "a.py"]
        assert (both.calls, both.ir) == (2, 10)


def test_in_a_repository_files_are_named_from_its_top(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    for path in (repository / "bench" / "run.py", repository / "src" / "a.py", tmp_path / "lib" / "b.py"):
        path.parent.mkdir(parents=True)
        path.write_text("def f(): pass\n")
    (repository / ".git").mkdir()
    (tmp_path / "link").symlink_to(repository / "bench")
    for cwd in (repository / "bench", tmp_path / "link"):
        files = ["run.py", str(cwd / "run.py"), str(repository / "src" / "a.py"), str(tmp_path / "lib" / "b.py")]
        rows = [PythonRow(TOP, PythonFunction(file, "f", 0), 1, 5) for file in files]
        found = Places(cwd, {}).located(profile_of(rows, total=20, cut=False))
        assert {function.file for function in found.functions} == {"bench/run.py", "src/a.py", files[-1]}


def test_a_source_is_read_once_for_all_profiles(tmp_path: Path) -> None:
    asked: list[str] = []

    def read(path: str) -> bytes:
        asked.append(path)
        return b"def f(): pass\n"

    places = Places(tmp_path, {}, read=read)
    for _ in range(2):
        places.located(profile_of([PythonRow(TOP, PythonFunction("a.py", "f", 0), 1, 5)], total=5, cut=False))
    assert asked == [os.path.realpath(tmp_path / "a.py")]


def test_an_installed_copy_is_named_as_the_file_of_the_repository_with_its_module_and_content(tmp_path: Path) -> None:
    repository, installed = tmp_path / "repository", tmp_path / "venv" / "lib" / "site-packages"
    sources = {
        "src/pkg/__init__.py": "",
        "src/pkg/a.py": "\ndef f(): pass\n",
        "src/pkg/sub/__init__.py": "\n",
        "src/pkg/sub/a.py": "\ndef f(): pass\n",  # with the content of another module
        "src/pkg/vendored/__init__.py": "\n\n",
        "src/pkg/vendored/other/__init__.py": "\ndef f(): pass\n",
        "single.py": "def f(): pass\n",
        "twice/x.py": "def f(): return 1\n",
        "again/x.py": "def f(): return 1\n",
        "src/pkg/version.py": "def f(): return None\n",
    }
    copies = {
        "pkg/a.py": "src/pkg/a.py",
        "pkg/sub/a.py": "src/pkg/sub/a.py",
        "single.py": "single.py",
        "other/__init__.py": None,  # a dependency, of which the repository has a copy for its own use
        "x.py": None,
        "pkg/version.py": None,  # written by the build
    }
    own = Repository(repository, git_environment(tmp_path))
    for name, text in sources.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text)
    own.git("add", ".")
    own.commit("sources")
    for folder in (installed, repository / ".venv" / "site-packages", repository / "lib"):
        for name in ("pkg/__init__.py", "pkg/sub/__init__.py"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("")
        for name, source in copies.items():
            (folder / name).parent.mkdir(exist_ok=True)
            text = sources[source] if source else sources.get(f"src/pkg/vendored/{name}", sources["twice/x.py"])
            (folder / name).write_text(text)
        rows = [PythonRow(TOP, PythonFunction(str(folder / name), "f", 0), 1, 5) for name in copies]
        found = Places(repository, own.environ).located(profile_of(rows, total=30, cut=False))
        unknown = (str(folder / name).removeprefix(f"{repository}/") for name in copies)
        wanted = {source or name for source, name in zip(copies.values(), unknown, strict=True)}
        assert {function.file for function in found.functions} == wanted
