"""Settings for git that a job hands on in the environment and writes nowhere: its token, and whose checkout to trust."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import MutableMapping


def add_setting(environ: MutableMapping[str, str], name: str, value: str) -> None:
    """Add a setting to those that git takes from the environment."""
    known = environ.get("GIT_CONFIG_COUNT", "")
    number = int(known) if known.isascii() and known.isdigit() else 0
    environ["GIT_CONFIG_COUNT"] = str(number + 1)
    environ[f"GIT_CONFIG_KEY_{number}"] = name
    environ[f"GIT_CONFIG_VALUE_{number}"] = value


def for_git(environ: MutableMapping[str, str], server_url: str, token: str) -> None:
    """Let git fetch and push with this token, at GitHub's address alone.

    What actions/checkout may have written into the clone's configuration is replaced: GitHub refuses two such headers.
    """
    encoded = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    header = f"http.{server_url.rstrip('/')}/.extraheader"
    add_setting(environ, header, "")  # forgets those before
    add_setting(environ, header, f"AUTHORIZATION: basic {encoded}")
