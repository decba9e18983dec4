"""A page of ours, opened in a browser that takes note of what it does."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page


class Opened:
    """A page in a browser of its own, and what it complained about or asked for."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        settings = {"viewport": {"width": 1100, "height": 900}, "reduced_motion": "reduce", **options}
        self.context = browser.new_context(**settings)
        self.context.set_default_timeout(60_000)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)

    @classmethod
    @contextmanager
    def quietly(cls, browser: Browser, address: str, **options: Any) -> Iterator[Self]:
        """Open it for a test, after which it must have complained of nothing and asked for nothing but itself."""
        found = cls(browser, address, **options)
        yield found
        assert found.complaints == []
        assert {url.partition("#")[0] for url in found.requests if not url.startswith("data:")} == {address}
        found.context.close()
