"""Interim: what the machine contributes to the counts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def machine_fields() -> dict[str, str]:
    """Return the architecture."""
    return {"architecture": os.uname().machine}


def machine_info(environ: Mapping[str, str]) -> dict[str, str | int]:
    """Return nothing yet."""
    del environ
    return {}
