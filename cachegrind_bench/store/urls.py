"""The URLs of stores: their four forms, what may be in them, and how they are shown.

Must not know what a store does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.text import without_password

FORMS = "a store is file:DIR, git:BRANCH[@REMOTE], sqlite:///PATH or postgresql://[USER@]HOST/DATABASE"
_ANY = re.compile(r"(?:file:|git:|sqlite:///|postgres(?:ql)?://)[^\s]")

# What git takes for a branch is longer to say; this refuses what could be an option, a refspec or another ref's syntax.
_BRANCH = re.compile(r"(?![-+/.])(?!.*(?:\.\.|//|/\.|\.lock(?:/|$)))[^\x00-\x20\x7f~^:?*\[\\@]+(?<![/.])", re.ASCII)
_REMOTE = re.compile(r"(?!-)[A-Za-z0-9._/-]+", re.ASCII)


def is_url(text: str) -> bool:
    """Return whether this begins as the URL of a store."""
    return _ANY.match(text) is not None and "\0" not in text


def at_home(path: str, environ: Mapping[str, str]) -> str:
    """Put the home folder where ~ begins a path: no shell does it behind a colon, nor in a configuration.

    UsageError where that cannot be done: a folder that is called ~ is one that somebody removes with `rm -rf ~`.
    """
    if not path.startswith("~"):
        return path
    home = environ.get("HOME", "")
    if path[1:2] not in {"", "/"} or not home.startswith("/"):
        what = "$HOME is not a folder" if home[:1] != "/" else "only your own home folder is known"
        raise UsageError(f"{path[:200]!r} begins with ~, and {what}", hint="write the whole path, or ./~ for that name")
    return home.rstrip("/") + path[1:] or "/"


def branch_of(rest: str, url: str) -> tuple[str, str | None]:
    """Return the branch and the remote that BRANCH[@REMOTE] names."""
    branch, at, remote = rest.partition("@")
    if branch == "HEAD" or branch.startswith("refs/"):
        raise UsageError(
            f"git:{branch} is not a branch name", hint="as in git:cg-bench-data, without refs/heads/ before it"
        )
    if _BRANCH.fullmatch(branch) is None or (at and _REMOTE.fullmatch(remote) is None):
        raise wrong_url(url)
    return branch, remote if at else None


def wrong_url(url: str) -> UsageError:
    """Return the error for a URL that has none of the four forms."""
    return UsageError(f"{without_password(url)[:200]!r} is not a store URL", hint=FORMS)
