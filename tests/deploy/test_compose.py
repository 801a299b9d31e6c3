"""compose.yaml passes on every variable of docs/configuration.md, and each container gets only its own login, also with
compose.citus.yaml on top.

After a change there: `WRITE_COMPOSE=1 .venv/bin/python -m pytest -q tests/deploy/test_compose.py`.
"""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.deploy.kubernetes import ROOT

COMPOSE, ON_CITUS = ROOT / "compose.yaml", ROOT / "compose.citus.yaml"
CITUS = ROOT / "deploy" / "citus"
NODES = ("db", "node-1", "node-2")
PASSED_ON = re.compile(r"(?<=  environment: &environment\n)(?:    [A-Z_]+:\n)*")
OURS = {
    *("LOXODON_HOST", "LOXODON_PORT", "LOXODON_DATA_DIR", "LOXODON_WORKER_PORT"),
    *("LOXODON_DATABASE_URL", "DATABASE_URL", "LOXODON_LISTEN_DATABASE_URL", "LOXODON_READ_DATABASE_URL"),
    *("LOXODON_WORKER_DATABASE_URL", "LOXODON_OWNER_DATABASE_URL"),
    *("LOXODON_BOOTSTRAP_API_KEY", "AUTOMEM_API_TOKEN"),
    *("LOXODON_URL", "LOXODON_API_KEY"),
}
"""What compose.yaml itself decides; the last two are of the command, which asks a service from outside."""
SET_BY_OPERATOR = {"api": ["LOXODON_READ_DATABASE_URL"], "worker": ["LOXODON_LISTEN_DATABASE_URL"], "migrate": []}
"""Further URLs of a container, passed on where they are set."""


def documented() -> list[str]:
    """Every name in the first column of the tables, in their order."""
    lines = (ROOT / "docs" / "configuration.md").read_text().splitlines()
    cells = [line.split("|")[1] for line in lines if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", cell)]


def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


def services_on_citus() -> dict[str, Any]:
    """Those of both files, put together as compose does it, volumes aside."""
    found = services()
    for name, added in yaml.safe_load(ON_CITUS.read_text())["services"].items():
        base = found.get(name, {})
        awaited = base.get("depends_on", {}) | added.get("depends_on", {})
        found[name] = base | added | {"depends_on": awaited}
    return found


both = pytest.mark.parametrize("found", [services(), services_on_citus()], ids=["one Postgres", "Citus"])


def test_every_documented_variable_is_passed_on() -> None:
    wanted = [name for name in documented() if name not in OURS]
    assert len(wanted) > 60
    if os.environ.get("WRITE_COMPOSE"):
        lines = "".join(f"    {name}:\n" for name in wanted)
        COMPOSE.write_text(PASSED_ON.sub(lines, COMPOSE.read_text(), count=1))
    for name in ("api", "worker", "migrate"):
        given = services()[name]["environment"]
        missing = [variable for variable in wanted if given.get(variable, "") is not None]
        assert not missing, f"{name} lacks them; WRITE_COMPOSE=1 adds them"
        assert given.keys() - set(wanted) <= OURS


@both
def test_each_container_has_its_own_login(found: dict[str, Any]) -> None:
    logins = {"api": "DATABASE_URL", "worker": "LOXODON_WORKER_DATABASE_URL", "migrate": "LOXODON_OWNER_DATABASE_URL"}
    for name, wanted in logins.items():
        given = found[name]["environment"]
        urls = {each for each in given if each.endswith("DATABASE_URL")}
        assert urls == {wanted, *SET_BY_OPERATOR[name]}
        assert all(given[each] is None for each in SET_BY_OPERATOR[name])
        assert found[name]["build"]["target"] == "service"
    assert [name for name in logins if "LOXODON_BOOTSTRAP_API_KEY" in found[name]["environment"]] == ["migrate"]


@both
def test_containers_have_no_rights_that_they_do_not_need(found: dict[str, Any]) -> None:
    for name, each in found.items():
        assert each["read_only"], name
        assert each["cap_drop"] == ["ALL"], name
        assert each["security_opt"] == ["no-new-privileges:true"], name
        assert "/tmp" in each["tmpfs"], name


@both
def test_images_are_built_here_or_pinned(found: dict[str, Any]) -> None:
    pulled = [each["image"] for each in found.values() if "build" not in each]
    bases = re.findall(r"^ARG \w+_IMAGE=(.+)$", (CITUS / "Dockerfile").read_text(), re.M)
    assert all(re.fullmatch(r"[\w./-]+:[\w.-]*\d[\w.-]*", image) for image in pulled + bases)
    assert bases


def test_nodes_have_the_settings_that_the_docs_ask_for() -> None:
    wanted = re.findall(r"^([\w.]+) = '?([\w]+)'?$", (ROOT / "docs" / "citus.md").read_text(), re.M)
    assert len(wanted) == 3
    for name in NODES:
        assert {f"{setting}={value}" for setting, value in wanted} <= set(services_on_citus()[name]["command"])


def test_nodes_trust_each_other_and_nobody_else() -> None:
    network = yaml.safe_load(ON_CITUS.read_text())["networks"]["nodes"]
    assert network["internal"]
    there = {name: each["networks"]["nodes"] for name, each in services_on_citus().items() if "networks" in each}
    assert tuple(there) == NODES
    trusted = re.findall(r"^host +all all (\S+)/\d+ +trust$", (CITUS / "pg_hba.conf").read_text(), re.M)
    assert set(trusted) == {"127.0.0.1", "::1"} | {each["ipv4_address"] for each in there.values()}


def test_every_node_joins() -> None:
    joined = re.findall(r"SELECT citus_\w+\('([\w-]+)', 5432\);", (CITUS / "join.sh").read_text())
    assert joined == [*services_on_citus()["db"]["networks"]["nodes"]["aliases"], *NODES[1:]]
    assert services_on_citus()["join"]["depends_on"].keys() == set(NODES)
    assert "join" in services_on_citus()["migrate"]["depends_on"]
