"""Files of a checkout are measured with dates that follow from their contents, and built with those of the checkout."""

from __future__ import annotations

import shutil
import stat
import time
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.startup.exchange import CHECKED_OUT
from cachegrind_bench.usecases.checkout_dates import date_files, note_files
from cachegrind_bench.vcs.git import Git
from tests.unit.repositories import PATH, Repository, git_environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("git", path=PATH) is None, reason="no git")


def noted(tmp_path: Path, files: Mapping[str, str], laid: Mapping[str, str]) -> dict[str, str]:
    """Check these files out, lay others over them, and return the variables of a run there."""
    environ = git_environment(tmp_path)
    shutil.rmtree(tmp_path / "tree", ignore_errors=True)
    repository = Repository(tmp_path / "tree", environ)
    for name, text in files.items():
        path = repository.path / name
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(text[2:]) if text.startswith("->") else path.write_text(text, encoding="utf-8")
    repository.git("add", "--all")
    for name, text in laid.items():
        (repository.path / name).write_text(text, encoding="utf-8")
    over = [(name, stat.S_IFREG | 0o644, text.encode()) for name, text in laid.items()]
    note_files(Git(repository.path, environ), tmp_path / "files", over)
    return {**environ, CHECKED_OUT: str(tmp_path / "files")}


def dates(tmp_path: Path) -> dict[str, int]:
    tree = tmp_path / "tree"
    return {
        str(path.relative_to(tree)): path.lstat().st_mtime_ns
        for path in tree.rglob("*")
        if ".git" not in path.parts and (path.is_symlink() or not path.is_dir())
    }


def test_equal_contents_have_equal_dates_in_whole_seconds_and_others_have_others(tmp_path: Path) -> None:
    files = {"a": "1", "b/same": "x", "b/\udcff": "odd", "link": "->/nowhere"}
    found = []
    for text in ("1", "2", "1"):
        environ = noted(tmp_path, {**files, "a": text, "link": f"->/{text}"}, {"laid": text, "b/same": f"over {text}"})
        checked_out = dates(tmp_path)
        assert time.time_ns() - min(checked_out.values()) < 60e9  # what builds see
        date_files(environ, tmp_path / "tree")
        found.append(dates(tmp_path))
    assert found[0] == found[2]
    assert {name for name in found[0] if found[0][name] != found[1][name]} == {"a", "link", "laid", "b/same"}
    assert all(date % 1_000_000_000 == 0 and date < 1_600_000_000 * 1_000_000_000 for date in found[0].values())


def test_what_a_set_up_has_written_keeps_its_date(tmp_path: Path) -> None:
    environ = noted(tmp_path, {"a": "1", "b": "1", "c": "1"}, {})
    time.sleep(0.02)  # the clock of files has steps
    (tmp_path / "tree" / "a").write_text("2", encoding="utf-8")
    (tmp_path / "tree" / "new").write_text("2", encoding="utf-8")
    (tmp_path / "tree" / "b").unlink()
    before = dates(tmp_path)
    date_files(environ, tmp_path / "tree")
    after = dates(tmp_path)
    assert {name for name in before if before[name] != after[name]} == {"c"}


@pytest.mark.parametrize("kind", ["gone", "folder", "nonsense"])
def test_a_note_that_is_of_no_use_leaves_files_as_they_are(tmp_path: Path, kind: str) -> None:
    environ = noted(tmp_path, {"a": "1"}, {})
    listing, before = tmp_path / "files", dates(tmp_path)
    listing.unlink()
    if kind == "folder":
        listing.mkdir()
    elif kind == "nonsense":
        listing.write_bytes(b"\0\xff\t\0x\t../files\0a\0")
    date_files(environ, tmp_path / "tree")
    date_files({}, tmp_path / "tree")
    assert dates(tmp_path) == before
