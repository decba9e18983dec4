"""The token that git sends: exactly one header, to GitHub's address alone, whatever the clone has been told before."""

from __future__ import annotations

import base64
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from cachegrind_bench.ci.runner import add_setting, add_token
from cachegrind_bench.vcs.revisions import Repository as Revisions
from tests.unit.repositories import PATH, Repository, git_environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("git", path=PATH) is None, reason="no git")

TOKEN = "ghs_16C7e42F292c6912E7710c838347Ae178B4a"


def given(environ: dict[str, str], server_url: str, token: str) -> dict[str, str]:
    """Return these variables with the token's."""
    found = dict(environ)
    add_token(found, server_url, token)
    return found


def header(token: str) -> str:
    return "basic " + base64.b64encode(f"x-access-token:{token}".encode()).decode()


class Server(ThreadingHTTPServer):
    """Notes the Authorization headers of each request, and has nothing."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[list[str]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.leads_to = ""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        self.server.seen.append(self.headers.get_all("Authorization") or [])
        self.send_response(301 if self.server.leads_to else 404)
        if self.server.leads_to:
            self.send_header("Location", self.server.leads_to + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the base class's
        """Be quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield found
        finally:
            found.shutdown()
            thread.join()


@pytest.fixture
def clone(tmp_path: Path, server: Server) -> Repository:
    found = Repository(tmp_path / "clone", git_environment(tmp_path))
    found.git("remote", "add", "origin", f"{server.url}/base/prog")
    return found


def ask(clone: Repository, server: Server, environ: dict[str, str], remote: str = "origin") -> list[str]:
    """Let git ask the remote, and return the Authorization headers that came."""
    subprocess.run(
        ["git", "ls-remote", remote],
        cwd=clone.path,
        env={**clone.environ, "GIT_TERMINAL_PROMPT": "0", **environ},
        capture_output=True,
        check=False,
    )
    seen = server.seen.copy()
    server.seen.clear()
    assert seen, "git asked nobody"
    return seen[0]


def test_the_token_arrives(clone: Repository, server: Server) -> None:
    assert ask(clone, server, {}) == []
    assert ask(clone, server, given({}, server.url, TOKEN)) == [header(TOKEN)]
    assert ask(clone, server, given({}, server.url + "/", TOKEN)) == [header(TOKEN)]


@pytest.mark.parametrize("path", ["", "/base", "/base/prog"])
def test_of_the_clones_header_and_the_tokens_exactly_one_arrives(clone: Repository, server: Server, path: str) -> None:
    """The first is what actions/checkout writes; a header for an address that fits better is the user's own wish."""
    key = f"http.{server.url}{path or '/'}.extraheader"
    clone.git("config", "--local", key, f"AUTHORIZATION: {header('of checkout')}")
    assert ask(clone, server, {}) == [header("of checkout")]
    assert ask(clone, server, given({}, server.url, TOKEN)) == [header("of checkout" if path else TOKEN)]


@pytest.mark.parametrize("times", [1, 2])
def test_headers_for_every_address_are_replaced_as_well(clone: Repository, server: Server, times: int) -> None:
    for number in range(times):
        clone.git("config", "--add", "http.extraheader", f"AUTHORIZATION: {header(str(number))}")
        clone.git("config", "--add", f"http.{server.url}/.extraheader", f"AUTHORIZATION: {header(str(number))}")
    assert ask(clone, server, given({}, server.url, TOKEN)) == [header(TOKEN)]


def test_a_header_that_the_clone_includes_from_a_file_elsewhere_is_replaced(
    clone: Repository, server: Server, tmp_path: Path
) -> None:
    """As newer versions of actions/checkout keep it, beside the checkout."""
    kept = tmp_path / "credentials.config"
    key = f"http.{server.url}/.extraheader"
    clone.git("config", "--file", str(kept), key, f"AUTHORIZATION: {header('of checkout')}")
    clone.git("config", f"includeIf.gitdir:{clone.path}/.git.path", str(kept))
    assert ask(clone, server, {}) == [header("of checkout")]
    assert ask(clone, server, given({}, server.url, TOKEN)) == [header(TOKEN)]


def test_what_the_user_hands_on_to_git_stays_and_a_header_there_is_replaced(clone: Repository, server: Server) -> None:
    before = {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": f"url.{server.url}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "gh:",
        "GIT_CONFIG_KEY_1": f"http.{server.url}/.extraheader",
        "GIT_CONFIG_VALUE_1": f"AUTHORIZATION: {header('of the user')}",
    }
    together = given(before, server.url, TOKEN)
    assert ask(clone, server, together, "gh:base/prog") == [header(TOKEN)]
    again = given(together, server.url, "another")
    assert ask(clone, server, again) == [header("another")]


@pytest.mark.parametrize("count", ["", "x", "-1"])
def test_an_invalid_count_is_none(clone: Repository, server: Server, count: str) -> None:
    environ = {"GIT_CONFIG_COUNT": count}
    assert ask(clone, server, given(environ, server.url, TOKEN)) == [header(TOKEN)]


def test_no_other_address_sees_it(clone: Repository, server: Server) -> None:
    for other in ("https://github.com", f"{server.url}0", server.url.replace("127.0.0.1", "localhost")):
        assert ask(clone, server, given({}, other, TOKEN)) == []


def test_a_redirection_does_not_take_it_elsewhere(clone: Repository, server: Server) -> None:
    with Server() as other:
        threading.Thread(target=other.serve_forever).start()
        server.leads_to = other.url
        assert ask(clone, server, given({}, server.url, TOKEN)) == [header(TOKEN)]
        other.shutdown()
    assert other.seen == []


def test_a_token_is_written_nowhere_and_is_not_an_argument_of_a_command(clone: Repository, server: Server) -> None:
    made = given({}, server.url, TOKEN)
    ask(clone, server, made)
    secrets = (TOKEN.encode(), header(TOKEN).removeprefix("basic ").encode())
    for path in [*clone.path.rglob("*"), *clone.path.parent.rglob("home/**/*")]:
        assert not path.is_file() or not any(secret in path.read_bytes() for secret in secrets)
    assert set(made) == {
        "GIT_CONFIG_COUNT",
        *(f"GIT_CONFIG_{what}_{number}" for what in ("KEY", "VALUE") for number in (0, 1, 2)),
    }
    assert not any(TOKEN in value for value in made.values())


def test_fetching_for_a_comparison_sends_it(clone: Repository, server: Server) -> None:
    clone.git("config", f"http.{server.url}/.extraheader", f"AUTHORIZATION: {header('of checkout')}")
    environ = given(clone.environ, server.url, TOKEN)
    assert Revisions(cwd=clone.path, environ=environ).fetch_commit("a" * 40) is None
    assert server.seen[0] == [header(TOKEN)]


def test_settings_follow_one_another_and_git_takes_them_all(clone: Repository) -> None:
    environ = dict(clone.environ)
    places = [str(clone.path), "/a folder", "*"]
    for place in places:
        add_setting(environ, "safe.directory", place)
    add_token(environ, "https://github.com", TOKEN)
    command = ["git", "config", "--get-all", "safe.directory"]
    done = subprocess.run(command, cwd=clone.path, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == places
