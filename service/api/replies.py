"""What do all writes answer alike? Once per Idempotency-Key, with an ETag where one memory is the answer."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from service.api.deps import answered_before, served
from service.api.operations import Accepted
from service.db.idempotency import Answer, Replay
from service.domain.access import Caller
from service.domain.request import IdempotencyKey
from service.domain.request import Request as Served
from service.resources import Resources

KEY_CHARS = 255

Body = Mapping[str, Any]
Left = TypeVar("Left")


async def once(
    who: Caller, key: IdempotencyKey | None, res: Resources, work: Callable[[], Awaitable[Response]]
) -> Response:
    """The answer of `work`, or the one that this Idempotency-Key got the first time."""
    before = await answered_before(who, key, res)
    if before is not None:
        return again(before)
    try:
        return await work()
    except Replay as replay:
        return again(replay.answer)


async def changed(
    request: Request,
    who: Caller,
    res: Resources,
    key: IdempotencyKey | None,
    verb: Callable[[Served], Awaitable[Left]],
    shape: Callable[[Left], tuple[int, Body]],
) -> Response:
    """What the verb leaves, in its shape, once per Idempotency-Key; a repetition gets the very same answer."""

    async def work() -> Response:
        return send(*shape(await verb(served(request, who, key, shape=shape))))

    return await once(who, key, res, work)


def again(answer: Answer) -> Response:
    return JSONResponse(answer.body, answer.status, {**headers(answer.body), "Idempotency-Replayed": "true"})


def send(status: int, body: Body) -> Response:
    return JSONResponse(body, status, headers(body))


def headers(body: Body) -> dict[str, str]:
    """The ETag of what has a version, and where to ask about work that was accepted."""
    found = {}
    if isinstance(body.get("version"), int):
        found["ETag"] = etag(body["version"])
    if "operation_id" in body and "url" in body:
        found["Location"] = body["url"]
    return found


def etag(version: int) -> str:
    return f'"{version}"'


def accepted(operation_id: UUID) -> Body:
    return Accepted(operation_id=operation_id, url=f"/v1/operations/{operation_id}").model_dump(mode="json")


def of_item(key: IdempotencyKey | None, index: int) -> IdempotencyKey | None:
    """The key of one item of a batch. A long key is hashed, or cutting it would make all items one."""
    if key is None:
        return None
    name = f"{key.key}:{index}"
    if len(name) > KEY_CHARS:
        name = f"{hashlib.sha256(key.key.encode()).hexdigest()}:{index}"
    return IdempotencyKey(name, key.fingerprint, key.ttl_s, key.owner)
