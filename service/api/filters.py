"""The JSON form of a filter, in requests."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue, WithJsonSchema

from service.api.schemas import RequestModel
from service.domain import filters
from service.errors import InvalidInput, PiiRejected
from service.language import pii
from service.resources import Resources

MAX_KEPT = 20_000
"""Characters of a filter that may be kept until a job comes to it."""


def _given(names: tuple[str, ...], kind: str) -> dict[str, JsonValue]:
    """One form of a filter in JSON Schema: these are there, and but for the value not null."""
    kinds: dict[str, JsonValue] = {name: {"type": kind} for name in names if name != "value"}
    return {"required": list(names), "properties": kinds}


SCALARS: list[JsonValue] = [
    {"type": "string", "maxLength": filters.MAX_TEXT},
    {"type": "number"},
    {"type": "boolean"},
]
SEVERAL: JsonValue = {"type": "array", "items": {"anyOf": SCALARS}, "maxItems": filters.MAX_VALUES}
VALUE: dict[str, JsonValue] = {"anyOf": [*SCALARS, {"type": "null"}, SEVERAL]}


class FilterInput(RequestModel):
    """A condition (`field`, `operator`, `value`), or exactly one of `AND`, `OR`, `NOT` over further filters.

    Fields are the columns of a memory, `tag`, `category`, or a path into its metadata (`metadata.project.name`; names
    that are no column are looked up in metadata, too). A field that holds a list matches with any of its elements.
    Where a value is missing, `ne`, `nin` and NOT hold and comparisons do not; `eq` null asks for a missing value.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                _given(("field", "operator", "value"), "string"),
                _given(("field", "op", "value"), "string"),
                _given(("AND",), "array"),
                _given(("OR",), "array"),
                _given(("NOT",), "object"),
            ],
            "examples": [
                {"field": "metadata.project", "operator": "eq", "value": "atlas"},
                {
                    "AND": [
                        {"field": "category", "operator": "in", "value": ["work", "travel"]},
                        {"NOT": {"field": "tag", "operator": "eq", "value": "draft"}},
                        {"field": "created_at", "operator": "gte", "value": "2026-01-01"},
                    ]
                },
            ],
        }
    )

    field: str | None = Field(
        None,
        min_length=1,
        max_length=filters.MAX_FIELD,
        description="A column of a memory, or a path into its metadata of at most 8 steps",
        examples=["metadata.project"],
    )
    operator: filters.Operator | None = Field(None, description="`op` is accepted too", examples=["eq"])
    op: filters.Operator | None = Field(None, description="The same as operator", examples=["eq"])
    value: Annotated[JsonValue, WithJsonSchema(VALUE)] = Field(
        None, description="A list for in and nin; null for eq and ne", examples=["atlas"]
    )
    AND: list[FilterInput] | None = Field(
        None, min_length=1, max_length=filters.MAX_PARTS, description="All of these hold; 8 levels deep at most"
    )
    OR: list[FilterInput] | None = Field(
        None, min_length=1, max_length=filters.MAX_PARTS, description="One of these holds"
    )
    NOT: FilterInput | None = Field(None, description="This does not hold")


def tree(given: FilterInput | None, where: str = "filters") -> filters.Filter | None:
    """The filter that a request asked for; raises InvalidInput naming the path inside it."""
    return filters.read(given.model_dump(exclude_unset=True), where) if given is not None else None


async def kept(given: FilterInput | None, res: Resources) -> filters.Filter | None:
    """The same for a filter that may be written down: its texts are redacted like the memories it is compared with."""
    found = tree(given)
    if found is None or given is None:
        return None
    if len(given.model_dump_json(exclude_unset=True)) > MAX_KEPT:
        raise InvalidInput(f"filters: must not be longer than {MAX_KEPT} characters here.", field="filters")
    return await res.threads.run(filters.with_texts, found, _redacted)


def _redacted(text: str) -> str:
    try:
        return str(pii.redact_json(text)[0])
    except PiiRejected as exc:
        raise PiiRejected(exc.detail, field="filters") from None
