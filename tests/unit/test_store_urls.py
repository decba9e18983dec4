"""A store's URL has one of four forms, and whatever else is given is refused before anything is touched."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import UsageError
from cachegrind_bench.store.open import FORMS, open_store, without_password

if TYPE_CHECKING:
    from pathlib import Path


def url_of(url: str, cwd: Path) -> str:
    with open_store(url, cwd=cwd, environ={}) as store:
        return store.url


def test_the_default_store_is_found_upwards_in_the_work_tree(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    assert url_of("file:.cg-bench", tmp_path / "a" / "b") == f"file:{tmp_path}/.cg-bench"
    (tmp_path / "a" / ".cg-bench").mkdir()
    assert url_of("file:.cg-bench", tmp_path / "a" / "b") == f"file:{tmp_path}/a/.cg-bench"


def test_a_folder_is_taken_from_the_working_directory_or_as_it_is(tmp_path: Path) -> None:
    assert url_of("file:sub/history", tmp_path) == f"file:{tmp_path}/sub/history"
    assert url_of("file:/srv/history", tmp_path) == "file:/srv/history"
    assert url_of("file:///srv/my%20history", tmp_path) == "file:/srv/my history"
    assert url_of("file:a:b", tmp_path) == f"file:{tmp_path}/a:b"


def test_opening_makes_nothing(tmp_path: Path) -> None:
    with open_store("file:new", cwd=tmp_path, environ={}) as store:
        assert store.names() == []
        assert store.check() == []
        assert store.remove({"x"}) == 0
        assert store.compact("2026-01") == 0
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "file",
        "file:",
        ".cg-bench",
        "/srv/history",
        "file://server/history",
        "file:a\0b",
        "git:",
        "git:@origin",
        "git:data@",
        "git:-d",
        "git:--upload-pack=x",
        "git:+data",
        "git:a b",
        "git:a..b",
        "git:a//b",
        "git:a/",
        "git:a.lock",
        "git:/a",
        "git:.a",
        "git:a/.b",
        "git:a:b",
        "git:a@{1}",
        "git:a~1",
        "git:data@-o",
        "git:data@--upload-pack=evil",
        "git:data@ext::sh -c evil",
        "git:data@a b",
        "sqlite:",
        "sqlite:x.db",
        "sqlite://x.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///x.db?mode=ro",
        "postgresql:",
        "postgresql://",
        "postgresql:db",
        "postgres://h/db",
        "mysql://h/db",
        "http://x",
        " file:x",
        "FILE:x",
    ],
)
def test_anything_else_is_refused_with_the_four_forms(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_store(url, cwd=tmp_path, environ={})
    assert caught.value.hint == FORMS
    assert os.listdir(tmp_path) == []


def test_passwords_are_not_shown() -> None:
    for url, shown in {
        "postgresql://me:secret@host/db": "postgresql://me:***@host/db",
        "postgresql://me:se:c@ret@host/db": "postgresql://me:***@host/db",
        "postgresql://host/db?user=me&password=secret&x=1": "postgresql://host/db?user=me&password=***&x=1",
        "postgresql://me@host:5432/db": "postgresql://me@host:5432/db",
        "file:a:b@c": "file:a:b@c",
    }.items():
        assert without_password(url) == shown


def test_a_refused_url_does_not_show_its_password(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_store("mysql://me:secret@host/db", cwd=tmp_path, environ={})
    assert "secret" not in caught.value.message
