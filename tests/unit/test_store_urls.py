"""A store's URL has one of four forms, and whatever else is given is refused before anything is touched."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import StoreError, UsageError
from cachegrind_bench.model.text import without_password
from cachegrind_bench.store.baselines import Baselines
from cachegrind_bench.store.open import open_store
from cachegrind_bench.store.protocol import Survey
from cachegrind_bench.store.urls import FORMS
from tests.unit.repositories import Repository, git_environment
from tests.unit.stored import NAMES, RECORDS

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


def test_a_default_store_that_is_a_link_to_nowhere_is_not_passed_over_for_another_one(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".cg-bench").mkdir()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".cg-bench").symlink_to("/nonexistent/history")
    with pytest.raises(StoreError, match=r"a/\.cg-bench leads nowhere"):
        open_store("file:.cg-bench", cwd=tmp_path / "a", environ={}).names()
    with pytest.raises(UsageError, match=r"a/\.cg-bench leads nowhere"):
        Baselines.find(tmp_path / "a").names()


@pytest.mark.parametrize("url", ["file:new", "sqlite:///new.db", "git:new"])
def test_a_store_exists_from_the_first_record_on(url: str, tmp_path: Path) -> None:
    environ = git_environment(tmp_path)
    Repository(tmp_path / "r", environ).commit("first")
    with open_store(url, cwd=tmp_path / "r", environ=environ) as store:
        assert not store.exists()
        assert store.survey() == Survey(names=[], problems=[])
        store.add(RECORDS)
        assert store.exists()
        assert store.survey() == Survey(names=NAMES, problems=[])


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
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "file:",
        ".cg-bench",
        "/srv/history",
        "file://server/history",
        "file:a\0b",
        "git:",
        "git:@origin",
        "git:b\udcff",
        "git:data@",
        "git:--upload-pack=x",
        "git:a..b",
        "git:data@-o",
        "git:data@ext::sh -c evil",
        "sqlite:x.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///x.db?mode=ro",
        "postgresql:db",
        "mysql://h/db",
        "FILE:x",
    ],
)
def test_anything_else_is_refused_with_the_four_forms(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_store(url, cwd=tmp_path, environ={})
    assert caught.value.hint == FORMS
    assert os.listdir(tmp_path) == []


def test_postgres_is_another_name_of_postgresql(tmp_path: Path) -> None:
    assert url_of("postgres://me:secret@host:5/db", tmp_path) == "postgresql://me@host:5/db"


def test_what_names_no_store_is_shown_where_it_can_hold_no_password() -> None:
    for url, shown in {
        "s3://bucket": "s3://bucket",
        "a@b": "…",
        "file:a:b@c": "file:a:b@c",
        "file://me:secret@host/x": "file:…",
        "git:a..b": "git:a..b",
        "git:https://me:secret@host/x.git": "git:…",
        "sqlite:x.db": "sqlite:x.db",
        " postgresql://me:secret@host/db": "…",
    }.items():
        assert without_password(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:secret@host/db",
        "mysql://host/db?password=secret",
        "mysql://me:se/secret@h/db",
        "POSTGRES://me:se#secret@h/db",
        "postgresql:me:secret@h/db",
        "postgresql:me:secret",
        "postgresql://me:12/x:secret@h@g:y/db",
        "postgresql://me:se@secret@127.0.0.1:1/db",
        "postgresql://me:se@secret/word@h/db",
        "postgresql://me:se@secret?word@h/db",
        "postgresql://me/x:secret@h/db",
        "postgres://me:se@secret@h/db",
        "sqlite://me:secret@h/db",
        "git://me:secret@h/x.git",
    ],
)
def test_no_part_of_a_password_is_in_the_error_of_a_url_that_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_store(url, cwd=tmp_path, environ={})
    assert caught.value.hint is not None
    told = caught.value.message + caught.value.hint
    assert not [part for part in ("secret", "word@", "se@", "12") if part in told]


@pytest.mark.parametrize("password", ["se/cret", "se?cret", "se#cret", "se:cret", "12/cret"])
def test_a_password_may_have_what_divides_other_urls(password: str, tmp_path: Path) -> None:
    assert url_of(f"postgres://me:{password}@host/db", tmp_path) == "postgresql://me@host/db"


@pytest.mark.parametrize("name", ["PASSWORD", "passwd", "pwd", "oauth_client_secret", "token"])
def test_a_password_among_the_options_is_not_shown_however_it_is_called(name: str, tmp_path: Path) -> None:
    assert url_of(f"postgresql://host/db?sslmode=require&{name}=x1", tmp_path) == (
        "postgresql://host/db?sslmode=require"
    )


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/data"])
def test_a_branch_is_given_by_its_own_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is not a branch name"):
        open_store(f"git:{name}", cwd=tmp_path, environ={})


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("file:~", "file:{home}"),
        ("file:~/h", "file:{home}/h"),
        ("file:///~/a%20b", "file:{home}/a b"),
        ("sqlite:///~/h.db", "sqlite:///{home}/h.db"),
        ("file:./~", "file:{cwd}/~"),
        ("file:a/~/h", "file:{cwd}/a/~/h"),
    ],
)
def test_a_path_begins_at_home_only_where_it_says_so(url: str, found: str, tmp_path: Path) -> None:
    home = tmp_path / "a%20home"
    with open_store(url, cwd=tmp_path, environ={"HOME": f"{home}/"}) as store:
        assert store.url == found.format(home=home, cwd=tmp_path)


def test_a_home_at_the_root_is_one(tmp_path: Path) -> None:
    with open_store("file:~/h", cwd=tmp_path, environ={"HOME": "/"}) as store:
        assert store.url == "file:/h"
    with open_store("file:~", cwd=tmp_path, environ={"HOME": "/"}) as store:
        assert store.url == "file:/"


@pytest.mark.parametrize("url", ["file:~", "file:~/h", "file:///~/h", "sqlite:///~/h.db"])
@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "here"}])
def test_without_a_home_no_folder_called_tilde_is_made(url: str, environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"begins with ~, and \$HOME is not a folder") as caught:
        open_store(url, cwd=tmp_path, environ=environ)
    assert caught.value.hint == "write the whole path, or ./~ for that name"


@pytest.mark.parametrize("url", ["file:~me/h", "file:~~", "sqlite:///~me/h.db"])
def test_the_home_of_others_is_not_guessed(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only your own home folder is known"):
        open_store(url, cwd=tmp_path, environ={"HOME": "/home/me"})
