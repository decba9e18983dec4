"""Opens the store that a URL names: files, a git branch or a database.

Knows the four forms of URL; must not know what a store does.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from cachegrind_bench.errors import UsageError
from cachegrind_bench.store.baselines import STORE, Baselines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cachegrind_bench.store.protocol import Store

DEFAULT_STORE = f"file:{STORE}"
FORMS = "a store is file:DIR, git:BRANCH[@REMOTE], sqlite:///PATH or postgresql://[USER@]HOST/DATABASE"

# What git takes for a branch is longer to say; this refuses what could be an option, a refspec or another ref's syntax.
_BRANCH = re.compile(r"(?![-+/.])(?!.*(?:\.\.|//|/\.|\.lock(?:/|$)))[^\x00-\x20\x7f~^:?*\[\\@]+(?<![/.])", re.ASCII)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}", re.ASCII)
_REMOTE = re.compile(r"(?!-)[A-Za-z0-9._/-]+", re.ASCII)


def open_store(url: str, *, cwd: Path, environ: Mapping[str, str]) -> Store:
    """Return the store at this URL; nothing is made, and a server not asked, before the store is used.

    `cwd` is where relative paths begin, and in whose repository a branch is. UsageError for anything else than `FORMS`.
    """
    scheme, colon, rest = url.partition(":")
    if not colon or not rest or "\0" in url:
        raise _bad(url)
    match scheme:
        case "file":
            from cachegrind_bench.store.files import FileStore

            return FileStore(_folder(rest, url, cwd, environ))
        case "git":
            branch, remote = _branch(rest, url)
            from cachegrind_bench.store.gitstore import GitStore

            return GitStore(cwd, branch, remote, environ)
        case "sqlite" | "postgresql":
            return _database(url, rest, cwd, environ)
        case "postgres":  # what many services hand out
            return _database(f"postgresql:{rest}", rest, cwd, environ)
        case _:
            raise _bad(url)


def _at_home(path: str, environ: Mapping[str, str]) -> str:
    """Put the home folder where ~ begins a path: no shell does it behind a colon, nor in a configuration.

    UsageError where that cannot be done: a folder that is called ~ is one that somebody removes with `rm -rf ~`.
    """
    if not path.startswith("~"):
        return path
    home = environ.get("HOME", "")
    if path[1:2] not in {"", "/"} or not home.startswith("/"):
        what = "$HOME is not a folder" if home[:1] != "/" else "only one's own home folder is known"
        raise UsageError(f"{path[:200]!r} begins with ~, and {what}", hint="write the whole path, or ./~ for that name")
    return home.rstrip("/") + path[1:] or "/"


def without_password(url: str) -> str:
    """Return the URL as it may be shown in an error: of what may hold a password, only the scheme.

    Where a password ends cannot be told of a URL that is wrong.
    """
    scheme, colon, rest = url.partition(":")
    if not colon:
        return "…" if "@" in url else url
    if scheme == "file":
        hiding = rest.startswith("//") and "@" in rest
    else:
        hiding = re.search(r":.*@|[?&#]" if scheme in {"git", "sqlite"} else r"[:@?&#]", rest) is not None
    if not hiding:
        return url
    return f"{scheme}:…" if _SCHEME.fullmatch(scheme) else "…"


def _folder(rest: str, url: str, cwd: Path, environ: Mapping[str, str]) -> Path:
    """Return the folder of files; the default one is looked for upwards, as that of baselines is."""
    if rest.startswith("//"):  # file:///path as elsewhere; file://host/path names another machine
        if not rest.startswith("///"):
            raise _bad(url)
        path = unquote(rest[2:])
        return Path(_at_home(path[1:], environ) if path.startswith("/~") else path)
    return Baselines.find(cwd).store if rest == STORE else cwd / _at_home(rest, environ)


def _branch(rest: str, url: str) -> tuple[str, str | None]:
    branch, at, remote = rest.partition("@")
    if branch == "HEAD" or branch.startswith("refs/"):
        raise UsageError(
            f"git:{branch} is not a branch name", hint="as in git:cg-bench-data, without refs/heads/ before it"
        )
    if _BRANCH.fullmatch(branch) is None or (at and _REMOTE.fullmatch(remote) is None):
        raise _bad(url)
    return branch, remote if at else None


def _database(url: str, rest: str, cwd: Path, environ: Mapping[str, str]) -> Store:
    if url.startswith("sqlite:"):
        path = rest.removeprefix("///")
        if path in {rest, ""} or path == ":memory:" or "?" in path or "#" in path:
            raise _bad(url)
        url = f"sqlite:///{cwd / _at_home(path, environ)}"
    elif not rest.startswith("//") or rest == "//":
        raise _bad(url)
    from cachegrind_bench.store.sql.store import SqlStore

    return SqlStore(url)


def _bad(url: str) -> UsageError:
    return UsageError(f"{without_password(url)[:200]!r} names no store", hint=FORMS)
