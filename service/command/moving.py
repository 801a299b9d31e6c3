"""`loxodon export`, `import`, `backup` and `restore`. docs/moving.md"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from service.command.terminal import AsJson, calling, exit_with_message, progress, settings, show_fields, show_json

Workspace = Annotated[str | None, typer.Option("--workspace", help="Its id or name; left out: the only one there is.")]


def export(
    folder: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")],
    workspace: Workspace = None,
    vectors: Annotated[bool, typer.Option("--vectors/--no-vectors", help="Without them they are made again.")] = True,
    as_json: AsJson = False,
) -> None:
    """Write a whole workspace into a folder, as of one moment, while the service runs."""
    import asyncio

    from service.command import workspace_copy
    from service.launch.postgres import login_url
    from service.postgres.roles import WORKER

    with exit_with_message(), login_url(settings(), WORKER) as url, progress("export") as advance:
        made = asyncio.run(workspace_copy.export(url, folder, workspace, with_vectors=vectors, advance=advance))
        rows = {table.name: table.rows for table in made.tables if table.rows}
        summary: dict[str, Any] = {"folder": str(folder), "workspace": made.workspace["id"], "rows": made.rows}
    show_json({**summary, "tables": rows}) if as_json else show_fields(summary)


def import_(
    path: Annotated[Path, typer.Argument(help="The folder of an export; with --from a file or folder of its dump.")],
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", help="An empty one, by id or name; left out: the export's own, made if missing."),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="Another service: mem0 or automem; over the REST API.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="With --from: the user of records that name nobody.")] = None,
    agent: Annotated[str | None, typer.Option(help="With --from: the agent of records that name nobody.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fill a workspace with an export, or with the dump of another memory service."""
    if source is not None:
        if workspace is not None:
            raise typer.BadParameter("--workspace: with --from the API key says which workspace it is")
        _bring(source, path, user, agent, as_json)
        return

    import asyncio

    from service.command import workspace_copy
    from service.launch.postgres import login_url
    from service.postgres.roles import WORKER

    def announce(made: UUID, key: str) -> None:
        print(f"Made workspace {made}; its first key, shown this once: {key}", file=sys.stderr, flush=True)

    with exit_with_message(), login_url(settings(), WORKER) as url, progress("import") as advance:
        done = asyncio.run(workspace_copy.import_export(url, path, workspace, advance=advance, announce=announce))
        summary: dict[str, Any] = {
            "workspace": str(done.workspace_id),
            "rows": done.rows,
            "vectors": "came along" if done.with_vectors else "are made by the worker",
        }
    if as_json:
        show_json({**summary, "vectors": done.with_vectors, "api_key": done.new_key})
    else:
        show_fields(summary)


def _bring(source: str, path: Path, user: str | None, agent: str | None, as_json: bool) -> None:
    from service.command import dumps

    owner = {name: value for name, value in (("user_id", user), ("agent_id", agent)) if value}
    with calling() as rest, progress(f"from {source}") as advance:
        done = dumps.bring(rest, source, path, owner, advance=advance)
    lost, examples, refused = done.report.lost, done.report.examples, done.report.refused
    if as_json:
        omitted = [{"reason": why, "count": count, "ids": examples.get(why, [])} for why, count in lost.items()]
        show_json({"stored": done.stored, "not_carried": omitted, "refused": refused})
    else:
        show_fields(dict(done.stored) or {"memories": 0})
        if lost:
            print("\nNot imported, or changed on the way:")
        for why, count in lost.most_common():
            print(f"  {count:>6}  {why}" + (f"  ({', '.join(examples[why])})" if why in examples else ""))
    for sentence in refused:
        print(f"loxodon: {sentence}", file=sys.stderr)
    if refused:
        raise typer.Exit(1)


def backup(
    folder: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")], as_json: AsJson = False
) -> None:
    """Copy the embedded database, all workspaces and keys, while the service runs."""
    from service.launch import backup

    began = time.monotonic()
    with exit_with_message(), progress("backup") as advance:
        size = backup.backup(settings(), folder.absolute(), advance)
    summary = {"folder": str(folder), "bytes": size, "took_s": round(time.monotonic() - began, 1)}
    show_json(summary) if as_json else show_fields(summary)


def restore(folder: Annotated[Path, typer.Argument(help="The folder of a backup.")], as_json: AsJson = False) -> None:
    """Make the embedded database in LOXODON_DATA_DIR, where there is none, from a backup."""
    from service.launch import backup

    began = time.monotonic()
    with exit_with_message(), progress("restore") as advance:
        backup.restore(settings(), folder.absolute(), advance)
        target = settings().server.data_dir
    summary = {"data_dir": str(target), "took_s": round(time.monotonic() - began, 1)}
    show_json(summary) if as_json else show_fields(summary)
