"""`loxodon add`, `search`, `recall`, `list` and `users`: memories at a glance, over the REST API."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from service.command.output import AsJson, show_json, show_table
from service.command.problems import errors_in_a_sentence

User = Annotated[str | None, typer.Option("--user", help="Of this user; one of user, agent and run is needed.")]
Agent = Annotated[str | None, typer.Option("--agent", help="Of this agent.")]
Run = Annotated[str | None, typer.Option("--run", help="Of this run.")]
Limit = Annotated[int, typer.Option(min=1, help="At most this many.")]
Question = Annotated[str, typer.Argument(help="In plain words.")]

COLUMNS = ("memory", "type", "when", "id")


def add(
    text: Annotated[str, typer.Argument(help="What to remember.")],
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    as_json: AsJson = False,
) -> None:
    """Store a text as a memory."""
    from service.command.rest import api

    with errors_in_a_sentence(), api() as rest:
        found = rest.post("/v1/memories", {"content": text, **_scope(user, agent, run)})
        _show(found, ("event", "memory", "type", "id"), as_json, empty="Nothing was stored.")


def search(
    query: Question, user: User = None, agent: Agent = None, run: Run = None, limit: Limit = 10, as_json: AsJson = False
) -> None:
    """Find memories, the best first."""
    from service.command.rest import api

    with errors_in_a_sentence(), api() as rest:
        found = rest.post("/v1/memories/search", {"query": query, "limit": limit, **_scope(user, agent, run)})
        _show(found, ("score", *COLUMNS), as_json, empty="Nothing was found.")


def recall(
    query: Question,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="How long the answer may be.")] = 2_000,
    as_json: AsJson = False,
) -> None:
    """Print what an agent would get for its prompt: facts, turns, goals and what is known of the user."""
    from service.command.rest import api

    with errors_in_a_sentence(), api() as rest:
        body = {"query": query, "max_tokens": max_tokens, "format": "json" if as_json else "markdown"}
        found = rest.post("/v1/recall", body | _scope(user, agent, run))
        show_json(found) if as_json else print(found["markdown"].strip() or "Nothing was found.")


def list_memories(
    user: User = None, agent: Agent = None, run: Run = None, limit: Limit = 20, as_json: AsJson = False
) -> None:
    """List memories, the newest first."""
    from service.command.rest import api

    with errors_in_a_sentence(), api() as rest:
        found = list(rest.pages("/v1/memories", _scope(user, agent, run), limit=limit))
        _show(found, COLUMNS, as_json, empty="There are no memories.")


def users(limit: Limit = 100, as_json: AsJson = False) -> None:
    """List the users that have memories, with how many."""
    from service.command.rest import api

    with errors_in_a_sentence(), api() as rest:
        found = list(rest.pages("/v1/scopes", {"type": "user"}, limit=limit))
        _show(found, ("id", "memories", "last_used"), as_json, empty="No user has a memory.")


def _scope(user: str | None, agent: str | None, run: str | None) -> dict[str, str]:
    named = {"user_id": user, "agent_id": agent, "run_id": run}
    return {name: value for name, value in named.items() if value is not None}


def _show(answer: Any, columns: tuple[str, ...], as_json: bool, *, empty: str) -> None:
    """The answer as it came, or a row for each of its results."""
    if as_json:
        show_json(answer)
        return
    found = answer if isinstance(answer, list) else answer["results"]
    rows = [{**each, "when": (each.get("t_valid") or each.get("created_at") or "")[:10]} for each in found]
    show_table(columns, rows, empty=empty)
