"""Commands that show and change what the service holds: memories, jobs, workspaces, over the REST API.

The list of workspaces is read from the database, as the worker: no key sees any workspace but its own.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from service.command.terminal import AsJson, calling, exit_with_message, settings, show_fields, show_json, show_table

Text = Annotated[str, typer.Argument(help="What to remember.")]
Question = Annotated[str, typer.Argument(help="In plain words.")]
User = Annotated[str | None, typer.Option("--user", help="Of this user; a user, an agent or a run is needed.")]
Agent = Annotated[str | None, typer.Option("--agent", help="Of this agent.")]
Run = Annotated[str | None, typer.Option("--run", help="Of this run.")]
Limit = Annotated[int, typer.Option(min=1, help="At most this many.")]
Tokens = Annotated[int, typer.Option("--max-tokens", min=1, help="How long the answer may be.")]

MEMORY_COLUMNS = ("memory", "type", "when", "id")


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
        _show(answer, answer["results"], ("score", *MEMORY_COLUMNS), as_json)


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
        _show(rows, rows, MEMORY_COLUMNS, as_json)


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


jobs = typer.Typer(help="What the worker does, and what waits for it.", no_args_is_help=True)

JOB_COLUMNS = ("id", "name", "state", "attempts", "age_s", "progress", "reason")

Id = Annotated[str, typer.Argument(help="The job's id, as `loxodon jobs list` shows it.")]
Name = Annotated[str, typer.Argument(help="What the job does, such as relevance or reembed.")]
OfSystem = Annotated[bool, typer.Option("--system", help="Jobs of the whole service instead of the workspace's.")]


@jobs.command("list")
def list_jobs(
    state: Annotated[list[str] | None, typer.Option(help="queued, running, failed, dead, done or cancelled.")] = None,
    name: Annotated[str | None, typer.Option(help="Only jobs with this name.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of jobs, newest first.")] = 100,
    system: OfSystem = False,
    as_json: AsJson = False,
) -> None:
    """Jobs that wait, run or are dead."""
    with calling() as rest:
        params = {"state": state or None, "name": name, "system": system}
        found = list(rest.pages("/v1/jobs", params, limit=limit))
        rows = [{**job, "progress": _format_progress(job["progress"])} for job in found]
        _show(found, rows, JOB_COLUMNS, as_json)


@jobs.command("show")
def show_job(name: Name, system: OfSystem = False, as_json: AsJson = False) -> None:
    """The jobs of one name: how many in which state, when the next run is, and the last runs."""
    with calling() as rest:
        job = rest.get(f"/v1/jobs/{name}", {"system": system})
        if as_json:
            show_json(job)
            return
        states = {count["state"]: count["jobs"] for count in job["states"]}
        show_fields({**{field: job[field] for field in ("name", "interval_s", "next_run")}, **states})
        print()
        empty = "No runs yet." + ("" if system else " Those by the clock are the whole service's: add --system.")
        show_table(("id", "state", "reason", "counts", "error", "started_at"), job["runs"], empty=empty)


@jobs.command("run")
def run_job(name: Name, system: OfSystem = False, as_json: AsJson = False) -> None:
    """Run a job now."""
    _steer_job(f"{name}/run", {"system": system}, as_json)


@jobs.command("retry")
def retry_jobs(
    id: Annotated[str | None, typer.Argument(help="The job's id, as `loxodon jobs list` shows it.")] = None,
    dead: Annotated[bool, typer.Option("--dead", help="All that are dead instead of one.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="All that wait for another attempt.")] = False,
    name: Annotated[str | None, typer.Option(help="Of all only those that do this.")] = None,
    system: OfSystem = False,
    as_json: AsJson = False,
) -> None:
    """Try a job again that is dead, cancelled, or waits; or many."""
    states = [state for state, is_wanted in (("dead", dead), ("failed", failed)) if is_wanted]
    if bool(id) == bool(states):
        raise typer.BadParameter("name one job by its id, or many by --dead or --failed")
    params = {"state": states or None, "name": name, "system": system}
    _steer_job(f"{id}/retry" if id else "retry", params, as_json)


@jobs.command("cancel")
def cancel_job(id: Id, system: OfSystem = False, as_json: AsJson = False) -> None:
    """Stop a job, or discard a dead one."""
    _steer_job(f"{id}/cancel", {"system": system}, as_json)


def _steer_job(path: str, params: dict[str, Any], as_json: bool) -> None:
    with calling() as rest:
        job = rest.post(f"/v1/jobs/{path}", params=params)
        show_json(job) if as_json else show_fields({**job, "progress": _format_progress(job.get("progress"))})


def _format_progress(progress: dict[str, Any] | None) -> str | None:
    return f"{progress['done']} of {progress['total']}" if progress else None


workspaces = typer.Typer(help="Workspaces, the walls between tenants.", no_args_is_help=True)


@workspaces.command("list")
def show_workspaces(as_json: AsJson = False) -> None:
    """All workspaces of the database, with how much each holds."""
    import asyncio

    from service.command.workspace_copy import list_workspaces
    from service.launch.postgres import login_url
    from service.postgres.roles import WORKER

    with exit_with_message(), login_url(settings(), WORKER) as url:
        rows = asyncio.run(list_workspaces(url))
        if as_json:
            show_json(rows)
        else:
            show_table(
                ("id", "name", "memories", "conversations", "created_at"), rows, empty="There are no workspaces."
            )


@workspaces.command("create")
def create_workspace(name: Annotated[str, typer.Argument(help="For people.")], as_json: AsJson = False) -> None:
    """Make a workspace and its first key, which is shown this once (right `operator`)."""
    with calling() as rest:
        made = rest.post("/v1/workspaces", {"name": name})
        show_json(made) if as_json else show_fields(made)
