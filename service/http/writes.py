"""Idempotent writes: done once per Idempotency-Key, however often they are sent.

A write route reads from top to bottom: parse, verb, answer. `CallOf` answers a repetition before any work is done;
two requests at the same time meet in the database, where the key is the first insert of the write transaction and the
answer is stored with the data (docs/decisions/007-idempotency.md). Either way `Replay` is raised, and `answer_replay`
sends the first answer again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict, replace
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Header, Request, Response
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel

from service.domain.access import Caller, Right
from service.domain.errors import InvalidInput
from service.domain.request import Call, IdempotencyKey, Replay, StoredAnswer
from service.http.deps import header_text, known_caller, resources, session_of
from service.http.replica_reads import position_of
from service.http.schemas import DeletedCountResponse, Secretless
from service.runtime.transactions import refuse_repeated

MAX_KEY_CHARS = 255
KEPT_S = 86_400.0
"""How long an Idempotency-Key gets its first answer again: no client retries longer than a day."""

KeyHeader = Annotated[
    Annotated[str, AfterValidator(header_text), Secretless] | None,
    Header(
        alias="Idempotency-Key",
        max_length=MAX_KEY_CHARS,
        json_schema_extra={"pattern": r"\S"},
        description="Repeat a write safely: the same key and body get the first answer again (kept 24 h).",
    ),
]


async def _read_call(request: Request) -> Call:
    caller = known_caller(request)
    may_share = caller.may(Right.SHARE)
    return Call(request.state.request_id, caller.key_id, session_id=session_of(request), may_share=may_share)


UnkeyedCallOf = Annotated[Call, Depends(_read_call)]
"""For a write whose answer is not kept, because it holds a secret or because repeating it does no harm."""


async def _add_key(request: Request, call: UnkeyedCallOf, given: KeyHeader = None) -> Call:
    return call if given is None else replace(call, idempotency=_key(request, given, known_caller(request)))


BatchCallOf = Annotated[Call, Depends(_add_key)]
"""For a batch: every item is written under its own key (`of_item`)."""


async def _refuse_repeated(request: Request, call: BatchCallOf) -> Call:
    caller, res = known_caller(request), await resources(request)
    await refuse_repeated(call, caller.workspace_id, res)
    return call


CallOf = Annotated[Call, Depends(_refuse_repeated)]
"""For a route that is one write. It comes after the caller's rights in the signature: they are checked first."""


def of_item(call: Call, index: int) -> Call:
    """The call for one item of a batch, with the key `key:index`."""
    key = call.idempotency
    if key is None:
        return call
    return replace(call, idempotency=replace(key, key=f"{key.key}:{index}"))


def answer(status: int, body: BaseModel) -> StoredAnswer:
    return StoredAnswer(status, body.model_dump(mode="json"))


def answer_count(count: int) -> StoredAnswer:
    return answer(200, DeletedCountResponse(deleted=count))


def send(stored: StoredAnswer) -> Response:
    """The response, with the ETag of what has a version and the Location of an operation."""
    headers = {}
    if isinstance(stored.body.get("version"), int):
        headers["ETag"] = etag(stored.body["version"])
    if stored.body.get("operation_id") and stored.body.get("url"):
        headers["Location"] = stored.body["url"]
    return JSONResponse(stored.body, stored.status, headers)


def etag(version: int) -> str:
    return f'"{version}"'


async def answer_replay(request: Request, exc: Exception) -> Response:
    """The handler of `Replay`."""
    assert isinstance(exc, Replay)
    await _note_position(request)
    response = send(exc.answer)
    response.headers["Idempotency-Replayed"] = "true"
    return response


async def _note_position(request: Request) -> None:
    """A client that repeats a write has not seen its position."""
    if (position := position_of(request.scope)) is not None:
        res, position.source = await resources(request), "primary"
        async with res.db.read():
            pass


def _key(request: Request, given: str, caller: Caller) -> IdempotencyKey:
    """The key, and a fingerprint of method, path, query and body. Blanks and key order in the JSON do not matter."""
    if not given.strip():
        raise InvalidInput("Idempotency-Key must not be blank.", field="Idempotency-Key")
    sent = getattr(request.state, "json", None)
    body = "" if sent is None else json.dumps(sent, sort_keys=True, separators=(",", ":"))
    query = sorted((name, value) for name, value in request.query_params.multi_items() if name != "api_key")
    lines = (request.method, request.url.path, *(f"{name}={value}" for name, value in query), body)
    fingerprint = hmac.new(given.encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()
    return IdempotencyKey(name_answer(caller, given), fingerprint, KEPT_S, _owner(request, caller, sent))


def name_answer(caller: Caller, given: str) -> str:
    """The name under which an answer is kept: one for each wall, defaults and rights, so that nobody gets an answer
    about another scope, or one that the rights of the key would not give."""
    rights = sorted(filter(caller.may, Right))
    whose = json.dumps([given, rights, asdict(caller.defaults)])
    return caller.wall.own_name(hashlib.sha256(whose.encode()).hexdigest())


def _owner(request: Request, caller: Caller, sent: Any) -> tuple[str | None, str | None, str | None]:
    """User, agent and run from query or body, else the defaults of the API key."""
    named = {**(sent if isinstance(sent, dict) else {}), **request.query_params}
    user_id, agent_id, run_id = (named.get(name) for name in ("user_id", "agent_id", "run_id"))
    ids = tuple(each if isinstance(each, str) else None for each in (user_id, agent_id, run_id))
    return caller.ids(ids[0], ids[1], ids[2])


def url_of(operation_id: UUID) -> str:
    """The URL at which a client reads the progress of an operation."""
    return f"/v1/operations/{operation_id}"
