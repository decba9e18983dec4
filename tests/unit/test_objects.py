"""Executables and libraries that changed between two builds."""

from __future__ import annotations

import pytest

from cachegrind_bench.compare.pairing import ObjectChange, changed_objects, is_library
from cachegrind_bench.model.result import ObjectFile


def objects(*found: tuple[str, str]) -> tuple[ObjectFile, ...]:
    return tuple(ObjectFile(path=path, build_id=build_id) for path, build_id in found)


def changed(path: str, base: str | None, candidate: str | None, *, executable: bool = False) -> ObjectChange:
    return ObjectChange(path=path, base=base, candidate=candidate, is_executable=executable)


def test_equal_build_ids_are_no_change_wherever_the_file_is() -> None:
    base = objects(("/tmp/a/prog", "1"), ("/lib/libc.so.6", "2"), ("/a/libfoo.so.1", "3"))
    candidate = objects(("/tmp/b/prog", "1"), ("/usr/lib/libc.so.6", "2"), ("/b/libbar.so", "3"))
    assert changed_objects(base, candidate) == ()


def test_a_rebuilt_executable_and_an_upgraded_library_are_told_apart() -> None:
    base = objects(("/lib/libc.so.6", "1"), ("/lib/libssl.so.1.1", "2"), ("/tmp/a/prog", "3"))
    candidate = objects(("/lib/libc.so.6", "1"), ("/lib/libssl.so.3", "4"), ("/tmp/b/prog", "5"))
    assert changed_objects(base, candidate) == (
        changed("/lib/libssl.so.3", "2", "4"),
        changed("/tmp/b/prog", "3", "5", executable=True),
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/lib/libc-2.31.so", "/lib/libc.so.6"),
        ("/x/numpy.libs/libgomp-a34b3233.so.1.0.0", "/y/numpy.libs/libgomp-0123abcd.so.1.1.0"),
        ("/a/_json.cpython-311-x86_64-linux-gnu.so", "/b/_json.cpython-313-x86_64-linux-gnu.so"),
        ("/a/prog", "/b/prog-renamed"),
    ],
)
def test_versions_and_directories_do_not_hide_that_it_is_the_same_file(old: str, new: str) -> None:
    assert changed_objects(objects((old, "1")), objects((new, "2"))) == (
        changed(new, "1", "2", executable="prog" in new),
    )


def test_what_came_and_what_went_is_named() -> None:
    assert changed_objects(objects(("/l/liba.so", "1"), ("/p", "0")), objects(("/l/libb.so", "2"), ("/p", "0"))) == (
        changed("/l/liba.so", "1", None),
        changed("/l/libb.so", None, "2"),
    )


def test_the_loader_is_a_library_and_a_script_is_not() -> None:
    assert is_library("/lib64/ld-linux-x86-64.so.2")
    assert not is_library("/work/run.py")
    assert not is_library("/usr/bin/python3.11")
    assert not is_library("/work/x.so.d/tool")
