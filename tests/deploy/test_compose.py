"""compose.yaml passes on every variable of docs/configuration.md, and each container gets only its own login.

After a change there: `WRITE_COMPOSE=1 .venv/bin/python -m pytest -q tests/deploy/test_compose.py`.
"""

from __future__ import annotations

import os
import re
from typing import Any

import yaml  # type: ignore[import-untyped]

from tests.deploy.kubernetes import ROOT

COMPOSE = ROOT / "compose.yaml"
PASSED_ON = re.compile(r"(?<=  environment: &environment\n)(?:    [A-Z_]+:\n)*")
OURS = {
    *("LOXODON_HOST", "LOXODON_PORT", "LOXODON_DATA_DIR", "LOXODON_WORKER_PORT"),
    *("LOXODON_DATABASE_URL", "DATABASE_URL", "LOXODON_LISTEN_DATABASE_URL", "LOXODON_READ_DATABASE_URL"),
    *("LOXODON_WORKER_DATABASE_URL", "LOXODON_OWNER_DATABASE_URL"),
    *("LOXODON_BOOTSTRAP_API_KEY", "AUTOMEM_API_TOKEN"),
    *("LOXODON_URL", "LOXODON_API_KEY"),
}
"""What compose.yaml itself decides; the last two are of the command, which asks a service from outside."""


def documented() -> list[str]:
    """Every name in the first column of the tables, in their order."""
    lines = (ROOT / "docs" / "configuration.md").read_text().splitlines()
    cells = [line.split("|")[1] for line in lines if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", cell)]


def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


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


def test_each_container_has_its_own_login() -> None:
    logins = {"api": "DATABASE_URL", "worker": "LOXODON_WORKER_DATABASE_URL", "migrate": "LOXODON_OWNER_DATABASE_URL"}
    for name, wanted in logins.items():
        given = services()[name]["environment"]
        standbys = {"LOXODON_READ_DATABASE_URL"} if name == "api" else set()
        assert {each for each in given if each.endswith("DATABASE_URL")} == {wanted} | standbys
        assert services()[name]["build"]["target"] == "service"
    assert [name for name in logins if "LOXODON_BOOTSTRAP_API_KEY" in services()[name]["environment"]] == ["migrate"]


def test_containers_have_no_rights_that_they_do_not_need() -> None:
    for name, each in services().items():
        assert each["read_only"], name
        assert each["cap_drop"] == ["ALL"], name
        assert each["security_opt"] == ["no-new-privileges:true"], name
        assert "/tmp" in each["tmpfs"], name
