"""Commands of `loxodon`.

`run` is for one machine and does everything. `api`, `worker` and `migrate` are its parts, for containers: they expect
DATABASE_URL. Imports are inside the commands: the supervisor must start at once and stay small.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from typing import Annotated

import typer

from service import __version__
from service.command import commands, moving
from service.command.terminal import exit_with_message, settings, warn
from service.launch import parent_death

app = typer.Typer(
    name="loxodon",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

BROKEN, CANNOT_LOOK = 1, 3  # of the doctor


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"loxodon {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True)] = False,
) -> None:
    """A memory service for AI agents on one Postgres database with pgvector."""


@app.command()
def run(
    parent: Annotated[int, typer.Option(hidden=True, help="Stop when this process dies: make, killed with -9.")] = 0,
) -> None:
    """Start everything on this machine: Postgres, migrations, a first key, API and worker."""
    from service.launch import run

    if parent:
        parent_death.arm(signal.SIGTERM, parent)
    try:
        with exit_with_message():
            raise typer.Exit(run.run(warn(settings(serving=True))))
    except typer.Exit as ended:
        if parent and ended.exit_code:
            os.kill(os.getppid(), signal.SIGPIPE)  # so that make ends without printing an error after ours
        raise


@app.command()
def api(
    fd: Annotated[int | None, typer.Option(hidden=True, help="A listening socket to take over.")] = None,
    gate: Annotated[int | None, typer.Option(hidden=True, help="A pipe to wait at.")] = None,
) -> None:
    """Serve the REST API on LOXODON_HOST and LOXODON_PORT."""
    _without_rich()
    from service.launch.processes import serve

    with exit_with_message():
        chosen = settings(serving=True)
        if gate is None:  # else the supervisor has
            warn(chosen)
        raise typer.Exit(serve(chosen, fd=fd, gate=gate))


@app.command()
def worker(
    nice: Annotated[int, typer.Option(min=0, max=19, help="Lower priority when the processors are busy (nice).")] = 0,
) -> None:
    """Run the jobs: enrichment, decay, partitions."""
    _without_rich()
    from service.launch.processes import work

    with exit_with_message():
        raise typer.Exit(work(settings(serving=True), nice=nice))


@app.command()
def migrate() -> None:
    """Bring the database to the newest revision; ensure LOXODON_BOOTSTRAP_API_KEY when it is set."""
    from service.launch.database import migrate_database

    with exit_with_message():
        migrate_database(settings())


@app.command("wait-for-schema")
def wait(
    worker: Annotated[bool, typer.Option("--worker", help="Wait as the worker, with its login.")] = False,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds; then exit code 1.")] = 600,
) -> None:
    """Wait until the API, or the worker, could start: the database answers and is migrated."""
    _without_rich()
    from service.launch.database import wait_for_schema
    from service.postgres.roles import APP, WORKER

    with exit_with_message():
        wait_for_schema(settings(), role=WORKER if worker else APP, timeout_s=timeout)


@app.command()
def mcp(
    user_id: Annotated[str | None, typer.Option(envvar="LOXODON_MCP_USER_ID", help="The user of all tools.")] = None,
    agent_id: Annotated[str | None, typer.Option(envvar="LOXODON_MCP_AGENT_ID", help="Their agent.")] = None,
    run_id: Annotated[str | None, typer.Option(envvar="LOXODON_MCP_RUN_ID", help="Their run.")] = None,
    channel: Annotated[str | None, typer.Option(envvar="LOXODON_MCP_CHANNEL", help="Their channel.")] = None,
) -> None:
    """Serve the Model Context Protocol on standard input and output, for the service at LOXODON_URL."""
    from service.command.rest import serve_mcp

    with exit_with_message():
        serve_mcp(_fixed_ids(user_id=user_id, agent_id=agent_id, run_id=run_id, channel=channel))


def _fixed_ids(**options: str | None) -> dict[str, str]:
    """The ids that options or environment name; raises BadParameter for an empty one, which would fix nothing."""
    fixed = {}
    for name, option in options.items():
        given = os.environ.get(f"LOXODON_MCP_{name.upper()}") if option is None else option
        if given is not None and not given.strip():
            raise typer.BadParameter(f"{name}: is empty, so the tools would take any; leave it out if they may.")
        if given is not None:
            fixed[name] = given
    return fixed


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
    examples: Annotated[int, typer.Option(min=0, max=1_000, help="Rows to list for each broken check.")] = 5,
) -> None:
    """Check that the database is consistent; exit code 1 if something is broken, 3 if it cannot be checked."""
    _without_rich()
    from service.launch import database
    from service.postgres.doctor import is_whole

    with exit_with_message(CANNOT_LOOK):
        results = database.examine_database(settings(), examples=examples)
    print(database.format_json(results) if as_json else database.format_table(results))
    if not is_whole(results):
        raise typer.Exit(BROKEN)


@app.command()
def reembed(
    rollback: Annotated[bool, typer.Option("--rollback", help="Go back to the previous vectors.")] = False,
    drop_old: Annotated[bool, typer.Option("--drop-old", help="Delete the vectors that are not in use.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Compute all vectors again with the embedder in use.")] = False,
) -> None:
    """Change over to the embedder that the settings name: its vectors are made by the worker while searches go on."""
    from service.launch import database

    if rollback + drop_old + again > 1:
        raise typer.BadParameter("--rollback, --drop-old and --again exclude each other")
    with exit_with_message():
        chosen = settings()
        if rollback:
            print(database.roll_back_reembedding(chosen))
        elif drop_old:
            print(database.drop_old_vectors(chosen))
        else:
            print(database.begin_reembedding(chosen, again=again))


@app.command("bootstrap-sql")
def bootstrap_sql(
    passwords: Annotated[
        str,
        typer.Option(
            metavar="HOST/DATABASE", help="Give the logins new passwords; their URLs there go to standard error."
        ),
    ] = "",
) -> None:
    """Print the SQL that an administrator runs once in your own Postgres, before the first start."""
    from service.postgres import roles

    if passwords and not re.fullmatch(r"[^\s/@]*/[^\s/?]+(\?\S*)?", passwords):
        raise typer.BadParameter("--passwords: must be HOST/DATABASE, such as db.example/memories")
    made = roles.new_passwords() if passwords else {}
    print(roles.bootstrap_sql(made))
    for role, login in roles.LOGINS.items() if passwords else ():
        print(f"{roles.URL_VARIABLES[role]}=postgresql://{login}:{made[login]}@{passwords}", file=sys.stderr)


app.add_typer(commands.workspaces, name="workspaces")
app.add_typer(commands.jobs, name="jobs")
for command in (commands.add, commands.search, commands.recall, commands.users):
    app.command()(command)
app.command("list")(commands.list_memories)
app.command("export")(moving.export)
app.command("import")(moving.import_)
app.command()(moving.backup)
app.command()(moving.restore)


def _without_rich() -> None:
    """Lets structlog find no such library: it would load 4 MB for tracebacks in colour, and ours are JSON."""
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
