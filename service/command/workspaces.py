"""`loxodon workspaces`. The list is read from the database, as the worker: no key sees any workspace but its own."""

from __future__ import annotations

from typing import Annotated

import typer

from service.command.output import AsJson, show_fields, show_json, show_table
from service.command.problems import calling, exit_with_message, settings

app = typer.Typer(help="Workspaces, the walls between tenants.", no_args_is_help=True)


@app.command("list")
def list_workspaces(as_json: AsJson = False) -> None:
    """All workspaces of the database, with how much each holds."""
    import asyncio

    from service.command.workspace_access import listing
    from service.launch.postgres import login_url
    from service.postgres.roles import WORKER

    with exit_with_message(), login_url(settings(), WORKER) as url:
        rows = asyncio.run(listing(url))
        if as_json:
            show_json(rows)
        else:
            show_table(
                ("id", "name", "memories", "conversations", "created_at"), rows, empty="There are no workspaces."
            )


@app.command()
def create(name: Annotated[str, typer.Argument(help="For people.")], as_json: AsJson = False) -> None:
    """Make a workspace and its first key, which is shown this once (right `operator`)."""
    with calling() as rest:
        made = rest.post("/v1/workspaces", {"name": name})
        show_json(made) if as_json else show_fields(made)
