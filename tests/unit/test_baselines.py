"""Baselines are found from anywhere in the checkout, and an older one is replaced whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from cachegrind_bench.errors import UsageError
from cachegrind_bench.store.baselines import Baselines
from cachegrind_bench.usecases.comparison_inputs import resolve
from tests.unit.samples import run_without_rights


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return the top of a git work tree with the folder a/b, inside a folder that has a store too."""
    top = tmp_path / "tree"
    (top / "a" / "b").mkdir(parents=True)
    (top / ".git").mkdir()
    (tmp_path / ".cg-bench").mkdir()
    return top


def test_the_store_is_at_the_top_of_the_work_tree(tree: Path) -> None:
    assert Baselines.find(tree / "a" / "b").store == tree / ".cg-bench"
    assert Baselines.find(tree).store == tree / ".cg-bench"


def test_a_store_further_down_comes_first(tree: Path) -> None:
    (tree / ".cg-bench").mkdir()
    (tree / "a" / ".cg-bench").mkdir()
    assert Baselines.find(tree / "a" / "b").store == tree / "a" / ".cg-bench"
    assert Baselines.find(tree).store == tree / ".cg-bench"


def test_a_linked_work_tree_or_submodule_has_its_own_store(tree: Path) -> None:
    (tree / "a" / ".git").write_text("gitdir: elsewhere\n")
    (tree / ".cg-bench").mkdir()
    assert Baselines.find(tree / "a" / "b").store == tree / "a" / ".cg-bench"


def test_outside_a_work_tree_only_the_working_directory_counts(tmp_path: Path) -> None:
    (tmp_path / ".cg-bench").mkdir()
    (tmp_path / "a").mkdir()
    assert Baselines.find(tmp_path / "a").store == tmp_path / "a" / ".cg-bench"


def test_finding_and_asking_make_nothing(tree: Path) -> None:
    saved = Baselines.find(tree)
    assert saved.names() == []
    assert not saved.exists("main")
    assert os.listdir(tree / "a") == ["b"]
    assert sorted(os.listdir(tree)) == [".git", "a"]


def test_a_saved_baseline_is_there_and_nothing_beside_it(tree: Path) -> None:
    saved = Baselines.find(tree / "a")
    saved.save("main", b"1")
    saved.save("main", b"2")
    saved.save("V1.0_x-y", b"3")
    assert saved.path("main").read_bytes() == b"2"
    assert saved.names() == ["V1.0_x-y", "main"]
    assert sorted(os.listdir(tree / ".cg-bench" / "baselines")) == ["V1.0_x-y.json", "main.json"]
    saved.remove("main")
    assert saved.names() == ["V1.0_x-y"]


def test_git_ignores_a_new_store_and_an_old_one_stays_as_it_is(tree: Path) -> None:
    saved = Baselines.find(tree)
    saved.prepare("main")
    assert saved.names() == []
    ignore = tree / ".cg-bench" / ".gitignore"
    assert ignore.read_text() == "*\n"
    ignore.unlink()
    saved.save("main", b"")
    assert not ignore.exists()


def test_files_that_are_no_baselines_are_not_listed(tree: Path) -> None:
    saved = Baselines.find(tree)
    saved.save("main", b"")
    folder = saved.path("main").parent
    for name in (".cg-bench.x1", "notes.txt", "a b.json", ".json"):
        (folder / name).touch()
    (folder / "folder.json").mkdir()
    (folder / "gone.json").symlink_to("nowhere")
    assert saved.names() == ["main"]


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "é", "a\n", "a" * 101])
def test_a_name_that_leaves_the_folder_or_is_invalid_is_refused(tmp_path: Path, name: str) -> None:
    saved = Baselines.find(tmp_path)
    assert not saved.exists(name)
    for action in (saved.path, saved.prepare, saved.remove):
        with pytest.raises(UsageError, match="cannot name a baseline"):
            action(name)
    assert os.listdir(tmp_path) == []


def test_the_longest_name_can_be_saved(tmp_path: Path) -> None:
    Baselines.find(tmp_path).save("a" * 100, b"x")
    assert Baselines.find(tmp_path).exists("a" * 100)


def test_removing_what_is_not_there_reports_what_is(tmp_path: Path) -> None:
    saved = Baselines.find(tmp_path)
    for number in range(22):
        saved.save(f"b{number:02}", b"")
    with pytest.raises(UsageError, match="there is no baseline 'x'") as caught:
        saved.remove("x")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("saved baselines: b00, b01, ")
    assert caught.value.hint.endswith(", b19 and 2 more")


