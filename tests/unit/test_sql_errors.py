"""Whatever is wrong with a database is told with its URL, without the password, and with what to try."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import psycopg
import pytest

from cachegrind_bench import waiting
from cachegrind_bench.errors import StoreError, UsageError
from cachegrind_bench.log import heard_by
from cachegrind_bench.store.open import open_store
from cachegrind_bench.store.protocol import Query
from cachegrind_bench.store.sql import database
from cachegrind_bench.store.sql.database import Database
from cachegrind_bench.store.sql.store import SqlStore
from tests.unit.samples import run_without_rights
from tests.unit.stored import NAMES, RECORDS, measured, stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.postgres import Server

pytest_plugins = ["tests.postgres"]

ACTS: tuple[Callable[[SqlStore], object], ...] = (
    SqlStore.names,
    SqlStore.check,
    lambda store: list(store.read()),
    lambda store: list(store.snapshots(Query())),
    lambda store: store.add(RECORDS),
    lambda store: store.remove(NAMES),
)


def refused(url: str, acts: tuple[Callable[[SqlStore], object], ...] = ACTS) -> str:
    """Return the message and hint of the store error that each of these raises; the last one's."""
    told = ""
    for act in acts:
        with SqlStore(url, patience=0.2) as store, pytest.raises(StoreError) as caught:
            act(store)
        assert caught.value.hint
        assert store.url in caught.value.message
        told = f"{caught.value.message} ({caught.value.hint})"
        assert "s3cret" not in told
    return told


def test_a_server_that_is_not_there(postgres: Server) -> None:
    with socket.socket() as taken:  # bound, and not listening
        taken.bind(("127.0.0.1", 0))
        url = postgres.url("x").replace(f":{postgres.port}/", f":{taken.getsockname()[1]}/")
        told = refused(url)
    assert told.startswith("cannot read postgresql://owner@127.0.0.1:")
    assert "server runs and can be reached" in told


def test_a_wrong_password_and_a_database_that_is_not_there(postgres: Server) -> None:
    assert "authentication failed" in refused(postgres.url("postgres", password="s3cret-wrong"))
    assert 'database "nowhere" does not exist' in refused(postgres.url("nowhere"))


@pytest.mark.parametrize("place", ["x.db", "disk/x.db"])
def test_a_link_that_leads_nowhere_is_not_an_empty_database_and_makes_none(tmp_path: Path, place: str) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "x.db").symlink_to(tmp_path / "there" / "gone.db")
    (tmp_path / "disk").symlink_to("/nonexistent/disk")
    for act in ACTS:
        with SqlStore(f"sqlite:///{tmp_path / place}") as store, pytest.raises(StoreError, match="leads nowhere"):
            act(store)
    assert list((tmp_path / "there").iterdir()) == []


def test_the_rest_of_a_password_with_an_at_sign_is_not_taken_for_a_host() -> None:
    for url in ("postgresql://me:p@s3cret@host/db", "postgres://me:p@s3cret?a=b@host/db", "postgresql://x/me:s3cret@h"):
        with pytest.raises(UsageError) as caught:
            SqlStore(url)
        assert "s3cret" not in f"{caught.value.message} {caught.value.hint}"
        assert "%40 for @" in str(caught.value.hint)


def test_a_user_who_may_only_read_reads(postgres: Server) -> None:
    url = postgres.make_database("readers")
    with SqlStore(url) as store:
        store.add(RECORDS)
    for statement in (
        "CREATE USER guest PASSWORD 'guest'",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest",
    ):
        postgres.run(statement, "readers")
    guest = postgres.url("readers", user="guest", password="guest")
    with SqlStore(guest) as store:
        assert store.names() == NAMES
        assert len(list(store.snapshots(Query()))) == 8
        assert store.check() == []
    told = refused(guest, (lambda store: store.add([stored(99)]), lambda store: store.remove(NAMES)))
    assert "permission denied" in told
    assert "ask the database's owner" in told


def test_a_user_who_may_make_no_tables(postgres: Server) -> None:
    postgres.make_database("closed")
    postgres.run("CREATE USER stranger PASSWORD 'stranger'", "closed")
    told = refused(postgres.url("closed", user="stranger", password="stranger"), (lambda store: store.add(RECORDS),))
    assert "permission denied for schema public" in told


def test_tables_that_others_hold_for_long(postgres: Server) -> None:
    url = postgres.make_database("held")
    with SqlStore(url) as store:
        store.add(RECORDS)
    with psycopg.connect(url) as connection:
        connection.execute("LOCK TABLE cg_bench_records")
        told = refused(url, (SqlStore.names, lambda store: store.add([stored(99)])))
    assert "lock timeout" in told
    assert "another program has locked the tables" in told


def test_connections_that_are_cut_while_something_is_measured_cost_nothing(postgres: Server) -> None:
    with SqlStore(postgres.make_database("broken")) as store:
        assert store.names() == []
        postgres.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'broken'")
        assert store.add(RECORDS) == len(RECORDS)
        assert store.names() == NAMES


