"""Storing, finding, editing, undoing, forgetting and purging memories."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.console.seeding import ApiCaller
from tests.console.walks.fixtures import Open

HOSTILE = (
    "<img src=x onerror=alert(1)> <script>alert(2)</script>",
    "{{constructor.constructor('alert(3)')()}} ${alert(4)} javascript:alert(5)",
    "\u202eright to left\u202c and zero\u200bwidth \u05d0\u05d1\u05d2 \u0645\u0631\u062d\u0628\u0627",
    "unbroken" * 400,
)


def _row(page: Page, text: str) -> Page:
    return page.locator(".row", has_text=text)  # type: ignore[return-value]


def test_stored_seen_edited_and_undone(open_page: Open) -> None:
    page = open_page("/memories?user_id=dora")
    expect(page.get_by_text("No memories of dora yet.")).to_be_visible()
    expect(page.get_by_text("curl -sS")).to_be_visible()
    page.get_by_role("textbox", name="Add a memory").fill("Dora drinks oat milk, and her mail is dora@example.org")
    page.get_by_role("button", name="Remember").click()
    expect(page.locator("details")).to_contain_text("Added")
    row = _row(page, "Dora drinks oat milk")
    row.get_by_role("button", name="Edit").click()
    page.get_by_label("Text of the memory").fill("Dora drinks soya milk")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Dora drinks soya milk").click()
    history = page.locator("li", has_text="Changed")
    expect(history.locator("del")).to_contain_text("oat")
    expect(history.locator("ins")).to_contain_text("soya")
    page.get_by_role("button", name="Pin").click()
    expect(page.get_by_text("100 %")).to_be_visible()
    page.locator("li", has_text="ADD").get_by_role("link", name="What was known then").click()
    expect(page.get_by_role("link", name="Dora drinks oat milk")).to_be_visible()
    page.get_by_role("link", name="Dora drinks oat milk").click()
    expect(page.locator(".statement")).to_contain_text("oat milk")


def test_a_decision_is_undone(call: ApiCaller, open_page: Open) -> None:
    for sentence in ("My favourite colour is red.", "My favourite colour is brown now."):
        call("POST", "/v1/memories", {"user_id": "ella", "messages": [{"role": "user", "content": sentence}]})
    page = open_page("/memories?user_id=ella")
    page.get_by_role("link", name="brown").click()
    page.locator("li", has_text="Changed by").get_by_role("button", name="Undo this decision").click()
    expect(page.locator(".statement")).to_contain_text("red")


def test_forgotten_in_bulk_and_restored(call: ApiCaller, open_page: Open) -> None:
    for number in ("one", "two", "three"):
        call.store(f"Fred keeps a bee hive called {number} in garden {number}", "fred")
    page = open_page("/memories?user_id=fred")
    for number in ("one", "two"):
        _row(page, f"called {number}").get_by_role("checkbox").check()
    page.get_by_role("button", name="Forget 2 selected").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("del")).to_have_count(2)
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("3 memories", exact=True)).to_be_visible()
    page.get_by_role("button", name="Forget 2 selected").click()
    expect(dialog).to_contain_text("Restore it under State: Deleted.")
    dialog.get_by_role("button", name="Forget").click()
    expect(page.get_by_text("1 memory", exact=True)).to_be_visible()
    page.get_by_label("State").select_option("Deleted")
    _row(page, "called two").get_by_role("button", name="Restore").click()
    expect(_row(page, "called two")).to_have_count(0)
    page.get_by_label("State").select_option("Current")
    expect(page.get_by_role("link", name="called two")).to_be_visible()


def test_archived_and_forgotten_memories_come_back(call: ApiCaller, open_page: Open) -> None:
    memory = call.store("Petra climbs in the Tatra mountains", "petra")
    page = open_page(f"/memory/{memory}?user_id=petra")
    for action in ("Archive", "Forget …"):
        page.get_by_role("button", name=action).click()
        if action == "Forget …":
            page.get_by_role("dialog").get_by_role("button", name="Forget").click()
        page.get_by_role("button", name="Restore").wait_for()
        page.get_by_role("button", name="Undo").click()
        page.get_by_role("button", name="Edit").wait_for()
    events = [each["event"] for each in call("GET", f"/v1/memories/{memory}/history")["results"]]
    assert events == ["ADD", "UPDATE", "UPDATE", "DELETE", "ADD"]


def test_filters_are_part_of_the_address(open_page: Open) -> None:
    page = open_page()
    page.get_by_label("Tag", exact=True).fill("work")
    page.keyboard.press("Enter")
    expect(page.get_by_text("3 memories", exact=True)).to_be_visible()
    assert "tag=work" in page.url
    page.reload()
    expect(page.get_by_text("3 memories", exact=True)).to_be_visible()
    page.go_back()
    expect(page.get_by_role("link", name="Rex needs his vaccination")).to_be_visible()


def test_nothing_found_in_the_past_leads_to_today(open_page: Open) -> None:
    page = open_page("/memories?user_id=alice&as_of=2020-01-01&text=vaccination")
    expect(page.get_by_role("group", name="Categories")).to_be_empty()
    page.get_by_role("link", name="Show all that is known of alice today").click()
    expect(page.get_by_role("link", name="Rex needs his vaccination")).to_be_visible()
    assert "as_of" not in page.url


def test_what_the_preview_shows_is_what_goes(call: ApiCaller, open_page: Open) -> None:
    kept, gone = call.store("Gina sings in a choir", "gina"), call.store("Gina banks with Heron Savings", "gina")
    page = open_page(f"/memory/{gone}?user_id=gina")
    page.get_by_role("button", name="Forget …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("del")).to_have_text("Gina banks with Heron Savings")
    dialog.get_by_role("button", name="Forget").click()
    expect(page.locator(".chip.deleted")).to_be_visible()
    assert [each["id"] for each in call("GET", "/v1/memories?user_id=gina")["results"]] == [kept]


def test_a_deleted_memory_still_shows_its_history(call: ApiCaller, open_page: Open) -> None:
    gone = call.store("Ivo paints boats", "ivo")
    call("DELETE", f"/v1/memories/{gone}")
    page = open_page(f"/memory/{gone}?user_id=ivo")
    expect(page.locator(".statement")).to_have_text("Ivo paints boats")
    expect(page.locator("li", has_text="DELETE")).to_contain_text("Ivo paints boats")


def test_a_purge_asks_for_a_word_and_shows_its_receipt(call: ApiCaller, open_page: Open) -> None:
    gone = call.store("Hugo's locker code is on the blue note", "hugo")
    page = open_page(f"/memory/{gone}?user_id=hugo")
    page.get_by_role("button", name="Purge …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Purge")).to_be_disabled()
    dialog.get_by_label("Type purge").fill("purge")
    dialog.get_by_role("button", name="Purge").click()
    expect(page.get_by_role("dialog", name="Purged")).to_contain_text("memory history")
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_text("No memories of hugo yet.")).to_be_visible()


def test_hostile_texts_stay_text(call: ApiCaller, open_page: Open) -> None:
    ids = [call.store(text, "mallory", dedup=False) for text in HOSTILE]
    ids.append(call.store("Mallory wrote a lot. " + "A word and another word. " * 4_000, "mallory"))
    ids.append(call.store("Mallory likes tags", "mallory", tags=[f"tag number {at} {'x' * 60}" for at in range(100)]))
    for width in (1280, 360):
        page = open_page("/memories?user_id=mallory", viewport={"width": width, "height": 800})
        expect(page.get_by_text("<script>alert(2)</script>")).to_be_visible()
        for path in ("/timeline?", "/ask?q=mallory&", *(f"/memory/{each}?" for each in ids)):
            page.goto(page.url.split("#")[0] + f"#{path}user_id=mallory")
            page.locator("main [aria-busy]").wait_for(state="detached")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.context.close()
