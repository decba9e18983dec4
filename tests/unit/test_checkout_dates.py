"""Files of checkouts at one path: what is as before keeps its date, and no change is older than what was built before it."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.usecases.checkout_dates import date_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "checkouts"


def checked_out(tree: Path, files: Mapping[str, str], folder: Path) -> dict[str, int]:
    """Check these files out, and return their dates."""
    shutil.rmtree(tree, ignore_errors=True)
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            (tree / name).symlink_to(text[2:])
        else:
            (tree / name).write_text(text, encoding="utf-8")
    date_files(tree, folder)
    return {name: (tree / name).lstat().st_mtime_ns for name in files}


def test_what_has_not_changed_keeps_its_date_and_a_change_has_a_later_one(tmp_path: Path, folder: Path) -> None:
    tree = tmp_path / "tree"
    one = {"a": "1", "b/same": "x", "b/\udcff": "odd", "link": "->/nowhere", ".git/HEAD": "x"}
    first = checked_out(tree, one, folder)
    os.utime(tree / "a", ns=(0, 0))  # whatever is done to the files
    built = time.time_ns()
    second = checked_out(tree, {**one, "a": "2", "link": "->/elsewhere", "new": ""}, folder)
    assert {name for name in one if first[name] == second[name]} == {"b/same", "b/\udcff"}
    assert min(second[name] for name in ("a", "link", "new")) > built
    third = checked_out(tree, one, folder)  # back again, and newer than what was built of the second one
    assert third["a"] > second["a"]
    assert third["b/same"] == first["b/same"]
    assert checked_out(tmp_path / "other", one, folder)["b/same"] > third["a"]


def test_without_a_folder_to_note_dates_in_all_files_are_new(tmp_path: Path, folder: Path) -> None:
    folder.write_text("a file", encoding="utf-8")
    first = checked_out(tmp_path / "tree", {"a": "1"}, folder)
    assert checked_out(tmp_path / "tree", {"a": "1"}, folder)["a"] > first["a"]


@pytest.mark.parametrize("damage", [b"", b"\xff" * 9, b"\x81\xa1a\x01"])
def test_damaged_notes_and_what_cannot_be_read_make_files_new(tmp_path: Path, folder: Path, damage: bytes) -> None:
    tree = tmp_path / "tree"
    first = checked_out(tree, {"a": "1"}, folder)
    (noted,) = folder.iterdir()
    noted.write_bytes(damage)
    second = checked_out(tree, {"a": "1"}, folder)
    assert second["a"] > first["a"]
    os.mkfifo(tree / "pipe")
    date_files(tree, folder)
    before = (tree / "pipe").lstat().st_mtime_ns
    date_files(tree, folder)
    assert (tree / "pipe").lstat().st_mtime_ns > before
    assert (tree / "a").stat().st_mtime_ns == second["a"]
