"""Shared by the adapters: bodies without a model, numbered pages, and calls that are not offered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NoReturn, cast

from fastapi import HTTPException, Request

from service.domain import moments
from service.domain.access import Caller
from service.domain.errors import InvalidInput
from service.domain.memory import Memory
from service.domain.query import Query, SortOrder
from service.http import narrowing
from service.http.deps import list_scope, read_scope
from service.http.json_body import JsonRoute
from service.http.narrowing import NarrowingFields
from service.http.reads import AuditRead
from service.memories import reading
from service.memories.values import TotalCount
from service.runtime.resources import Resources

EVERY_METHOD: Final = ["GET", "POST", "PUT", "PATCH", "DELETE"]

MOST_PAGED: Final = 10_000
"""The last memory that numbered pages reach, because each page reads all those before it again."""


class AdapterRoute(JsonRoute):
    """A route of another system's API. Its clients add query parameters that mean nothing here, so unknown ones are
    ignored; routes that delete by query refuse them (`only`). mem0's clients end every path with a slash."""

    any_parameter = True
    reads_its_body = True
    slash_is_optional = True


async def object_of(request: Request) -> dict[str, Any]:
    """The JSON object in the body; raises InvalidInput."""
    if not hasattr(request.state, "json"):
        raise InvalidInput("body: send a JSON object with Content-Type: application/json.", field="body")
    body = request.state.json
    if not isinstance(body, dict):
        raise InvalidInput("body: must be a JSON object.", field="body")
    return body


def objects_in(sent: Mapping[str, Any], name: str, most: int) -> list[dict[str, Any]]:
    """The objects under this name; raises InvalidInput."""
    given = sent.get(name)
    if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
        raise InvalidInput(f"{name}: must be a non-empty list of objects.", field=name)
    if len(given) > most:
        raise InvalidInput(f"{name}: {len(given)} were sent; at most {most} are accepted at once.", field=name)
    return given


def only(request: Request, *names: str) -> None:
    """Raises InvalidInput for a query parameter that is not among `names`, because it might limit a deletion."""
    for name in request.query_params:
        if name not in names:
            raise InvalidInput(f"{name[:100]}: is not a parameter of this request.", field=name[:100])


def whole_number(given: object, field: str, *, default: int, least: int = 1, most: int, strict: bool = False) -> int:
    """A number in a query or body, clamped to its range; raises InvalidInput for anything else, and with `strict` for
    a number below the range."""
    if given is None or given == "":
        return default
    try:
        number = int(str(given))
    except ValueError:
        raise InvalidInput(f"{field}: must be a whole number.", field=field) from None
    if strict and number < least:
        raise InvalidInput(f"{field}: must be at least {least}.", field=field)
    return max(least, min(number, most))


def moment(given: object, field: str) -> datetime:
    """A time as seconds since 1970, a date or ISO 8601; raises InvalidInput."""
    try:
        return moments.parse(given)
    except ValueError as exc:
        fault = moments.BEYOND if str(exc) == moments.BEYOND else "must be an ISO 8601 time, or seconds since 1970"
        raise InvalidInput(f"{field}: {fault}.", field=field) from None


def refuse_other(path: str, sentences: Mapping[str, str]) -> NoReturn:
    """Raises 501 with the message for a known call that is not offered, by the beginning of its path, else 404."""
    for begin, sentence in sentences.items():
        if path == begin or path.startswith(f"{begin}/"):
            raise HTTPException(501, sentence)
    raise HTTPException(404)


@dataclass(frozen=True, slots=True)
class NumberedPage:
    """A page by its number; `is_cut`: an answer has no room for the rest of it."""

    memories: Sequence[Memory]
    total: TotalCount
    is_cut: bool


async def read_numbered_page(
    request: Request,
    body: NarrowingFields,
    caller: Caller,
    res: Resources,
    order: SortOrder,
    *,
    skip: int,
    limit: int,
    may_cut: bool = False,
) -> NumberedPage:
    """The memories of a scope after the first `skip`, and their number. Raises InvalidInput beyond MOST_PAGED, and for
    a page that an answer has no room for, unless it may be cut."""
    if skip + limit > MOST_PAGED:
        detail = f"page: paging ends after {MOST_PAGED:,} memories; continue with GET /v1/memories, which has a cursor."
        raise InvalidInput(detail, field="page")
    note = AuditRead(request)
    scope = list_scope(read_scope(caller, res, body, body.active_channel, body.channels), caller, body.active_channel)
    window, _ = await narrowing.window(body, res)
    channels, narrow = tuple(body.channels or ()), narrowing.narrow(body, scope)
    query = Query(scope, narrow=narrow, window=window, channels=channels, include_archived=body.include_archived)
    query = replace(query, skip=skip, limit=limit, detail="full")
    shown, last, total = await reading.page(query, order, res, state="live", after=None, counted=True)
    is_cut = last is not None and len(shown) < limit
    if is_cut and not may_cut:
        detail = f"page_size: the first {len(shown)} memories of this page fill the answer; ask for fewer at once."
        raise InvalidInput(detail, field="page_size")
    note("list", scope, shown, limit=limit, narrowed_by=body.narrowed_by)
    return NumberedPage(cast("Sequence[Memory]", shown), cast("TotalCount", total), is_cut)


def present(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The fields that exist and are not null."""
    return {name: given[name] for name in names if given.get(name) is not None}
