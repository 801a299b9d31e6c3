"""Every place of the OpenAPI document where a caller can put a text, with a valid request around it."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import jsonschema_rs

Schema = dict[str, Any]
Step = tuple[str | int, Schema]
KEY = "{}"
"""The step into a free object that takes the text as a key."""

MOST_NESTED = 3
"""How often a schema that holds itself (filters) is entered."""


@dataclass(frozen=True)
class TextPlace:
    """Where a text goes. `steps`: the way into the body, each with the schema of what is there. `beside`: the query
    parameters of the operation."""

    operation: str
    method: str
    path: str
    kind: Literal["body", "query", "path", "header"]
    steps: tuple[Step, ...]
    is_free: bool = True
    body: Schema | None = field(default=None, compare=False, repr=False)
    beside: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        inside = ".".join(str(name) for name, _ in self.steps)
        return f"{self.operation} {self.kind} {inside}"

    @property
    def leaf(self) -> Schema:
        return self.steps[-1][1]


class Document:
    """An OpenAPI document, its references resolved as they are met."""

    def __init__(self, document: Schema) -> None:
        self._document = document

    def places(self) -> Iterator[TextPlace]:
        """All of them, bodies first."""
        for path, methods in self._document["paths"].items():
            for method, operation in methods.items():
                name = operation["operationId"]
                if "401" in operation["responses"]:
                    yield from self._of_operation(name, method, path, operation)

    def _of_operation(self, name: str, method: str, path: str, operation: Schema) -> Iterator[TextPlace]:
        body = self.body(operation)
        beside = frozenset(each["name"] for each in operation.get("parameters", ()) if each["in"] == "query")

        def place(kind: Literal["body", "query", "path", "header"], *steps: Step) -> TextPlace:
            return TextPlace(name, method, path, kind, steps, self._is_free(steps[-1][1]), body, beside)

        if body is not None:
            yield from (place("body", *steps) for steps in self._texts(body, ()))
        for each in operation.get("parameters", ()):
            for schema in self._branches(each["schema"]):
                shape = schema["items"] if schema.get("type") == "array" else schema
                if shape.get("type", "string") == "string":
                    yield place(each["in"], (each["name"], shape))
                    break
        for header in ("X-Session-Id", "X-Request-ID"):
            yield place("header", (header, {"type": "string"}))

    def body(self, operation: Schema) -> Schema | None:
        sent = operation.get("requestBody")
        if sent is None:
            return None
        return next(each for each in self._branches(sent["content"]["application/json"]["schema"]) if "type" in each)

    @staticmethod
    def _is_free(schema: Schema) -> bool:
        return not ({"enum", "const", "pattern"} & schema.keys()) and schema.get("format") not in ("uuid", "date-time")

    def _branches(self, schema: Schema) -> Iterator[Schema]:
        if "$ref" in schema:
            yield from self._branches(self._document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]])
        elif "anyOf" in schema and "properties" not in schema:
            for each in schema["anyOf"]:
                shown = {"examples": schema["examples"]} if "examples" in schema else {}
                yield from self._branches({**each, **shown})
        else:
            yield schema

    def _texts(self, schema: Schema, steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
        for each in self._branches(schema):
            if sum(inside is each for _, inside in steps) >= MOST_NESTED - 1:
                continue
            kind = each.get("type")
            if kind == "string":
                yield _replaced(steps, each)
            elif kind == "array":
                yield from self._texts(each["items"], (*_replaced(steps, each), (0, each["items"])))
            elif each.get("properties"):
                for name, inside in each["properties"].items():
                    yield from self._texts(inside, (*_replaced(steps, each), (name, inside)))
            elif kind is None and each.get("maxProperties") == 0:  # no object
                yield _replaced(steps, each)
            elif kind in ("object", None):
                here = _replaced(steps, each)
                yield (*here, (KEY, {}))
                yield (*here, ("text", {}))
                yield (*here, ("deep", {}), (0, {}), (KEY, {}))

    # -- requests ------------------------------------------------------------------------------------------------------

    def requests(self, place: TextPlace, text: str, more: Iterable[Schema] = ()) -> list[Any]:
        """Valid bodies with the text at the place: one for each of the document's examples, and `more`, that takes it,
        or the smallest."""
        assert place.body is not None
        found: list[Any] = []
        for base in (*place.body.get("examples", []), *more, self._sample(place.body)):
            if not found or base in more:
                body = copy.deepcopy(base)
                self._put(body, place.steps, text, place.body)
                found += [body] if self.takes(place.body, body) else []
        return found

    def takes(self, schema: Schema, value: Any) -> bool:
        return jsonschema_rs.is_valid({**schema, "components": self._document["components"]}, value)

    def _put(self, whole: Any, steps: tuple[Step, ...], text: str, around: Schema) -> None:
        inside = whole
        for (name, schema), (following, _) in itertools.pairwise(steps):
            _make_room(inside, name, around)
            around = schema
            kind = list if isinstance(following, int) else dict
            if isinstance(inside, list):
                inside[:] = inside[:1] or [None]
            elif name not in inside:
                inside[name] = None
            if not isinstance(inside[name], kind):
                made = self._sample(schema) if schema else None
                inside[name] = made if isinstance(made, kind) else kind()
            inside = inside[name]
        last = steps[-1][0]
        _make_room(inside, last, around)
        if last == KEY:
            inside[text] = "x"
        elif isinstance(inside, list):
            inside[:] = [text]
        else:
            inside[last] = text

    def _sample(self, schema: Schema) -> Any:
        each = next(self._branches(schema))
        if each.get("examples"):
            return copy.deepcopy(each["examples"][0])
        kind = each.get("type")
        if kind == "object":
            properties = each.get("properties", {})
            return {name: self._sample(properties[name]) for name in each.get("required", ())}
        if kind == "array":
            return [self._sample(each["items"])] if each.get("minItems") else []
        plain: dict[str | None, Any] = {"string": "word", "integer": 1, "number": 0.5, "boolean": True, None: {}}
        return each["enum"][0] if "enum" in each else plain.get(kind)


EXCLUDING = (frozenset({"content", "messages"}), frozenset({"query", "ids"}), frozenset({"field", "AND", "OR", "NOT"}))
"""Fields of which a request has one: the document says so in words only."""


def _make_room(inside: Any, name: str | int, schema: Schema) -> None:
    """Takes out what excludes the field."""
    fields = schema.get("properties", {}).keys()
    for excluding in EXCLUDING:
        if name in excluding and excluding <= fields and name not in inside:
            for each in excluding:
                inside.pop(each, None)


def _replaced(steps: tuple[Step, ...], schema: Schema) -> tuple[Step, ...]:
    """The way with the branch that was taken at its end."""
    return (*steps[:-1], (steps[-1][0], schema)) if steps else steps
