"""The browser that shows our pages."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.conftest import without

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return the system's Chromium; none is fetched."""
    command = shutil.which("chromium") or shutil.which("chromium-browser")
    if command is None:
        without("no chromium on PATH (`scripts/setup.sh test-slow` installs it)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium refuses its own sandbox to root, which CI is; the page is ours.
        running = playwright.chromium.launch(executable_path=command, args=["--no-sandbox"])
        yield running
        running.close()
