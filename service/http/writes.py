"""Idempotent writes: done once per Idempotency-Key, however often they are sent.

A write route reads from top to bottom: parse, verb, answer. `CallOf` answers a repetition before any work is done;
two requests at the same time meet in the database, where the key is the first insert of the write transaction and the
answer is stored with the data (docs/decisions/007-idempotency.md). Either way `Replay` is raised, and `answer_replay`
sends the first answer again.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import inspect
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import asdict, replace
from typing import Annotated, Any, ParamSpec, Protocol, TypeVar, get_type_hints, overload

from fastapi import Depends, Header, Request, Response
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel

from service.domain.access import Caller, Right
from service.domain.errors import InvalidInput
from service.domain.request import Call, IdempotencyKey, Replay, StoredAnswer
from service.domain.scope import GLOBAL_CHANNEL
from service.http.deps import header_text, known_caller, resources, session_of
from service.http.replica_reads import position_of
from service.http.schemas import DeletedCountResponse, Secretless
from service.runtime.transactions import refuse_repeated

P = ParamSpec("P")
R = TypeVar("R")
Result = TypeVar("Result", contravariant=True)

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


async def refuse_key(
    request: Request, given: Annotated[str | None, Header(alias="Idempotency-Key", include_in_schema=False)] = None
) -> None:
    """For the routes whose answers are not kept: they hold a secret, or would survive what they are about. Reads need
    no key."""
    if given is not None and request.method != "GET":
        detail = "Idempotency-Key: is not supported here. Before you repeat the request, check whether it was done."
        raise InvalidInput(detail, field="Idempotency-Key")


async def _read_unkeyed(request: Request, _: Annotated[None, Depends(refuse_key)]) -> Call:
    return await _read_call(request)


UnkeyedCallOf = Annotated[Call, Depends(_read_unkeyed)]
"""For a write whose answer is not kept, because it holds a secret or because repeating it does no harm."""


async def _add_key(request: Request, call: Annotated[Call, Depends(_read_call)], given: KeyHeader = None) -> Call:
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


def answer(status: int, body: Body) -> StoredAnswer:
    return StoredAnswer(status, body.model_dump(mode="json") if isinstance(body, BaseModel) else body)


Body = BaseModel | Mapping[str, Any]
Endpoint = Callable[P, Coroutine[Any, Any, Response]]


class Decorator(Protocol[Result]):
    """Makes an endpoint of a route that returns this."""

    def __call__(self, route: Callable[P, Awaitable[Result]], /) -> Endpoint[P]: ...


@overload
def sends(shape: None = None, status: int | Callable[[Any], int] = 200) -> Decorator[Body]: ...


@overload
def sends(shape: Callable[[R], Body], status: int | Callable[[R], int] = 200) -> Decorator[R]: ...


def sends(shape: Callable[[Any], Body] | None = None, status: int | Callable[[Any], int] = 200) -> Decorator[Any]:
    """A decorator of a route that returns what its verb returned. `shape` makes the response of it, unless it is one:
    for the client, and for a repetition under the Idempotency-Key of `call`. The document has the type of that."""

    def serialize(result: Any) -> StoredAnswer:
        body = result if shape is None else shape(result)
        return answer(status(result) if callable(status) else status, body)

    return _decorator(serialize, shape)


def sends_new(shape: Callable[[R], Body]) -> Decorator[tuple[R, bool]]:
    """`sends` for a verb that returns a record and whether it is new: 201, else 200."""
    return _decorator(lambda put: answer(201 if put[1] else 200, shape(put[0])), shape)


def _decorator(serialize: Callable[[R], StoredAnswer], shape: Callable[..., Body] | None) -> Decorator[R]:
    def decorate(route: Callable[P, Awaitable[R]]) -> Endpoint[P]:
        signature = inspect.signature(route)
        writes = "call" in signature.parameters

        @functools.wraps(route)
        async def endpoint(*args: P.args, **kwargs: P.kwargs) -> Response:
            if writes:
                kwargs["call"] = replace(kwargs["call"], serialize=serialize)  # type: ignore[type-var]
            return send(serialize(await route(*args, **kwargs)))

        if shape is not None:  # of `of` it is the model; of a function, what it returns
            model = getattr(shape, "__self__", None) or get_type_hints(shape)["return"]
            endpoint.__signature__ = signature.replace(return_annotation=model)  # type: ignore[attr-defined]
        return endpoint

    return decorate


def count_response(count: int) -> DeletedCountResponse:
    return DeletedCountResponse(deleted=count)


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


def _owner(request: Request, caller: Caller, sent: Any) -> tuple[str | None, str | None, str | None, str | None]:
    """User, agent, run and channel from query or body, else the defaults of the API key."""
    named = {**(sent if isinstance(sent, dict) else {}), **request.query_params}
    sent_ids = (named.get(name) for name in ("user_id", "agent_id", "run_id", "channel"))
    user_id, agent_id, run_id, channel = (each if isinstance(each, str) else None for each in sent_ids)
    return *caller.ids(user_id, agent_id, run_id), channel or caller.own_channel or GLOBAL_CHANNEL
