"""Every view, light and dark: accessible, usable by keyboard alone and at 360 px; and its screenshot for the docs."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Page, expect

from tests.console.seeding import ApiCaller
from tests.console.walks.fixtures import Open

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text()
PICTURES = Path(__file__).resolve().parents[3] / "docs" / "console"
VIEWS = (
    "memories?user_id=alice",
    "ask?user_id=alice&q=Where does Alice live?",
    "conversations?user_id=alice",
    "timeline?user_id=alice",
    "graph?user_id=alice",
    "reviews?user_id=carol",
    "cleanup",
    "activity",
    "keys",
)


def _addresses(call: ApiCaller) -> list[str]:
    """All views, and the page of a memory and of a conversation."""
    memories = call("GET", "/v1/memories?user_id=alice&limit=100")["results"]
    [moved] = [each for each in memories if "moved to Lisbon" in each["memory"]]
    found = call("POST", "/v1/entities", {"user_id": "alice", "limit": 50})["results"]
    [lisbon] = [each["id"] for each in found if each["name"] == "Lisbon"]
    views = [f"{each}&entity={lisbon}" if each.startswith("graph") else each for each in VIEWS]
    details = [f"memory/{moved['id']}?user_id=alice", f"conversation/{moved['conversation_id']}?user_id=alice"]
    return [*views, *details]


def _go(page: Page, address: str) -> None:
    page.goto(page.url.split("#")[0] + "#/" + address)
    page.locator("main [aria-busy]").first.wait_for(state="detached")
    page.wait_for_timeout(400)  # the layout of the graph


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(scheme: str, call: ApiCaller, open_page: Open) -> None:
    page = open_page(color_scheme=scheme)
    page.evaluate(AXE)
    for address in _addresses(call):
        _go(page, address)
        found = page.evaluate("axe.run()")["violations"]
        assert not [(each["id"], each["nodes"][0]["html"][:200]) for each in found], address
        if os.environ.get("WRITE_SCREENSHOTS"):
            _write(page, f"{address.split('?')[0].split('/')[0]}-{scheme}")


def test_dialogs_and_the_sign_in_are_accessible(call: ApiCaller, open_page: Open) -> None:
    page = open_page(f"/memory/{call.store('Jon eats no fish', 'jon')}?user_id=jon")
    page.get_by_role("button", name="Purge …").click()
    page.get_by_role("dialog").wait_for()
    page.evaluate(AXE)
    assert not page.evaluate("axe.run()")["violations"]
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("API key or token").wait_for()
    assert not page.evaluate("axe.run()")["violations"]


@pytest.mark.parametrize("width", [360, 800])
def test_nothing_is_wider_than_the_screen(width: int, call: ApiCaller, open_page: Open) -> None:
    page = open_page(viewport={"width": width, "height": 700})
    for address in _addresses(call):
        _go(page, address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
        if os.environ.get("WRITE_SCREENSHOTS") == "all":
            _write(page, f"{address.split('?')[0].split('/')[0]}-{width}")


def test_the_keyboard_is_enough(call: ApiCaller, open_page: Open) -> None:
    call.store("Nora runs on Sundays", "nora")
    page = open_page("/memories?user_id=nora")
    page.get_by_role("link", name="Nora runs").wait_for()

    def tab_to(name: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            focused = page.evaluate("(document.activeElement.ariaLabel || document.activeElement.textContent).trim()")
            if focused.startswith(name):
                return
        raise AssertionError(f"Tab does not reach {name}")

    tab_to("Edit")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Text of the memory")).to_be_focused()
    expect(page.get_by_label("Text of the memory")).to_have_value("Nora runs on Sundays")
    page.keyboard.press("End")
    page.keyboard.type(" and Mondays")
    tab_to("Save")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Nora runs on Sundays and Mondays").wait_for()
    expect(page.get_by_role("button", name="Edit")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Why it is here").wait_for()
    tab_to("Forget")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    tab_to("Forget")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Restore").wait_for()
    tab_to("Graph")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Graph")).to_be_focused()


def _write(page: Page, name: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    session = page.context.new_cdp_session(page)
    picture = session.send("Page.captureScreenshot", {"format": "webp", "quality": 82})
    (PICTURES / f"{name}.webp").write_bytes(base64.b64decode(picture["data"]))
