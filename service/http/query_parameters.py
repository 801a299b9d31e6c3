"""Query parameters of searches and lists: the fields of a body, in a URL."""

from __future__ import annotations

import json
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar, get_args

from annotated_types import MaxLen
from fastapi import Depends, Query
from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic.fields import FieldInfo

from service.domain.errors import InvalidInput
from service.http import errors, json_body
from service.http.narrowing import MAX_WORDS, Comma

MAX_CHARS = 20_000
"""Characters of one parameter: servers accept URLs of 64 kB, in which a letter can take twelve bytes."""

Body = TypeVar("Body", bound=BaseModel)


def body_of(model: type[Body], given: dict[str, Any]) -> Body:
    """The body with these parameters; raises InvalidInput with the name of the parameter."""
    try:
        return model(**given)
    except ValidationError as exc:
        raise errors.invalid(exc.errors(), model, path_of=errors.path, input_name="query") from None


def fields_of(model: type[Body]) -> Any:
    """A dependency: the body, of query parameters with the names of its fields. Objects are sent as JSON; lists may be
    repeated or comma-separated, except for channels, whose names may contain commas."""
    objects = {name for name, field in model.model_fields.items() if _is_object(field.annotation)}

    async def make(**given: Any) -> Body:
        sent = {name: value for name, value in given.items() if value is not None}
        return body_of(
            model,
            {name: json_body.parse(each.encode(), name) if name in objects else each for name, each in sent.items()},
        )

    make.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=None if name in objects or field.default_factory else field.default,
                annotation=_parameter(name, field, is_object=name in objects),
            )
            for name, field in model.model_fields.items()
        ]
    )
    return Depends(make)


def _is_object(annotation: Any) -> bool:
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return is_model or any(map(_is_object, get_args(annotation)))


def _parameter(name: str, field: FieldInfo, *, is_object: bool) -> Any:
    if is_object:
        examples = [json.dumps(each) for each in field.examples or ()]
        description = f"{field.description}; as URL-encoded JSON"
        return Annotated[str | None, Query(max_length=MAX_CHARS, description=description, examples=examples)]
    if "list[" not in str(field.annotation):
        is_text = field.annotation == str | None
        most = min([MAX_CHARS, *(each.max_length for each in field.metadata if isinstance(each, MaxLen))])
        about = Query(max_length=most if is_text else None, description=field.description, examples=field.examples)
        return Annotated[(field.annotation, *field.metadata, about)]
    is_split = name != "channels"
    how = REPEATABLE if is_split else "Repeatable; commas do not separate"
    about = Query(description=f"{field.description}. {how}")
    return Annotated[(field.annotation, *field.metadata, *([SplitAtCommas] if is_split else []), about)]


# -- lists in a URL ---------------------------------------------------------------------------------------------------

REPEATABLE = "Repeatable, or one comma-separated list"
Several = Annotated[list[Comma] | None, Query(max_length=MAX_WORDS, description=REPEATABLE)]


def split(given: list[str] | None, field: str) -> list[str]:
    """The values of a parameter that may be repeated or comma-separated. Raises InvalidInput for one without
    values: ignoring it would find more than was asked for."""
    try:
        parts: list[str] = _split(given or [])
    except ValueError as exc:
        raise InvalidInput(f"{field}: {exc}.", field=field) from None
    return parts


def _split(given: Any) -> Any:
    if not isinstance(given, list):
        return given
    parts = [stripped for each in given for part in str(each).split(",") if (stripped := part.strip())]
    if given and not parts:
        raise ValueError("name at least one")
    return parts


SplitAtCommas = BeforeValidator(_split)
"""Splits comma-separated lists before validation."""
