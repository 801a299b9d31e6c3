"""Requests of tools and resources to the REST API, and the answers.

A process with the routes calls them (mcp/routes/mcp.py), the command `mcp` uses HTTP (command/rest.py). Either way
rights, walls, limits, audit and error messages are those of the routes.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from service.domain.errors import InvalidInput

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RestRequest:
    """One request. `path` is already quoted; a list in `query` is sent once for each of its members."""

    method: str
    path: str
    query: Values = field(default_factory=dict)
    body: Values | None = None

    @property
    def query_string(self) -> str:
        return urlencode([pair for name, value in self.query.items() for pair in _pairs(name, value)])


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """The status, and the body parsed as JSON; for an error, the problem."""

    status: int
    body: Any

    @property
    def is_error(self) -> bool:
        return self.status >= 400

    @property
    def detail(self) -> str:
        """The error message."""
        return self.problem.get("detail") or f"The service answered {self.status}."

    @property
    def problem(self) -> dict[str, Any]:
        return self.body if isinstance(self.body, dict) else {}


Ask = Callable[[RestRequest], Awaitable[RestAnswer]]


FixedIds = Mapping[str, str]
"""Ids that a connection fixes, by name, so that an agent neither repeats nor changes them: by headers, by the
environment of the command, or by the wall of the key."""


def in_path(name: str, value: object) -> str:
    """A value as one segment of a path; raises InvalidInput for an empty value, one that HTTP clients treat as a step,
    or one with NUL."""
    if not isinstance(value, str) or value in ("", ".", "..") or "\x00" in value:
        raise InvalidInput(f"{name}: must be a name.", field=name)
    return quote(value, safe="")


def _pairs(name: str, value: Any) -> Iterator[tuple[str, str]]:
    for each in value if isinstance(value, list) else [value]:
        yield name, each if isinstance(each, str) else json.dumps(each)
