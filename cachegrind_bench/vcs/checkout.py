"""Where a checkout begins. Knows the mark that git leaves there, and does not ask git, which is slow and may be missing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def top_folder(cwd: Path) -> Path | None:
    """Return the top of the git work tree around a folder, None outside of one."""
    return next((folder for folder in (cwd, *cwd.parents) if os.path.lexists(folder / ".git")), None)


def folders_up(cwd: Path) -> list[Path]:
    """Return `cwd` and the folders above it up to the top of its git work tree, else up to the root, nearest first."""
    places = [cwd, *cwd.parents]
    top = top_folder(cwd)
    return places if top is None else places[: places.index(top) + 1]
