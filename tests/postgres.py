"""A private PostgreSQL server on loopback, in a temporary folder: no systemd, no cluster of the system, no rights.

A test module that wants it, or `database_url`, has `pytest_plugins = ["tests.postgres"]`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.conftest import without

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_INSTALLED = "no PostgreSQL in /usr/lib/postgresql (`scripts/setup.sh test-slow` installs it)"

PASSWORD = "s3cret/pass@word"
_QUOTED_PASSWORD = "s3cret%2Fpass%40word"
_START_SECONDS = 60

# Quick instead of safe: the data is thrown away.
_SETTINGS = ("fsync=off", "full_page_writes=off", "max_connections=60", "shared_buffers=32MB", "autovacuum=off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server; the superuser is `owner`, with `PASSWORD`."""

    port: int

    def url(self, database: str, user: str = "owner", password: str = _QUOTED_PASSWORD) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def run(self, statement: str, database: str = "postgres") -> None:
        """Execute one statement as the superuser, outside any transaction."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    def make_database(self, name: str) -> str:
        """Make an empty database, and return its URL."""
        self.run(f'CREATE DATABASE "{name}"')
        return self.url(name)


def _programs() -> Path | None:
    """Return the folder of the newest server that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


def _as_other_user(folder: Path) -> list[str]:
    """Return the words before a command: PostgreSQL refuses to run as root. The folder becomes the other user's."""
    if os.geteuid() != 0:
        return []
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    return ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _make_cluster(programs: Path, folder: Path, before: list[str]) -> None:
    secret = folder / "password"
    secret.write_text(PASSWORD, encoding="utf-8")
    secret.chmod(0o644)
    command = [*before, str(programs / "initdb"), "-D", str(folder / "data"), "-U", "owner", "-E", "UTF8"]
    command += ["--locale=C.UTF-8", "--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        message = f"initdb failed:\n{done.stdout}{done.stderr}"
        raise RuntimeError(message)


@contextmanager
def _running(programs: Path, folder: Path, before: list[str]) -> Iterator[Server | None]:
    """Run the server; None if it did not start, as when another process took the port."""
    server = Server(port=_free_port())
    options = [word for setting in _SETTINGS for word in ("-c", setting)]
    command = [
        *before,
        str(programs / "postgres"),
        "-D",
        str(folder / "data"),
        "-h",
        "127.0.0.1",
        "-p",
        str(server.port),
    ]
    if shutil.which("setpriv"):  # ends with us, even if we are killed
        command = [*(before or ["setpriv"]), "--pdeathsig", "QUIT", *command[len(before) :]]
    with open(folder / "log", "ab") as log:
        process = subprocess.Popen(
            [*command, "-k", str(folder), *options], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield server if _answers(server, process) else None
    finally:
        process.send_signal(3)  # an immediate shutdown
        process.wait(timeout=_START_SECONDS)


def _answers(server: Server, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            psycopg.connect(server.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return True
    return False


@contextmanager
def private_server() -> Iterator[Server]:
    """Run a server in a folder of its own. FileNotFoundError where no PostgreSQL is installed."""
    programs = _programs()
    if programs is None:
        raise FileNotFoundError(NOT_INSTALLED)
    folder = Path(tempfile.mkdtemp(prefix="cg-bench-pg-", dir="/tmp"))
    try:
        before = _as_other_user(folder)
        _make_cluster(programs, folder, before)
        for _ in range(3):
            with _running(programs, folder, before) as server:
                if server is not None:
                    yield server
                    return
        message = f"PostgreSQL did not start:\n{(folder / 'log').read_text(errors='replace')}"
        raise RuntimeError(message)
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """Start a server for all tests of this process."""
    if _programs() is None:
        without(NOT_INSTALLED)
    with private_server() as server:
        yield server


_numbers = count(1)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty database: the test runs once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'history.db'}"
    server: Server = request.getfixturevalue("postgres")
    return server.make_database(f"history_{next(_numbers)}")
