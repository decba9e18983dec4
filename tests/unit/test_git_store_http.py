"""The store in a git branch behind a real server of git over HTTP that has bad moments."""

from __future__ import annotations

import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.errors import StoreError
from tests.unit.clones import BRANCH, Place
from tests.unit.stored import NAMES, RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Server(ThreadingHTTPServer):
    """Serves a folder of bare repositories. `bad` are answers for the next requests of a kind, in place of git's or after it."""

    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = root
        self.bad: list[tuple[str, int, bool]] = []  # part of the path, status, whether git does its work nevertheless
        self.seen: list[str] = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    @property
    def place(self) -> Server:
        assert isinstance(self.server, Server)
        return self.server

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.place.seen.append(self.path)
        bad = next((each for each in self.place.bad if each[0] in self.path), None)
        if bad is None:
            status, headers, content = self.backend(body)
        else:
            self.place.bad.remove(bad)
            if bad[2]:
                self.backend(body)
            status, headers, content = bad[1], [("WWW-Authenticate", 'Basic realm="x"')], b""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def backend(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        path, _, query = self.path.partition("?")
        environ = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.place.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "REMOTE_USER": "me",
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        out = subprocess.run(["git", "http-backend"], env=environ, input=body, capture_output=True, check=False).stdout
        head, _, content = out.partition(b"\r\n\r\n")
        parts = [line.partition(": ") for line in head.decode().split("\r\n")]
        pairs = [(name, value) for name, _, value in parts]
        status = int(next((value[:3] for name, value in pairs if name == "Status"), "200"))
        return status, [pair for pair in pairs if pair[0] != "Status"], content

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the base class's
        """Be quiet."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Return a server of what is below the test's folder."""
    with Server(tmp_path) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield found
        found.shutdown()
        thread.join(10)


@pytest.fixture
def place(server: Server, tmp_path: Path) -> Place:
    """Return a clone whose remote is that server."""
    place = Place(tmp_path, "shallow")
    place.git("remote", "set-url", "origin", f"http://127.0.0.1:{server.server_port}/remote.git")
    return place


def test_runs_are_added_and_read_over_http(place: Place) -> None:
    store = place.store()
    assert store.names() == []
    assert store.add(RECORDS[:4]) == 4
    assert store.add(RECORDS) == 4
    assert list(place.store().read()) == RECORDS
    assert store.check() == []


@pytest.mark.parametrize(
    ("part", "status"),
    [
        ("service=git-upload-pack", 500),
        ("/git-upload-pack", 502),
        ("service=git-receive-pack", 503),
        ("/git-receive-pack", 503),
        ("/git-receive-pack", 429),
    ],
)
def test_a_server_that_has_no_time_is_asked_again(place: Place, server: Server, part: str, status: int) -> None:
    store = place.store()
    store.add(RECORDS[:1])
    server.bad = [(part, status, False)] * 2
    assert store.add(RECORDS) == 7
    assert server.bad == []
    assert store.names() == NAMES


def test_a_push_that_worked_and_was_answered_with_an_error_counts_once(place: Place, server: Server) -> None:
    store = place.store()
    store.add(RECORDS[:1])
    server.bad = [("/git-receive-pack", 502, True)]
    assert store.add(RECORDS) == 7
    assert server.bad == []
    assert place.commits() == 2


def test_reading_from_a_server_that_stays_away_is_an_error_and_not_an_empty_store(place: Place, server: Server) -> None:
    place.store().add(RECORDS)
    server.bad = [("/", 503, False)] * 100
    with pytest.raises(StoreError, match=f"{BRANCH} cannot be read after 4 tries: .*503"):
        place.store().names()


@pytest.mark.parametrize(("status", "said"), [(401, "Username|Authentication"), (403, "403"), (404, "not found")])
@pytest.mark.parametrize("who", ["", "me:secret@"])
def test_who_is_not_let_in_is_reported_at_once(place: Place, server: Server, status: int, said: str, who: str) -> None:
    place.git("remote", "set-url", "origin", f"http://{who}127.0.0.1:{server.server_port}/remote.git")
    server.bad = [("/", status, False)] * 100
    with pytest.raises(StoreError, match=said) as caught:
        place.store().add(RECORDS)
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"
    assert len(server.seen) < 4
    assert f"refs/heads/{BRANCH}" not in place.run("for-each-ref", cwd=place.bare)
