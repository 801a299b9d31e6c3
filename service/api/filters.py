"""How does a filter look on the wire?"""

from __future__ import annotations

from pydantic import ConfigDict, Field, JsonValue

from service.api.wire import Body
from service.domain import filters
from service.errors import InvalidInput, PiiRejected
from service.language import pii
from service.resources import Resources

MAX_KEPT = 20_000
"""Characters of a filter that may be kept until a job comes to it."""


class FilterIn(Body):
    """A condition (`field`, `operator`, `value`), or exactly one of `AND`, `OR`, `NOT` over further filters.

    Fields are the columns of a memory, `tag`, `category`, or a path into its metadata (`metadata.project.name`; names
    that are no column are looked up in metadata, too). A field that holds a list matches with any of its elements.
    Where a value is missing, `ne`, `nin` and NOT hold and comparisons do not; `eq` null asks for a missing value.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["field", "value"]},
                {"required": ["AND"]},
                {"required": ["OR"]},
                {"required": ["NOT"]},
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

    field: str | None = Field(None, min_length=1, max_length=filters.MAX_FIELD, examples=["metadata.project"])
    operator: filters.Operator | None = Field(None, description="`op` is accepted too", examples=["eq"])
    op: filters.Operator | None = None
    value: JsonValue = Field(None, description="A list for in and nin")
    AND: list[FilterIn] | None = Field(None, min_length=1, max_length=filters.MAX_PARTS)
    OR: list[FilterIn] | None = Field(None, min_length=1, max_length=filters.MAX_PARTS)
    NOT: FilterIn | None = None


def tree(given: FilterIn | None, where: str = "filters") -> filters.Filter | None:
    """The filter that a request asked for; raises InvalidInput naming the path inside it."""
    return filters.read(given.model_dump(exclude_unset=True), where) if given is not None else None


async def kept(given: FilterIn | None, res: Resources) -> filters.Filter | None:
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