def test_a_connection_that_is_cut_meanwhile_is_an_error_and_the_next_one_goes_well(postgres: Server) -> None:
    with SqlStore(postgres.make_database("cut")) as store:
        store.add(RECORDS)
        records = store.read()
        next(records)
        postgres.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'cut'")
        with suppress(StoreError):
            list(records)
        assert store.names() == NAMES


def test_how_long_a_silent_server_is_waited_for_can_be_said_in_the_url(postgres: Server) -> None:
    def in_force(options: str) -> list[str | None]:
        database = Database(f"{url}{options}", patience=5)
        found: dict[str, str] = database.write(
            lambda one: cast("Any", one.connection.driver_connection).info.get_parameters()
        )
        return [found.get(name) for name in ("connect_timeout", "keepalives_idle", "tcp_user_timeout")]

    url = postgres.make_database("patience")
    assert in_force("") == ["15", "30", "60000"]
    assert in_force("?connect_timeout=7&keepalives_idle=8&tcp_user_timeout=9000") == ["7", "8", "9000"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:s3cret@host:5/db?sslmode=require", "postgresql://me@host:5/db?sslmode=require"),
        ("postgresql://me:a%40b%2F@host/db", "postgresql://me@host/db"),
        ("postgresql:///db?host=/run/pg&user=me&password=s3cret", "postgresql:///db?host=%2Frun%2Fpg&user=me"),
        ("postgresql+psycopg://host/db?sslpassword=s3cret", "postgresql://host/db"),
        ("sqlite:///a/b.db", "sqlite:///a/b.db"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert SqlStore(url).url == shown


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:s3cret@host/db",
        "postgresql://me:s3cret@host:port/db",
        "postgresql+asyncpg://me:s3cret@host/db",
        "s3cret",
        "",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///a\0b",
    ],
)
def test_what_is_not_a_url_of_a_database_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        SqlStore(url)
    assert "s3cret@" not in caught.value.message
    assert caught.value.hint is not None
    assert "sqlite:///PATH" in caught.value.hint


def test_a_file_that_is_not_a_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no database\n" * 1000)
    assert "not a database" in refused(f"sqlite:///{path}")
    assert path.read_text() == "no database\n" * 1000
    refused(f"sqlite:///{tmp_path}")
    refused(f"sqlite:///{path}/below.db")


