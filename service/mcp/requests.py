"""What tools, resources and prompts send to the REST API, and what comes back.

A process that has the routes sends it to them (mcp/routes/mcp.py), the command `mcp` over HTTP (launch/mcp_stdio.py).
Either way rights, walls, limits, audit and the sentences of errors are those of the routes.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import quote, urlencode

from service.domain.errors import InvalidInput

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RestRequest:
    """One request. `path` is quoted already; of `query` a list is sent once for each of its members."""

    method: str
    path: str
    query: Values = field(default_factory=dict)
    body: Values | None = None

    @property
    def query_string(self) -> str:
        return urlencode([pair for name, value in self.query.items() for pair in _pairs(name, value)])


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """Its status, and its body read as JSON; of an error the problem."""

    status: int
    body: Any

    @property
    def is_error(self) -> bool:
        return self.status >= 400

    @property
    def detail(self) -> str:
        """What is wrong, in a sentence."""
        return self.problem.get("detail") or f"The service answered {self.status}."

    @property
    def problem(self) -> dict[str, Any]:
        return self.body if isinstance(self.body, dict) else {}


Ask = Callable[[RestRequest], Awaitable[RestAnswer]]


@dataclass(frozen=True, slots=True)
class FixedIds:
    """What a connection fixes, so that an agent neither repeats it nor chooses another: by headers, by the environment
    of the command, or by the wall of the key."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    channel: str | None = None

    def given(self) -> dict[str, str]:
        """Those that are fixed, by their names."""
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in named.items() if value}


def in_path(name: str, value: object) -> str:
    """A value as one segment of a path; raises InvalidInput for what clients of HTTP take for none, or for a step."""
    if not isinstance(value, str) or value in ("", ".", ".."):
        raise InvalidInput(f"{name}: must be a name.", field=name)
    return quote(value, safe="")


def _pairs(name: str, value: Any) -> Iterator[tuple[str, str]]:
    for each in value if isinstance(value, list) else [value]:
        yield name, each if isinstance(each, str) else json.dumps(each)
