"""Resources: a user's profile, and a conversation's transcript."""

from __future__ import annotations

import json
import re
from urllib.parse import quote, unquote

from mcp_types import Resource

from service.domain.errors import InvalidInput
from service.language.prompt_text import harmless_in, indented, one_line
from service.mcp.requests import Ask, FixedIds, RestAnswer, RestRequest, Values, in_path
from service.mcp.tools import IDS

PROFILE, CONVERSATION = "loxodon://users/{user_id}/profile", "loxodon://conversations/{id}{?cursor}"
PROFILE_URI = re.compile(r"loxodon://users/([^/?#]+)/profile")
CONVERSATION_URI = re.compile(r"loxodon://conversations/([^/?#]+)(?:\?cursor=([^&#]+))?")
JSON, TEXT = "application/json", "text/plain"

LATEST, TURNS = 20, 200
"""The number of listed conversations, and of turns per page of a conversation."""


class NotRead(Exception):
    """The service refused the request; the answer says why."""

    def __init__(self, answer: RestAnswer) -> None:
        super().__init__(answer.detail)
        self.answer = answer


async def list_documents(ask: Ask, ids: FixedIds) -> list[Resource]:
    """The profile of a fixed user, if there is one, and the latest conversations; nothing without a scope. Raises
    NotRead."""
    links = []
    if ids.user_id:
        profile = await ask(RestRequest("GET", f"/v1/users/{in_path('user_id', ids.user_id)}/profile"))
        if not profile.is_error:
            uri = PROFILE.replace("{user_id}", quote(ids.user_id, safe=""))
            links.append(_link(uri, "Profile", f"What is known of {ids.user_id}", JSON))
    answer = await ask(RestRequest("GET", "/v1/conversations", {"limit": LATEST, **ids.given()}))
    if answer.is_error and answer.problem.get("code") == "scope_error":
        return links
    for each in _body(answer)["results"]:
        uri = f"loxodon://conversations/{each['id']}"
        name = each["title"] or each["external_id"]
        links.append(_link(uri, name, f"{each['turn_count']} turns, begun {each['started_at']}", TEXT))
    return links


def _link(uri: str, name: str, description: str, media_type: str) -> Resource:
    return Resource(uri=uri, name=one_line(name), description=one_line(description), mime_type=media_type)


async def read(uri: str, ask: Ask, ids: FixedIds) -> tuple[str, str]:
    """The text and its media type. Raises InvalidInput for an unknown address, or NotRead."""
    if match := PROFILE_URI.fullmatch(uri):
        user_id = unquote(match[1])
        if ids.user_id and user_id != ids.user_id:
            raise InvalidInput("user_id: is fixed by this connection to another one.", field="user_id")
        answer = await ask(RestRequest("GET", f"/v1/users/{in_path('user_id', user_id)}/profile"))
        return json.dumps(harmless_in(_body(answer)), ensure_ascii=False, indent=1), JSON
    if match := CONVERSATION_URI.fullmatch(uri):
        owner = {name: value for name, value in ids.given().items() if name in IDS}
        place = {"cursor": unquote(match[2])} if match[2] else {}
        path = f"/v1/conversations/{in_path('id', unquote(match[1]))}"
        answer = await ask(RestRequest("GET", path, {"limit": TURNS, **place, **owner}))
        return _transcript(_body(answer)), TEXT
    raise InvalidInput(f"uri: must be {PROFILE} or {CONVERSATION}.", field="uri")


def _body(answer: RestAnswer) -> Values:
    if answer.is_error:
        raise NotRead(answer)
    body: Values = answer.body
    return body


def _transcript(body: Values) -> str:
    """A line for each turn, with its further lines indented. Outdated parts are marked."""
    lines = [f"# {one_line(body['title'] or body['external_id'])}, {body['turn_count']} turns", ""]
    for turn in body["turns"]:
        who = one_line(" ".join(each for each in (turn["role"], turn["name"]) if each))
        lines.append(f"[{turn['timestamp']}] {who}: {indented(_mark(turn))}")
    if body.get("next_cursor"):
        lines += ["", f"Read on: loxodon://conversations/{body['id']}?cursor={quote(body['next_cursor'], safe='')}"]
    return "\n".join(lines)


def _mark(turn: Values) -> str:
    text: str = turn["content"]
    for span in sorted(turn.get("withdrawn", ()), key=lambda each: -each["start"]):
        start, end = span["start"], span["end"]
        text = f"{text[:start]}[no longer so: {text[start:end]}]{text[end:]}"
    return text