def test_a_database_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE moz_places (url TEXT)")
    before = path.read_bytes()
    assert "a database of another program" in refused(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_reported_when_something_is_to_be_stored(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'none' / 'history.db'}"
    assert "make the folder first" in refused(url, (lambda store: store.add(RECORDS),))
    assert SqlStore(url).names() == []


def test_a_file_that_another_program_holds_for_long(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'history.db'}"
    with SqlStore(url) as store:
        store.add(RECORDS)
    with closing(sqlite3.connect(tmp_path / "history.db", isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert "database is locked (another program has locked it" in refused(url)
    with SqlStore(url) as store:
        assert store.names() == NAMES


@pytest.mark.parametrize(
    ("act", "other"),
    [
        (SqlStore.names, "BEGIN EXCLUSIVE"),
        (lambda store: store.add([stored(99)]), "BEGIN EXCLUSIVE"),
        (lambda store: store.add([stored(99)]), "BEGIN; SELECT * FROM cg_bench_records"),  # only the end waits for it
    ],
)
def test_whoever_waits_for_a_locked_file_is_told_and_goes_on_when_it_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[SqlStore], object], other: str
) -> None:
    monkeypatch.setattr(waiting, "_FIRST_S", 0.05)
    monkeypatch.setattr(database, "_TRY_S", 0.05)
    url = f"sqlite:///{tmp_path / 'history.db'}"
    SqlStore(url).add(RECORDS)
    with closing(sqlite3.connect(tmp_path / "history.db", isolation_level=None)) as connection:
        held = [connection.execute(statement) for statement in other.split(";")]
        lines: list[str] = []

        def note(text: str) -> None:
            lines.append(text)
            held.clear()
            connection.rollback()

        with heard_by(note, logging.INFO), SqlStore(url) as store:
            assert act(store)
    assert lines == [f"waiting for the lock of {url}, 0 s"]


def test_damaged_pages_are_found(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with SqlStore(f"sqlite:///{path}") as store:
        store.add([stored(n, *(measured(f"b{i}", i) for i in range(1, 60))) for n in range(30)])
        data = path.read_bytes()
        for start in range(3 * 4096, len(data), 7 * 4096):
            path.write_bytes(data[:start] + b"\xff" * 64 + data[start + 64 :])
            assert any("malformed" in problem.what for problem in store.check())
    path.write_bytes(data[:5000])
    with SqlStore(f"sqlite:///{path}") as store, pytest.raises(StoreError, match="malformed"):
        store.names()


def test_a_file_without_permission_to_write_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with SqlStore(f"sqlite:///{path}") as store:
        store.add(RECORDS)
    for parent in path.parents:
        if parent != Path(tempfile.gettempdir()) and parent.is_relative_to(tempfile.gettempdir()):
            parent.chmod(0o755)
    path.chmod(0o444)
    begin = (
        "import sys\nfrom cachegrind_bench.store.sql.store import SqlStore\nfrom cachegrind_bench.errors import StoreError\n"
        "from cachegrind_bench.store.protocol import Query\nfrom tests.unit.stored import stored\n"
        "SqlStore('sqlite:///none.db')\nbegin()\nstore = SqlStore(sys.argv[1])\n"  # the first imports more
    )
    read = "print(len(list(store.read())), len(list(store.snapshots(Query()))), store.check())\n"
    write = (
        "for act in (lambda: store.add([stored(99)]), lambda: store.remove(store.names())):\n"
        "    try:\n        act()\n    except StoreError as error:\n        print(error.message)\n"
    )
    lines = run_without_rights(begin + read + write, f"sqlite:///{path}").splitlines()
    assert lines[0] == "8 8 []"
    assert len(lines) == 3
    assert all("readonly database" in line for line in lines[1:])
    path.chmod(0)
    assert run_without_rights(begin + write, f"sqlite:///{path}").count("unable to open") == 2
    tmp_path.chmod(0)
    assert run_without_rights(begin + write, f"sqlite:///{path}").count("unable to open") == 2
    tmp_path.chmod(0o700)


def test_a_full_disk_is_reported_and_what_was_there_stays(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here")
    code = (
        "import sys\nfrom cachegrind_bench.store.sql.store import SqlStore\nfrom cachegrind_bench.errors import StoreError\n"
        "from tests.unit.stored import measured, stored\nstore = SqlStore(sys.argv[1])\ncount = 0\n"
        "try:\n    while True:\n"
        "        count += store.add([stored(count, *(measured(f'b{count}-{i}') for i in range(50)))])\n"
        "except StoreError as error:\n    print(error.message, '|', error.hint)\n"
        "print(count == len(store.names()) > 0, store.check())\n"
    )
    script = f'mount -t tmpfs -o size=1m none {tmp_path} && exec {sys.executable} -c "$1" "$2"'
    done = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
            code,
            f"sqlite:///{tmp_path}/x.db",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no private disk here: {done.stderr.strip()}")
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert "database or disk is full | free some space" in first
    assert second == "True []"


@pytest.mark.parametrize(
    ("missing", "url"),
    [("sqlalchemy", "sqlite:///x.db"), ("sqlalchemy", "postgresql://h/d"), ("psycopg", "postgresql://h/d")],
)
def test_without_the_extra_packages_the_advice_is_to_install_them(missing: str, url: str) -> None:
    code = (
        f"import sys\nsys.modules[{missing!r}] = None\nfrom pathlib import Path\n"
        "from cachegrind_bench.errors import UsageError\nfrom cachegrind_bench.store.open import open_store\n"
        "try:\n    open_store(sys.argv[1], cwd=Path('.'), environ={})\n"
        "except UsageError as error:\n    print(error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, check=True)
    assert "pip install '.[sql]' in a checkout" in done.stdout


def test_open_store_opens_both(tmp_path: Path, postgres: Server) -> None:
    for url in ("sqlite:///history.db", postgres.make_database("opened")):
        with open_store(url, cwd=tmp_path, environ={}) as store:
            assert store.add(RECORDS) == 8
            assert "s3cret" not in store.url
    assert (tmp_path / "history.db").exists()


def test_a_host_that_can_be_none(postgres: Server) -> None:
    told = refused(postgres.url("x").replace("127.0.0.1", "x" * 64), (SqlStore.names,))
    assert "cannot read postgresql://owner@xxx" in told


def test_a_server_that_stops_is_said_and_bounded(postgres: Server, said: list[str]) -> None:
    url = postgres.make_database("stopped")
    with SqlStore(url) as store:
        store.add(RECORDS)
    store = SqlStore(url, waiting=waiting.Waiting(2.5))

    def ask() -> None:
        with store._database.reading() as connection:
            assert connection is not None
            number = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
            assert isinstance(number, int)
            os.kill(number, signal.SIGSTOP)
            try:
                connection.exec_driver_sql("SELECT 1")
            finally:
                os.kill(number, signal.SIGCONT)

    with pytest.raises(StoreError, match="server closed the connection"):
        ask()
    assert said == [f"waiting for {store.url}, 2 s"]


def test_what_is_acknowledged_is_on_the_disk_of_a_server_that_promises_less(postgres: Server) -> None:
    url = postgres.make_database("hasty")
    postgres.run("ALTER DATABASE hasty SET synchronous_commit = off", "hasty")
    with SqlStore(url) as store:
        question = "SELECT current_setting('synchronous_commit')"
        assert store._database.write(lambda connection: connection.exec_driver_sql(question).scalar()) == "on"
        postgres.run("ALTER DATABASE hasty SET synchronous_commit = remote_apply", "hasty")
        assert store._database.write(lambda connection: connection.exec_driver_sql(question).scalar()) == "remote_apply"
