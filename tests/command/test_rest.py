"""Commands over the REST API, against a real server; and the page that names every command."""

from __future__ import annotations

import json
import re
from pathlib import Path

from typer.main import get_command

from service.command import cli
from tests.command.conftest import Run

PAGE = Path(__file__).parents[2] / "docs" / "command.md"


async def test_workspaces_and_jobs(run: Run) -> None:
    assert "api key" in (await run("workspaces", "create", "acme")).stdout

    assert (await run("jobs", "list")).stdout == "Nothing was found.\n"
    queued = json.loads((await run("jobs", "run", "relevance", "--json")).stdout)
    assert [each["id"] for each in json.loads((await run("jobs", "list", "--json")).stdout)] == [queued["id"]]
    assert "queued" in (await run("jobs", "show", "relevance")).stdout
    cancelled = await run("jobs", "cancel", queued["id"], "--json")
    assert json.loads(cancelled.stdout)["state"] == "cancelled"
    assert json.loads((await run("jobs", "retry", queued["id"], "--json")).stdout)["state"] == "queued"
    await run("jobs", "cancel", queued["id"])
    assert json.loads((await run("jobs", "retry", "--dead", "--name", "relevance", "--json")).stdout) == {"retried": 0}
    assert (await run("jobs", "retry")).exit_code == 2
    assert (await run("jobs", "retry", queued["id"], "--dead")).exit_code == 2
    assert "add --system" in (await run("jobs", "show", "decay")).stdout


async def test_an_empty_id_of_a_connection_is_refused(run: Run) -> None:
    """Else the tools would take any: it is what an unset variable gives in the configuration of a client."""
    assert (await run("mcp", "--user-id", "")).exit_code == 2
    for name in ("USER_ID", "AGENT_ID", "RUN_ID", "CHANNEL"):
        done = await run("mcp", **{f"LOXODON_MCP_{name}": " "})
        assert (done.exit_code, f"{name.lower()}: is empty" in done.stderr) == (2, True), done.output
        assert (await run("mcp", **{f"LOXODON_MCP_{name}": ""})).exit_code == 2


async def test_errors_are_sentences(run: Run) -> None:
    for words, env, said in (
        (["jobs", "run", "nothing"], {}, "(invalid_input)"),
        (["jobs", "cancel", "01a206a3-5e2c-70f6-83f7-413baf8bea2e"], {}, "There is no"),
        (["add", "Half \ud83d of a pair", "--user", "ann"], {}, "not valid UTF-8"),
        (["list", "--user", "\udced"], {}, "not valid UTF-8"),
        (["jobs", "list"], {"LOXODON_API_KEY": "lox_wrong"}, "set LOXODON_API_KEY"),
        (["jobs", "list"], {"LOXODON_API_KEY": ""}, "No API key"),
        (["jobs", "list"], {"LOXODON_URL": "http://127.0.0.1:9"}, "No Loxodon answers"),
        (["jobs", "list"], {"LOXODON_API_KEY": "lox_…"}, "characters that no key has"),
        (["jobs", "list"], {"LOXODON_API_KEY": "lox_1\n2"}, "characters that no key has"),
        (["jobs", "list"], {"LOXODON_URL": "http://127.0.0.1:abc"}, "is not the address of a service"),
        (["jobs", "list"], {"LOXODON_URL": "http://127.0.0.1:9/?x=1"}, "is not the address of a service"),
    ):
        done = await run(*words, **env)
        assert (done.exit_code, said in done.stderr) == (1, True), done.output
        assert done.stdout == ""


def test_the_page_has_an_example_of_every_command() -> None:
    page = PAGE.read_text()
    root = get_command(cli.app)
    names = [
        f"{name} {inner}".strip()
        for name, command in root.commands.items()  # type: ignore[attr-defined]
        for inner in getattr(command, "commands", {"": None})
    ]
    assert len(names) > 15
    shown = r"(^ *(\w+=\S+ )*loxodon {0}\b)|(`{0}`)"
    missing = [name for name in names if not re.search(shown.format(name), page, re.MULTILINE)]
    assert not missing


async def test_looking_around(run: Run) -> None:
    assert (await run("users")).stdout == "Nothing was found.\n"
    for said in ("Prefers tea over coffee in the morning", "Works at Acme"):
        added = json.loads((await run("add", said, "--user", "ann", "--json")).stdout)
        assert added["results"][0]["event"] == "ADD"
    assert "Works at Acme" in (await run("list", "--user", "ann")).stdout
    [newest] = json.loads((await run("list", "--user", "ann", "--limit", "1", "--json")).stdout)
    assert newest["memory"] == "Works at Acme"
    assert "ann" in (await run("users")).stdout
    found = (await run("search", "Works at Acme", "--user", "ann")).stdout.splitlines()
    assert found[0].split() == ["score", "memory", "type", "when", "id"]
    assert "Works at Acme" in found[1]
    assert "Works at Acme" in (await run("recall", "Works at Acme", "--user", "ann")).stdout
    assert json.loads((await run("recall", "Works at Acme", "--user", "ann", "--json")).stdout)["facts"]
    assert "Nothing was found." in (await run("search", "tea", "--user", "nobody")).stdout
    nobody = await run("list")
    assert (nobody.exit_code, "user_id" in nobody.stderr) == (1, True)