def test_a_file_in_place_of_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".cg-bench").touch()
    with pytest.raises(UsageError, match=r"cannot make the folder .*/\.cg-bench: "):
        Baselines.find(tmp_path).prepare("main")
    with pytest.raises(UsageError, match="cannot read"):
        Baselines.find(tmp_path).names()


FORBIDDEN = """
import sys
from pathlib import Path
from cachegrind_bench.errors import UsageError
from cachegrind_bench.store.baselines import Baselines
begin()
saved = Baselines.find(Path(sys.argv[1]))
for action in (saved.prepare, saved.remove):
    try:
        action("main")
    except UsageError as error:
        print(error)
"""


def test_a_folder_that_forbids_writing_is_found_out_before() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to others
        Path(folder).chmod(0o555)
        said = run_without_rights(FORBIDDEN, folder).splitlines()
        assert said[0] == f"cannot make the folder {folder}/.cg-bench: Permission denied"
        Path(folder).chmod(0o755)
        Baselines.find(Path(folder)).save("main", b"kept")
        for path in (Path(folder), Path(folder, ".cg-bench", "baselines")):
            path.chmod(0o555)
        said = run_without_rights(FORBIDDEN, folder).splitlines()
        assert said == [
            f"cannot write into the folder {folder}/.cg-bench: Permission denied",
            "cannot remove the baseline 'main': Permission denied",
        ]


@pytest.mark.parametrize("closed", [".cg-bench", ".cg-bench/baselines"])
def test_baselines_that_nobody_may_look_at_are_an_error(closed: str) -> None:
    look = FORBIDDEN.replace(
        "(saved.prepare, saved.remove)", "(saved.exists, lambda _: resolve('main', saved.store.parent))"
    )
    # As in Python 3.14, where it raises no longer.
    look = f"from cachegrind_bench.usecases.comparison_inputs import resolve{look}".replace(
        "begin()", "Path.is_file = os.path.isfile\nbegin()"
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        Baselines.find(Path(folder)).save("main", b"kept")
        Path(folder, closed).chmod(0)
        said = run_without_rights(look, folder).splitlines()
        assert said == [f"cannot read {folder}/.cg-bench/baselines: Permission denied"] * 2


# Names on the command line


def test_a_file_a_baseline_or_stdin_can_be_named(tmp_path: Path) -> None:
    saved = Baselines.find(tmp_path)
    saved.save("main", b"")
    path = str(saved.path("main"))
    (tmp_path / "r.json").touch()
    assert resolve("-", tmp_path) == "-"
    assert resolve("r.json", tmp_path) == "r.json"
    assert resolve("main", tmp_path) == path
    assert resolve("baseline:main", tmp_path) == path


def test_an_existing_file_comes_before_a_baseline_but_a_folder_does_not(tmp_path: Path) -> None:
    saved = Baselines.find(tmp_path)
    saved.save("main", b"")
    saved.save("src", b"")
    (tmp_path / "main").touch()
    (tmp_path / "src").mkdir()
    assert resolve("main", tmp_path) == "main"
    assert resolve("baseline:main", tmp_path) == str(saved.path("main"))
    assert resolve("src", tmp_path) == str(saved.path("src"))


def test_a_file_can_be_forced_whatever_its_name(tmp_path: Path) -> None:
    Baselines.find(tmp_path).save("main", b"")
    assert resolve("file:main", tmp_path) == "main"
    assert resolve("file:baseline:x", tmp_path) == "baseline:x"
    assert resolve("file:-", tmp_path) == "./-"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nightly", "'nightly' is neither a result file nor a saved baseline"),
        ("a/b.json", "'a/b.json' is neither a result file nor a saved baseline"),
        ("", "'' is neither a result file nor a saved baseline"),
        ("baseline:nightly", "there is no baseline 'nightly'"),
        ("baseline:../x", "there is no baseline '../x'"),
    ],
)
def test_what_names_nothing_is_reported_with_what_there_is(tmp_path: Path, text: str, message: str) -> None:
    Baselines.find(tmp_path).save("main", b"")
    Baselines.find(tmp_path).save("release", b"")
    with pytest.raises(UsageError) as caught:
        resolve(text, tmp_path)
    assert (caught.value.message, caught.value.hint) == (message, "saved baselines: main, release")
