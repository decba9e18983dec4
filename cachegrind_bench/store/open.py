"""Opens the store that a URL names: files, a git branch or a database. Must not know what a store does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import printable
from cachegrind_bench.store.baselines import STORE, Baselines
from cachegrind_bench.store.protocol import Store
from cachegrind_bench.store.urls import at_home, branch_of, wrong_url
from cachegrind_bench.waiting import Waiting


def open_store(url: str, *, cwd: Path, environ: Mapping[str, str], waiting: Waiting | None = None) -> Store:
    """Return the store at this URL; nothing is made, and a server not asked, before the store is used.

    `cwd` is where relative paths begin, and in whose repository a branch is. UsageError for anything else than `urls.FORMS`.
    """
    waiting = waiting or Waiting()
    scheme, colon, rest = url.partition(":")
    if not colon or not rest or "\0" in url or (scheme not in {"file", "sqlite"} and printable(url) != url):
        raise wrong_url(url)
    match scheme:
        case "file":
            from cachegrind_bench.store.files import FileStore

            return FileStore(_folder(rest, url, cwd, environ), waiting=waiting)
        case "git":
            branch, remote = branch_of(rest, url)
            from cachegrind_bench.store.git_store import GitStore

            return GitStore(cwd, branch, remote, environ, waiting=waiting)
        case "sqlite" | "postgresql":
            return _database(url, rest, cwd, environ, waiting)
        case "postgres":  # what many services hand out
            return _database(f"postgresql:{rest}", rest, cwd, environ, waiting)
        case _:
            raise wrong_url(url)


def _folder(rest: str, url: str, cwd: Path, environ: Mapping[str, str]) -> Path:
    """Return the folder of files; the default one is looked for upwards, as that of baselines is."""
    if rest.startswith("//"):  # file:///path as elsewhere; file://host/path names another machine
        if not rest.startswith("///"):
            raise wrong_url(url)
        path = unquote(rest[2:])
        return Path(at_home(path[1:], environ) if path.startswith("/~") else path)
    return Baselines.find(cwd).store if rest == STORE else cwd / at_home(rest, environ)


def _database(url: str, rest: str, cwd: Path, environ: Mapping[str, str], waiting: Waiting) -> Store:
    if url.startswith("sqlite:"):
        path = rest.removeprefix("///")
        if path in {rest, ""} or path == ":memory:" or "?" in path or "#" in path:
            raise wrong_url(url)
        url = f"sqlite:///{cwd / at_home(path, environ)}"
    elif not rest.startswith("//") or rest == "//":
        raise wrong_url(url)
    try:
        from cachegrind_bench.store.sql.store import SqlStore

        return SqlStore(url, waiting=waiting)
    except ImportError as error:  # of SQLAlchemy, or of the driver of PostgreSQL
        raise UsageError(
            f"a history in a database needs a package that is not there: {error}",
            hint="pip install '.[sql]' in a checkout of this project, or keep the history in files: --store file:DIR",
        ) from error
