"""Which paths are replaced in a compiled file of Python; what begins with one, or is cut off, is not taken for a string."""

from __future__ import annotations

import marshal
import os
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.hermetic.place import Checkout, Translation, _in_marshal, rewritten

if TYPE_CHECKING:
    from pathlib import Path


def test_strings_that_begin_with_the_path_get_the_other_one_and_its_length() -> None:
    for path in ("/srv/a.py", "/srv/" + "ä" * 200):
        found = _in_marshal(marshal.dumps((path, "/srvx")), b"/srv", b"/mnt/cg-bench/project", bool)
        assert marshal.loads(found) == (path.replace("/srv", "/mnt/cg-bench/project", 1), "/srvx")  # noqa: S302 - made here


@pytest.mark.parametrize("before", range(6))
def test_a_path_without_the_head_of_a_string_stays(before: int) -> None:
    for data in (b"a" * before + b"/srv", b"a" * before + b"/srv/x", b"a" * before + b"/srv/z"):
        assert _in_marshal(data, b"/srv", b"/mnt", bool) == data


def handed_out(
    path: Path, pairs: tuple[tuple[str, str], ...], text: str, checkout: Checkout | None = None
) -> str | None:
    path.write_text(text)
    found = rewritten(os.fsencode(path), Translation(()), pairs, checkout)
    return None if found is None else found.decode()


def test_a_path_is_replaced_once_and_only_where_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "x.pth"
    pairs = (("/app", "/mnt/project"),)
    assert handed_out(path, pairs, "/app\n/app/app\n/x/app/src\n/app2\n/my-app\n") == (
        "/mnt/project\n/mnt/project/app\n/x/app/src\n/app2\n/my-app\n"
    )
    text = "import sys; sys.path[:0] = ['/app/a', \"/app\"]  # file:///app /app/b"
    assert handed_out(path, pairs, text) == text.replace("/app", "/mnt/project")


@pytest.mark.parametrize(
    "name", ["__editable___x_1_0_finder.py", "_editable_impl_x.py", "_x_editable_loader.py", "_x_editable.py"]
)
def test_what_is_compiled_of_a_finder_is_not_taken_for_the_one_that_is_there(tmp_path: Path, name: str) -> None:
    text = "MAPPING = {'x': '/srv/aa/x'}\n"
    found = handed_out(tmp_path / name, (("/srv/aa", "/mnt/aa"),), text)
    assert found == "MAPPING = {'x': '/mnt/aa/x'}\n\n"  # its length is in what is compiled


def test_what_is_installed_from_the_checkout_is_in_the_worktree(tmp_path: Path) -> None:
    top = tmp_path / "checkout"
    for folder in ("src", ".venv/src/dep", "clone/src"):
        (top / folder).mkdir(parents=True)
    (tmp_path / "link").symlink_to(top)
    worktree = top / "tmp" / "worktree"
    worktree.mkdir(parents=True)
    checkout = Checkout(str(top), str(worktree), (f"{top}/.venv", f"{top}/clone"))
    replaced = checkout.replacements(())
    assert replaced == ((str(top), str(worktree)),)
    kept = [f"{top}/.venv/src/dep", f"{top}/clone/src", f"{top}-2/src", f"{worktree}/x", "import x"]
    lines = [f"{top}/src", f"{tmp_path}/link/src", f"{top}//src/../src", str(top), *kept]
    moved = [*[f"{worktree}/src"] * 3, str(worktree), *kept]
    assert handed_out(tmp_path / "x.pth", replaced, "\n".join(lines), checkout) == "\n".join(moved)
    compiled = tmp_path / "_editable_impl_x.pyc"
    compiled.write_bytes(marshal.dumps((f"{top}/src", str(top), f"{top}/clone/src")))
    found = rewritten(os.fsencode(compiled), Translation(()), replaced, checkout)
    assert marshal.loads(found or b"") == (f"{worktree}/src", str(worktree), f"{top}/clone/src")  # noqa: S302 - made here
    placed = checkout.replacements(((str(worktree), "/mnt/project"),))
    assert placed == ((str(worktree), "/mnt/project"), (str(top), "/mnt/project"))


def test_a_path_may_have_any_bytes(tmp_path: Path) -> None:
    seen = os.fsdecode(b"/\\g\xff")
    assert handed_out_bytes(tmp_path / "x.pth", (("/srv", seen),), b"/srv/x") == b"/\\g\xff/x"
    assert Translation((("/srv", seen),)).seen("--in=/srv/x") == f"--in={seen}/x"


def handed_out_bytes(path: Path, pairs: tuple[tuple[str, str], ...], data: bytes) -> bytes | None:
    path.write_bytes(data)
    return rewritten(os.fsencode(path), Translation(()), pairs)
