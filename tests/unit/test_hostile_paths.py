"""Paths with bytes that are no text, line ends and codes of terminals: they work, and what names them stays one harmless line."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.log import Lines, heard_by
from cachegrind_bench.usecases.worktrees import within_of
from cachegrind_bench.vcs.revisions import Repository
from tests.unit import repositories

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("level", "begin"), [(logging.INFO, ""), (logging.WARNING, "warning: ")])
def test_a_name_in_a_notice_moves_no_terminal_and_begins_no_line_of_a_log(level: int, begin: str) -> None:
    said = list[str]()
    text = "stored in file:/a\n::error::x \x1b[31m\udcff/.cg-bench"
    # Not by LOG: pytest would send what it captured to another process, which takes no such text.
    with heard_by(said.append):
        Lines().emit(logging.makeLogRecord({"msg": text, "levelno": level}))
    assert said == [f"{begin}stored in file:/a\\x0a::error::x \\x1b[31m\\udcff/.cg-bench"]


def test_a_checkout_at_any_path_knows_the_folder_it_is_used_in(tmp_path: Path) -> None:
    top = tmp_path / os.fsdecode(b"a\n::error::\x1b[31m\xff\n")
    repositories.Repository(top, environ := repositories.git_environment(tmp_path))
    below = top / "b"
    below.mkdir()
    assert [within_of(Repository(folder, environ)) for folder in (top, below)] == [".", "b"]
