"""The main job of each other view."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.console.seeding import ApiCaller, flag
from tests.console.walks.fixtures import Open


def test_the_parts_of_a_score_add_up(open_page: Open) -> None:
    page = open_page("/ask?user_id=alice&q=Where does Alice live?")
    hits = page.locator(".score")
    expect(hits.first).to_be_visible()
    for hit in hits.all():
        numbers = hit.evaluate(
            "(each) => ['score', 'part', 'factor'].map((name) => [...each.querySelectorAll(`[data-${name}]`)]"
            ".map((part) => Number(part.dataset[name])))"
        )
        (score,), parts, factors = numbers
        for factor in factors:
            parts = [part * factor for part in parts]
        assert sum(parts) == pytest.approx(score, rel=1e-6)
    expect(page.get_by_label("Block that recall returns")).to_contain_text("Lisbon")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    page.get_by_role("button", name="Python").first.click()
    expect(page.get_by_role("status")).to_contain_text("Copied as Python.")
    page.wait_for_timeout(200)
    assert not sent, "to ask again would count as being served"
    assert page.evaluate("navigator.clipboard.readText()").startswith("import httpx")
    page.get_by_text("Limits, weights and dates").click()
    page.get_by_label("Hits").fill("3")
    expect(hits).to_have_count(3)


def test_a_turn_leads_to_its_memory_and_back(open_page: Open) -> None:
    page = open_page("/conversations?user_id=alice")
    page.get_by_role("link", name="chat-2026-10-15").click()
    page.get_by_role("link", name="→ Alice: We moved to Lisbon").click()
    expect(page.locator(".statement")).to_contain_text("We moved to Lisbon")
    page.get_by_role("link", name="chat-2026-10-15").click()
    expect(page.locator("[aria-current=true]")).to_contain_text("We moved to Lisbon last week")


def test_a_forgotten_message_says_so(call: ApiCaller, open_page: Open) -> None:
    messages = [{"role": "user", "content": "My locker code is on the blue note."}]
    call("POST", "/v1/memories", {"user_id": "tess", "session_id": "locker", "messages": messages})
    [memory] = call("GET", "/v1/memories?user_id=tess")["results"]
    call("POST", "/v1/forget", {"user_id": "tess", "ids": [memory["id"]]})
    page = open_page("/conversations?user_id=tess")
    page.get_by_role("link", name="locker").click()
    expect(page.locator(".said")).to_have_text("(forgotten)")


def test_the_timeline_marks_what_may_be_outdated(open_page: Open) -> None:
    page = open_page("/timeline?user_id=alice")
    line = page.locator("li", has_text="I live in Porto")
    expect(line.locator("i.doubtful")).to_be_visible()
    slider = page.get_by_label("As known on")
    slider.evaluate("(each) => { each.value = -1; each.dispatchEvent(new Event('input')); }")
    expect(page.locator("label", has_text="As known on")).not_to_contain_text("today")
    expect(line).to_be_visible()
    slider.press("ArrowLeft")
    expect(page.get_by_text("Nothing was known then.")).to_be_visible()
    page.get_by_role("button", name="Back to today").click()
    expect(line).to_be_visible()


def test_a_node_leads_to_the_memories_that_name_it(call: ApiCaller, open_page: Open) -> None:
    found = call("POST", "/v1/entities", {"user_id": "alice", "limit": 50})["results"]
    [lisbon] = [each["id"] for each in found if each["name"] == "Lisbon"]
    page = open_page(f"/graph?user_id=alice&entity={lisbon}")
    page.get_by_role("button", name="Ines Moura").click()
    page.get_by_role("link", name="Ines Moura works at Brightwave Labs").click()
    expect(page.locator(".statement")).to_contain_text("Ines Moura works at Brightwave Labs")


def test_a_review_is_accepted_by_key(call: ApiCaller, open_page: Open) -> None:
    flag(call, "kim", "white", "black")
    page = open_page("/reviews?user_id=kim")
    expect(page.locator("ins")).to_contain_text("black")
    page.wait_for_timeout(100)  # keys are listened to once the list has been painted
    page.keyboard.press("a")
    expect(page.get_by_text("Nothing waits for review.")).to_be_visible()
    assert "black" in call("GET", "/v1/memories?user_id=kim")["results"][0]["memory"]


def test_a_key_answers_the_review_that_has_the_focus(call: ApiCaller, open_page: Open) -> None:
    flag(call, "lou", "white", "black")
    flag(call, "lou", "rye", "corn", "bread")
    page = open_page("/reviews?user_id=lou")
    for bread in ("corn", "black"):
        page.locator("li", has_text=bread).get_by_role("checkbox").focus()
        page.keyboard.press("r")
        expect(page.locator("li", has_text=bread)).to_have_count(0)


def test_a_recommendation_is_applied_and_undone(open_page: Open) -> None:
    page = open_page("/cleanup")
    finding = page.locator("li", has_text="I live in Porto")
    finding.get_by_role("checkbox").check()
    page.get_by_role("button", name="Apply 1 selected").click()
    expect(finding).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(finding).to_be_visible()


def test_a_contradiction_that_waits_leads_to_its_review(call: ApiCaller, open_page: Open) -> None:
    flag(call, "vera", "beige", "teal")
    page = open_page("/cleanup?user_id=alice")
    page.locator("li", has_text="beige").get_by_role("button", name="Review").click()
    expect(page.get_by_role("heading", name="Reviews")).to_be_visible()
    expect(page.locator("ins")).to_contain_text("teal")


def test_changes_appear_live(call: ApiCaller, open_page: Open) -> None:
    call.store("Olaf paints boats", "olaf")
    page = open_page("/activity")
    expect(page.get_by_role("link", name="Olaf paints boats")).to_be_visible()
    call.store("Lena collects maps", "lena")
    expect(page.get_by_role("link", name="Lena collects maps")).to_be_visible()
    expect(page.locator("section", has_text="Audit log")).to_contain_text("store")


def test_a_key_is_made_shown_once_and_revoked(call: ApiCaller, open_page: Open) -> None:
    page = open_page("/keys")
    page.get_by_label("Name").fill("reader")
    page.get_by_label("Only user").fill("alice")
    page.get_by_label("memory:write").uncheck()
    page.get_by_role("button", name="Make").click()
    secret = page.get_by_role("dialog").locator("code").inner_text()
    assert ApiCaller(call.url, secret)("GET", "/v1/whoami")["rights"] == ["memory:read"]
    page.get_by_role("button", name="Close").click()
    row = page.locator("li", has_text="reader")
    expect(row).to_contain_text("alice")
    row.get_by_role("button", name="Revoke").click()
    page.get_by_label("Type reader").fill("reader")
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")
