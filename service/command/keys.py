"""`loxodon keys`: the API keys of a workspace, over the REST API, which audits every change of them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from service.command.output import AsJson, show_fields, show_json, show_table
from service.command.problems import calling

app = typer.Typer(help="The API keys of the workspace.", no_args_is_help=True)

COLUMNS = ("id", "name", "hint", "state", "rights", "user_id", "agent_id", "run_id", "channels", "last_used_at")
Id = Annotated[str, typer.Argument(help="The key's id, as `loxodon keys list` shows it.")]


@app.command("list")
def list_keys(as_json: AsJson = False) -> None:
    """All keys of the workspace, without their secrets."""
    with calling() as rest:
        rows = rest.get("/v1/api-keys")["results"]
        if as_json:
            show_json(rows)
        else:
            show_table(COLUMNS, [{**row, "state": _state(row)} for row in rows], empty="There are no keys.")


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What it is for.")],
    right: Annotated[
        list[str] | None, typer.Option(help="What it may do; repeatable. Default: read and write.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="The one user whose data it reaches.")] = None,
    agent: Annotated[str | None, typer.Option(help="The one agent whose data it reaches.")] = None,
    run: Annotated[str | None, typer.Option(help="The one run whose data it reaches.")] = None,
    channel: Annotated[list[str] | None, typer.Option(help="A channel that it reaches; repeatable.")] = None,
    expires: Annotated[str | None, typer.Option(help="When it expires, as 2027-01-31T00:00:00Z.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key; its secret is shown this once."""
    wall = {"user_id": user, "agent_id": agent, "run_id": run, "channels": channel or None}
    rights = right or ["memory:read", "memory:write"]
    with calling() as rest:
        _show(rest.post("/v1/api-keys", {"name": name, "rights": rights, "expires_at": expires, **wall}), as_json)


@app.command()
def rotate(
    id: Id,
    overlap: Annotated[int, typer.Option(help="Seconds for which the old secret stays valid.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Give a key a new secret; it is shown this once."""
    with calling() as rest:
        _show(rest.post(f"/v1/api-keys/{id}/rotate", {"overlap_s": overlap}), as_json)


@app.command()
def revoke(id: Id, as_json: AsJson = False) -> None:
    """End a key at once, with the tokens that it minted."""
    with calling() as rest:
        rest.delete(f"/v1/api-keys/{id}")
        _show(rest.get(f"/v1/api-keys/{id}"), as_json)


def _show(key: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(key)
    else:
        show_fields({name: value for name, value in key.items() if value is not None})


def _state(key: dict[str, Any]) -> str:
    if key["revoked_at"]:
        return "revoked"
    return f"until {key['expires_at']}" if key["expires_at"] else "valid"
