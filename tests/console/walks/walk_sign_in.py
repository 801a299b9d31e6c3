"""Who gets in, and what a key of few rights sees."""

from __future__ import annotations

import time

from playwright.sync_api import expect

from bench.target import Service
from tests.console.seeding import ApiCaller
from tests.console.walks.fixtures import Open


def test_the_address_signs_in_and_forgets_the_key(service: Service, open_page: Open) -> None:
    page = open_page("/memories")
    expect(page.get_by_role("link", name="Rex needs his vaccination")).to_be_visible()
    page.goto(f"{service.url}/console#key={service.key}")
    expect(page.get_by_role("heading", name="Memories")).to_be_visible()
    assert service.key not in page.url
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("API key or token")).to_be_visible()
    assert page.evaluate("sessionStorage.length + localStorage.length + document.cookie.length") == 0


def test_a_key_is_typed_and_a_wrong_one_refused(service: Service, open_page: Open) -> None:
    page = open_page(key="", may_fail=("401",))
    page.get_by_label("API key or token").fill("lox_wrong_key_0123456789")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("status")).to_contain_text("key")
    page.get_by_label("API key or token").fill(service.key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("link", name="Rex needs his vaccination")).to_be_visible()


def test_an_expired_key_signs_out(call: ApiCaller, open_page: Open) -> None:
    expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 8))
    made = call("POST", "/v1/api-keys", {"name": "brief", "rights": ["memory:read"], "expires_at": expires})
    page = open_page("/memories?user_id=alice", key=made["api_key"], may_fail=("401",))
    page.wait_for_timeout(9_000)
    page.get_by_role("link", name="Timeline").click()
    page.reload()
    expect(page.get_by_label("API key or token")).to_be_visible()


def test_a_token_of_one_user_sees_only_hers(call: ApiCaller, open_page: Open) -> None:
    token = call("POST", "/v1/tokens", {"user_id": "bob", "rights": ["memory:read"]})["token"]
    page = open_page("/memories?user_id=alice", key=token)
    expect(page.get_by_role("link", name="Bob plays chess")).to_be_visible()
    expect(page.get_by_role("link", name="Lisbon")).to_have_count(0)
    expect(page.get_by_label("User")).to_be_disabled()
    for absent in ("Remember", "Edit", "Delete"):
        expect(page.get_by_role("button", name=absent)).to_have_count(0)
    names = page.get_by_role("navigation").get_by_role("link").all_inner_texts()
    assert names == ["Memories", "Ask", "Conversations", "Timeline", "Graph", "Reviews", "Activity"]
    for name in names:
        page.get_by_role("navigation").get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
        page.wait_for_load_state()
