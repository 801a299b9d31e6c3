"""A started service with a few memories, and pages of Chromium that notice every error."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from bench import target
from bench.target import Service
from tests.console.seeding import ApiCaller, seed

Open = Callable[..., Page]
NOTE_VIOLATIONS = (
    "addEventListener('securitypolicyviolation', (event) => console.error('policy', event.violatedDirective))"
)


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    with target.started() as started:
        seed(ApiCaller(started.url, started.key))
        yield started


@pytest.fixture
def call(service: Service) -> ApiCaller:
    return ApiCaller(service.url, service.key)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])


@pytest.fixture
def open_page(service: Service, browser: Browser) -> Iterator[Open]:
    """Opens an address of the console, signed in. In the end nothing may have failed in any page: no error in the
    console, no breach of the policy, no request to another origin."""
    faults: list[str] = []
    contexts: list[BrowserContext] = []

    def open_at(
        address: str = "/memories?user_id=alice",
        *,
        key: str = service.key,
        may_fail: tuple[str, ...] = (),
        **options: object,
    ) -> Page:
        settings = {"viewport": {"width": 1280, "height": 800}, "locale": "en-GB", "reduced_motion": "reduce"} | options
        context = browser.new_context(**settings, permissions=["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)

        def note(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning") and not any(each in message.text for each in may_fail):
                faults.append(f"{message.text} {message.location}")

        page.on("console", note)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: request.url.startswith(service.url) or faults.append(request.url))
        page.add_init_script(NOTE_VIOLATIONS)
        if key:
            page.add_init_script(f"sessionStorage.setItem('loxodon.key', '{key}')")
        page.goto(f"{service.url}/console#{address}")
        page.locator("main").wait_for()
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert not faults
