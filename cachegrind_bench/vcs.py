"""Interim: the commit that is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cachegrind_bench.model.result import Commit


def commit_info(cwd: Path, environ: Mapping[str, str]) -> Commit | None:
    """Return nothing yet."""
    del cwd, environ
    return None
