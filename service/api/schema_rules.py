"""Rules between the fields of a request, as JSON Schema says them: the same that the models check.

Not that a field excludes its synonym (limit and top_k): with as many alternatives as that takes, generators of requests
give up. Descriptions say it.
"""

from __future__ import annotations

from collections.abc import Collection

from pydantic import JsonValue
from pydantic.config import JsonDict

NULL: JsonDict = {"type": "null"}


def given(name: str) -> JsonDict:
    """The field is there and not null."""
    return {"required": [name], "properties": {name: {"not": NULL}}}


def refuse_null(schema: JsonDict, *, but: Collection[str] = ()) -> None:
    """Takes null from the types of all fields that are not in `but`: leaving a field out is not the same."""
    fields = schema["properties"]
    assert isinstance(fields, dict)
    for name, shape in fields.items():
        if name not in but and isinstance(shape, dict) and isinstance(shape.get("anyOf"), list):
            kinds = [each for each in shape.pop("anyOf") if each != NULL]  # type: ignore[union-attr]
            shape.update(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})  # type: ignore[arg-type]


SCOPE_SCHEMA: list[JsonValue] = [given("user_id"), given("agent_id"), given("run_id")]
NOT_SHARED: JsonDict = {"shared": {"const": False}}
SHARED: JsonDict = {"shared": {"const": True}, "user_id": NULL, "agent_id": NULL, "run_id": NULL}
READABLE_SCHEMA: list[JsonValue] = [
    {"required": ["user_id"], "properties": {"user_id": {"not": NULL}, **NOT_SHARED}},
    {"required": ["agent_id"], "properties": {"agent_id": {"not": NULL}, **NOT_SHARED}},
    {"required": ["run_id"], "properties": {"run_id": {"not": NULL}, **NOT_SHARED}},
    {"required": ["shared"], "properties": SHARED},
]
"""What is shared belongs to nobody."""
