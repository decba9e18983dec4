"""A job's token for git: handed over in the environment, for GitHub's address alone, and written nowhere."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def for_git(environ: Mapping[str, str], server_url: str, token: str) -> dict[str, str]:
    """Return the variables that let git fetch and push with this token.

    What actions/checkout may have written into the clone's configuration is replaced: GitHub refuses two such headers.
    """
    encoded = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    known = environ.get("GIT_CONFIG_COUNT", "")
    first = int(known) if known.isascii() and known.isdigit() else 0
    found = {"GIT_CONFIG_COUNT": str(first + 2)}
    for number, value in enumerate(("", f"AUTHORIZATION: basic {encoded}"), first):  # an empty one forgets those before
        found[f"GIT_CONFIG_KEY_{number}"] = f"http.{server_url.rstrip('/')}/.extraheader"
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    return found
