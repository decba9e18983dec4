"""Tells where a remote's branches count: the place that is pushed to, as a mirror may be what is read by default.

Knows git's configuration of remotes; nothing here connects to one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachegrind_bench.vcs.git import try_git

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def true_place(remote: str, repository: Path, environ: Mapping[str, str]) -> str:
    """Return what to read from: the remote, or the URL it is pushed to where git would read from another one."""
    pull, push = (
        try_git(("remote", "get-url", *how, "--end-of-options", remote), repository, environ).stdout
        for how in ((), ("--push",))
    )
    if pull == push or not push:
        return remote
    # As it was written, where it was: git replaces parts of it (insteadOf) once more.
    written = try_git(("config", "--get-all", f"remote.{remote}.pushurl"), repository, environ).stdout
    return (written or push).decode("utf-8", "surrogateescape").splitlines()[0]
