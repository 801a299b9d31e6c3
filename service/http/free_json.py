"""Fields for arbitrary JSON: metadata, properties, payloads of tools."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, JsonValue, WithJsonSchema
from pydantic_core import PydanticCustomError

from service.domain import sizes
from service.domain.sizes import JsonLimits


def _within(limits: JsonLimits) -> AfterValidator:
    def check(value: Any) -> Any:
        if problem := sizes.excess(value, limits):
            raise PydanticCustomError("too_large", problem)
        return value

    return AfterValidator(check)


def _object_schema(limits: JsonLimits) -> dict[str, Any]:
    names = {"maxLength": limits.key_chars}
    return {"type": "object", "maxProperties": limits.values, "propertyNames": names, "additionalProperties": True}


def _list_schema(limits: JsonLimits) -> dict[str, Any]:
    """Documented as strings: generators cannot type a list of arbitrary JSON."""
    return {"type": "array", "maxItems": limits.values, "items": {"type": "string", "maxLength": limits.size}}


def any_json(chars: int, items: int, names: int) -> dict[str, Any]:
    """Any JSON within these limits, without types: generators would make a class for each type of a union."""
    return {"maxLength": chars, "maxItems": items, "maxProperties": names}


JsonObject = Annotated[dict[str, Any], _within(sizes.KEPT), WithJsonSchema(_object_schema(sizes.KEPT))]
"""Metadata, properties, settings: any JSON object."""

JsonList = Annotated[list[Any], _within(sizes.KEPT), WithJsonSchema(_list_schema(sizes.KEPT))]
Payload = Annotated[
    JsonValue,
    _within(sizes.PAYLOAD),
    WithJsonSchema(any_json(sizes.PAYLOAD.size, sizes.PAYLOAD.values, sizes.PAYLOAD.values)),
]
"""Any JSON."""
