"""`loxodon add`, `search`, `recall`, `list` and `users`: memories at a glance, over the REST API."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from service.command.output import AsJson, show_json, show_table
from service.command.problems import calling

Text = Annotated[str, typer.Argument(help="What to remember.")]
Question = Annotated[str, typer.Argument(help="In plain words.")]
User = Annotated[str | None, typer.Option("--user", help="Of this user; a user, an agent or a run is needed.")]
Agent = Annotated[str | None, typer.Option("--agent", help="Of this agent.")]
Run = Annotated[str | None, typer.Option("--run", help="Of this run.")]
Limit = Annotated[int, typer.Option(min=1, help="At most this many.")]
Tokens = Annotated[int, typer.Option("--max-tokens", min=1, help="How long the answer may be.")]

COLUMNS = ("memory", "type", "when", "id")


def add(text: Text, user: User = None, agent: Agent = None, run: Run = None, as_json: AsJson = False) -> None:
    """Store a text as a memory."""
    with calling() as rest:
        made = rest.post("/v1/memories", {"content": text, **_scope(user, agent, run)})
        _show(made, made["results"], ("event", "memory", "type", "id"), as_json)


def search(
    query: Question, user: User = None, agent: Agent = None, run: Run = None, limit: Limit = 10, as_json: AsJson = False
) -> None:
    """Find memories, the best first."""
    with calling() as rest:
        answer = rest.post("/v1/memories/search", {"query": query, "limit": limit, **_scope(user, agent, run)})
        _show(answer, answer["results"], ("score", *COLUMNS), as_json)


def recall(
    query: Question,
    user: User = None,
    agent: Agent = None,
    run: Run = None,
    tokens: Tokens = 2_000,
    as_json: AsJson = False,
) -> None:
    """Print what an agent would get for its prompt: facts, turns, goals and what is known of the user."""
    body = {"query": query, "max_tokens": tokens, "format": "json" if as_json else "markdown"}
    with calling() as rest:
        answer = rest.post("/v1/recall", body | _scope(user, agent, run))
        show_json(answer) if as_json else print(answer["markdown"].strip() or "Nothing was found.")


def list_memories(
    user: User = None, agent: Agent = None, run: Run = None, limit: Limit = 20, as_json: AsJson = False
) -> None:
    """List memories, the newest first."""
    with calling() as rest:
        rows = list(rest.pages("/v1/memories", _scope(user, agent, run), limit=limit))
        _show(rows, rows, COLUMNS, as_json)


def users(limit: Limit = 100, as_json: AsJson = False) -> None:
    """List the users that have memories, with how many."""
    with calling() as rest:
        rows = list(rest.pages("/v1/scopes", {"type": "user"}, limit=limit))
        _show(rows, rows, ("id", "memories", "last_used"), as_json)


def _scope(user: str | None, agent: str | None, run: str | None) -> dict[str, str | None]:
    return {"user_id": user, "agent_id": agent, "run_id": run}


def _show(answer: Any, rows: list[dict[str, Any]], columns: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        show_json(answer)
        return
    dated = [{**row, "when": (row.get("t_valid") or row.get("created_at") or "")[:10]} for row in rows]
    show_table(columns, dated, empty="Nothing was found.")
