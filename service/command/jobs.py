"""`loxodon jobs`: the jobs of the worker, over the REST API."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from service.command.output import AsJson, show_fields, show_json, show_table
from service.command.problems import calling

app = typer.Typer(help="What the worker does, and what waits for it.", no_args_is_help=True)

COLUMNS = ("id", "name", "state", "attempts", "age_s", "progress", "reason")

Id = Annotated[str, typer.Argument(help="The job's id, as `loxodon jobs list` shows it.")]
Name = Annotated[str, typer.Argument(help="What the job does, such as relevance or reembed.")]
OfSystem = Annotated[bool, typer.Option("--system", help="Jobs of the whole service instead of the workspace's.")]


@app.command("list")
def list_jobs(
    state: Annotated[list[str] | None, typer.Option(help="queued, running, failed, dead, done or cancelled.")] = None,
    name: Annotated[str | None, typer.Option(help="Only jobs with this name.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of jobs, newest first.")] = 100,
    system: OfSystem = False,
    as_json: AsJson = False,
) -> None:
    """Jobs that wait, run or are dead."""
    with calling() as rest:
        wanted = {"state": state or None, "name": name, "system": system}
        listed = list(rest.pages("/v1/jobs", wanted, limit=limit))
        if as_json:
            show_json(listed)
        else:
            rows = [{**each, "progress": _format_progress(each["progress"])} for each in listed]
            show_table(COLUMNS, rows, empty="No job waits, runs or is dead.")


@app.command()
def show(name: Name, system: OfSystem = False, as_json: AsJson = False) -> None:
    """The jobs of one name: how many in which state, when the next run is, and the last runs."""
    with calling() as rest:
        job = rest.get(f"/v1/jobs/{name}", {"system": system})
        if as_json:
            show_json(job)
            return
        states = {each["state"]: each["jobs"] for each in job["states"]}
        show_fields({**{field: job[field] for field in ("name", "interval_s", "next_run")}, **states})
        print()
        empty = "No runs yet." + ("" if system else " Those by the clock are the whole service's: add --system.")
        show_table(("id", "state", "reason", "counts", "error", "started_at"), job["runs"], empty=empty)


@app.command()
def run(name: Name, system: OfSystem = False, as_json: AsJson = False) -> None:
    """Run a job now."""
    _steer(f"{name}/run", {"system": system}, as_json)


@app.command()
def retry(
    id: Annotated[str | None, typer.Argument(help="The job's id, as `loxodon jobs list` shows it.")] = None,
    dead: Annotated[bool, typer.Option("--dead", help="All that are dead instead of one.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="All that wait for another attempt.")] = False,
    name: Annotated[str | None, typer.Option(help="Of all only those that do this.")] = None,
    system: OfSystem = False,
    as_json: AsJson = False,
) -> None:
    """Try a job again that is dead, cancelled, or waits; or many."""
    states = [each for each, wanted in (("dead", dead), ("failed", failed)) if wanted]
    if bool(id) == bool(states):
        raise typer.BadParameter("name one job by its id, or many by --dead or --failed")
    asked = {"state": states or None, "name": name, "system": system}
    _steer(
        f"{id}/retry" if id else "retry", {field: value for field, value in asked.items() if value is not None}, as_json
    )


@app.command()
def cancel(id: Id, system: OfSystem = False, as_json: AsJson = False) -> None:
    """Stop a job, or put a dead one away."""
    _steer(f"{id}/cancel", {"system": system}, as_json)


def _steer(path: str, params: dict[str, Any], as_json: bool) -> None:
    with calling() as rest:
        job = rest.post(f"/v1/jobs/{path}", params=params)
        show_json(job) if as_json else show_fields({**job, "progress": _format_progress(job.get("progress"))})


def _format_progress(done: dict[str, Any] | None) -> str | None:
    return f"{done['done']} of {done['total']}" if done else None
