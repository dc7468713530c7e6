"""The page in a real browser that has no network but this machine."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_a_browser = pytest.mark.skipif(
    CHROMIUM is None or find_spec("playwright") is None,
    reason="the page is looked at in Chromium, by playwright: one of them is not installed",
)
PHONE, DESKTOP = (375, 800), (1280, 900)


class Visit:
    """A page and what it did that it should not do."""

    def __init__(self, page: Any, origin: str) -> None:
        self.page = page
        self.complaints: list[str] = []
        self._origin = origin
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("request", self._asked)

    def _asked(self, request: Any) -> None:
        if urlsplit(request.url).netloc != urlsplit(self._origin).netloc:
            self.complaints.append(f"left for {request.url}")

    async def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return int(await self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))

    async def text(self, name: str) -> str:
        """Of the region with this accessible name."""
        return str(await self.page.get_by_role("region", name=name).inner_text())


@asynccontextmanager
async def visiting(url: str, *, size: tuple[int, int] = DESKTOP, dark: bool = False) -> AsyncIterator[Visit]:
    """A browser at ``url``'s page; at the end nothing may have been in its console, nor left its origin."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        # A sandbox needs rights that containers lack; what is looked at is our own.
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            context = await browser.new_context(
                viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light"
            )
            visit = Visit(await context.new_page(), url)
            await visit.page.goto(f"{url}/ui/")
            yield visit
        finally:
            await browser.close()
