"""The key of LOXODON_BOOTSTRAP_API_KEY is made once; what became of it later lasts over starts and migrations."""

from __future__ import annotations

from uuid import UUID

from fastapi import FastAPI

from bench.superuser import login_url
from service.access.statements import keys
from service.access.statements.keys import ensure_admin_key
from service.postgres.engine import Database
from service.postgres.roles import OWNER
from tests.support.application import Tables, client_of


async def test_a_revoked_first_key_does_not_come_back(
    app: FastAPI, owner_url: str, database: Database, tables: Tables
) -> None:
    url, secret = login_url(owner_url, OWNER), keys.new_secret()
    assert await ensure_admin_key(url, secret)
    assert await ensure_admin_key(url, secret)
    async with client_of(app, secret) as client:
        answer = await client.get("/v1/whoami")
        assert answer.status_code == 200
        assert "admin" in answer.json()["rights"]
        mine = await keys.find(database, secret)
        assert mine is not None
        assert (await client.delete(f"/v1/api-keys/{mine.key_id}")).status_code in (200, 204)
        revoked_at = await _revoked_at(tables, mine.key_id)
        assert not await ensure_admin_key(url, secret)
        assert await _revoked_at(tables, mine.key_id) == revoked_at
        assert await keys.find(database, secret) is None
        assert (await client.get("/v1/whoami")).status_code == 401


async def test_fewer_rights_and_an_expiry_last(owner_url: str, tables: Tables) -> None:
    url, secret = login_url(owner_url, OWNER), keys.new_secret()
    await ensure_admin_key(url, secret)
    narrow = "UPDATE api_key SET rights = '{memory:read}', expires_at = '2100-01-01' WHERE key_hash = $1 RETURNING id"
    key_id = await tables.value(narrow, keys.digest(secret))
    assert await ensure_admin_key(url, secret)
    row = (await tables.fetch("SELECT rights, expires_at FROM api_key WHERE id = $1", key_id))[0]
    assert row["rights"] == ["memory:read"]
    assert row["expires_at"].year == 2100


async def test_another_first_key_is_made_in_the_oldest_workspace(owner_url: str, tables: Tables) -> None:
    """So whoever runs the service comes back in after all keys are lost."""
    secret = keys.new_secret()
    assert await ensure_admin_key(login_url(owner_url, OWNER), secret)
    there = await tables.value("SELECT workspace_id FROM api_key WHERE key_hash = $1", keys.digest(secret))
    oldest = await tables.value("SELECT workspace_id FROM workspace ORDER BY created_at LIMIT 1")
    assert there == oldest


async def _revoked_at(tables: Tables, key_id: UUID) -> object:
    return await tables.value("SELECT revoked_at FROM api_key WHERE id = $1", key_id)
