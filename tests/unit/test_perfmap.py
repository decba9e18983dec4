"""Perf maps: what CPython writes, and what anybody else may have written in its place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.valgrind import perf_map
from cachegrind_bench.valgrind.perf_map import Trampolines, map_of, merged, parse_map, read_map, remove_map, sizes_now

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.model.python_profile import PythonFunction

MAP = b"""\
54be000 b py::measured:/w/r.py
54be00b b py::C.<lambda>:<frozen importlib._bootstrap>
"""


def named(found: PythonFunction | None) -> tuple[str, str] | None:
    return None if found is None else (found.name, found.file)


def test_every_address_inside_of_a_trampoline_is_its_function() -> None:
    found = parse_map(MAP)
    assert named(found.at(0x54BE000)) == ("measured", "/w/r.py")
    assert named(found.at(0x54BE00A)) == ("measured", "/w/r.py")
    assert named(found.at(0x54BE00B)) == ("C.<lambda>", "<frozen importlib._bootstrap>")
    assert found.at(0x54BDFFF) is None
    assert found.at(0x54BE016) is None
    assert found.at(-1) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"py::f:/a:b/c:d.py", ("f", "/a:b/c:d.py")),
        (b"py::f.<locals>.<genexpr>:<string>", ("f.<locals>.<genexpr>", "<string>")),
        (b"py::f:", ("f", "")),
        (b"py:::/x.py", ("", "/x.py")),
        (b"py::block 'x':tem plate.html", ("block 'x'", "tem plate.html")),
        (b"py::\xffn\xc3\xa4me:/\xfe.py", ("\\xffnäme", "/\\xfe.py")),
    ],
)
def test_the_first_colon_ends_the_qualified_name(text: bytes, expected: tuple[str, str]) -> None:
    assert named(parse_map(b"10 b " + text + b"\n").at(16)) == expected


@pytest.mark.parametrize(
    "line",
    [
        b"10 b JS:~f /x.js:1",
        b"zz b py::f:/x.py",
        b"10 b py::nocolon",
        b"\xff\x00\x01",
    ],
)
def test_lines_of_others_are_passed_over(line: bytes) -> None:
    found = parse_map(line + b"\n" + MAP)
    assert sorted(found.functions) == [0x54BE000, 0x54BE00B]


def test_code_that_took_the_place_of_other_code_is_what_counts() -> None:
    assert named(parse_map(b"10 b py::old:/x.py\n10 c py::new:/x.py\n").at(16 + 11)) == ("new", "/x.py")


def test_of_several_maps_the_first_one_knows_best() -> None:
    found = merged([parse_map(b"10 b py::child:/x.py\n"), parse_map(b"10 b py::old:/x.py\n30 b py::above:/x.py\n")])
    assert named(found.at(0x10)) == ("child", "/x.py")
    assert named(found.at(0x31)) == ("above", "/x.py")
    assert merged([]) == Trampolines({})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(perf_map, "FOLDER", tmp_path)
    return tmp_path


def test_a_map_is_read_from_where_this_run_began_to_write(folder: Path) -> None:
    stale = b"10 b py::stale:/x.py\n"
    map_of(7).write_bytes(stale)
    (folder / "other").write_bytes(b"")
    before = sizes_now()
    assert before == {"perf-7.map": len(stale)}
    map_of(7).write_bytes(stale + MAP)
    found = read_map(map_of(7), start=before["perf-7.map"])
    assert found is not None
    assert found.at(16) is None
    assert named(found.at(0x54BE000)) == ("measured", "/w/r.py")


def test_files_of_other_users_are_neither_read_nor_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder.is_dir()
    map_of(5).write_bytes(MAP)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert read_map(map_of(5)) is None
    remove_map(5)
    assert map_of(5).exists()


def test_our_own_maps_are_removed(folder: Path) -> None:
    assert folder.is_dir()
    map_of(5).write_bytes(MAP)
    remove_map(5)
    assert not map_of(5).exists()
    remove_map(5)
