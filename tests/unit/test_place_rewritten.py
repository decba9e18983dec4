"""Which paths are replaced in a compiled file of Python; what begins with one, or is cut off, is not taken for a string."""

from __future__ import annotations

import marshal
import os
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.hermetic.place import Translation, _in_marshal, rewritten

if TYPE_CHECKING:
    from pathlib import Path


def test_strings_that_begin_with_the_path_get_the_other_one_and_its_length() -> None:
    for path in ("/srv/a.py", "/srv/" + "ä" * 200):
        found = _in_marshal(marshal.dumps((path, "/srvx")), b"/srv", b"/mnt/cg-bench/project")
        assert marshal.loads(found) == (path.replace("/srv", "/mnt/cg-bench/project", 1), "/srvx")  # noqa: S302 - made here


@pytest.mark.parametrize("before", range(6))
def test_a_path_without_the_head_of_a_string_stays(before: int) -> None:
    for data in (b"a" * before + b"/srv", b"a" * before + b"/srv/x", b"a" * before + b"/srv/z"):
        assert _in_marshal(data, b"/srv", b"/mnt") == data


def test_a_pipe_in_place_of_such_a_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    os.mkfifo(path)
    pairs = (("/srv", "/mnt"),)
    for flags in (None, os.O_RDWR):  # without a writer, and with one
        writer = None if flags is None else os.open(path, flags)
        assert rewritten(os.fsencode(path), Translation(pairs), pairs) is None
        if writer is not None:
            os.close(writer)
