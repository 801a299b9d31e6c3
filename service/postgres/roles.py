"""Roles and logins of the database, the statements that make them, and the settings of their sessions.

`loxodon_owner` owns the schema and its SECURITY DEFINER functions, `loxodon_app` serves requests under row-level
security, `loxodon_worker` is the app with the few functions that upkeep needs. Each has one login: `loxodon_migrate`,
`loxodon_api`, `loxodon_jobs`. `loxodon_walled` has none: the app becomes it in a transaction of a key that is made for
one user (opening.py). An administrator makes them with bootstrap_sql(), the service itself makes none.
docs/decisions/044-logins.md
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

OWNER, APP, WORKER, WALLED = "loxodon_owner", "loxodon_app", "loxodon_worker", "loxodon_walled"
MIGRATE_LOGIN, API_LOGIN, JOBS_LOGIN = "loxodon_migrate", "loxodon_api", "loxodon_jobs"
LOGINS: Mapping[str, str] = {OWNER: MIGRATE_LOGIN, APP: API_LOGIN, WORKER: JOBS_LOGIN}
"""The login of each role."""

URL_VARIABLES: Mapping[str, str] = {
    OWNER: "LOXODON_OWNER_DATABASE_URL",
    APP: "DATABASE_URL",
    WORKER: "LOXODON_WORKER_DATABASE_URL",
}
"""The environment variable with the URL of each role's login."""

BOOTSTRAP = Path(__file__).parent / "sql" / "bootstrap.sql"

SESSION_SETTINGS = {
    # a generic plan, made after twelve small users, made a big user's search 50 times slower
    "plan_cache_mode": "force_custom_plan",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "random_page_cost": "1.1",  # for SSDs; with the default of 4 the planner sorts instead of reading an index
    "timezone": "UTC",
    "idle_in_transaction_session_timeout": "60s",
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": "400",
    "hnsw.max_scan_tuples": "10000",
}
"""Settings of every session. The logins have them too (bootstrap.sql), for poolers that refuse start-up settings."""


def bootstrap_sql(passwords: Mapping[str, str] = {}) -> str:
    """The statements that an administrator runs once, with passwords for logins (new_passwords). An empty line follows
    each statement and stands within none, as a single-user server wants it."""
    statements = [f"ALTER ROLE {login} PASSWORD '{word}';\n" for login, word in passwords.items()]
    return "\n".join([BOOTSTRAP.read_text(), *statements])


def new_passwords() -> dict[str, str]:
    """A password for each login: 192 random bits."""
    return {login: secrets.token_urlsafe(24) for login in LOGINS.values()}
