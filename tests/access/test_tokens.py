"""Tokens for one end user: what they reach, when they end, and what a bad one is told."""

from __future__ import annotations

from typing import Any, cast

import jwt
import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.access.statements import keys
from service.postgres.engine import Database
from tests.conftest import SetClock
from tests.support.application import client_of
from tests.support.calls import body_of, store

RIGHTS = ["memory:read", "memory:write"]


async def a_key(client: AsyncClient, **more: Any) -> dict[str, str]:
    body = {"name": "server", "rights": [*RIGHTS, "tokens"], **more}
    return dict(await body_of(client.post("/v1/api-keys", json=body), 201))


async def minted(app: FastAPI, key: str, **body: Any) -> str:
    async with client_of(app, key) as server:
        answer = await server.post("/v1/tokens", json={"user_id": "alice", "rights": RIGHTS, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


async def test_a_token_reaches_its_user_and_nobody_else(client: AsyncClient, app: FastAPI) -> None:
    bobs, own = await store(client, "Bob's clock", user_id="bob"), await store(client, "Alice's boat")
    key = await a_key(client)
    async with client_of(app, await minted(app, key["api_key"])) as alice:
        who = (await alice.get("/v1/whoami")).json()
        assert (who["user_id"], who["api_key_id"], who["rights"]) == ("alice", key["id"], RIGHTS)
        assert who["expires_at"] == "2026-03-02T09:45:00+00:00"
        assert (await alice.get(f"/v1/memories/{own}")).status_code == 200
        assert (await alice.get(f"/v1/memories/{bobs}")).status_code == 404
        assert (await alice.get("/v1/memories?user_id=bob")).status_code == 403
        assert (await alice.delete(f"/v1/memories/{own}")).status_code == 403
        assert (await alice.post("/v1/tokens", json={"rights": RIGHTS})).status_code == 403
        headers = {"Authorization": "", "X-API-Key": alice.headers["Authorization"].removeprefix("Bearer ")}
        assert (await alice.get(f"/v1/memories/{own}", headers=headers)).status_code == 200


async def test_it_keeps_the_defaults_of_its_key_that_lie_inside_its_wall(client: AsyncClient, app: FastAPI) -> None:
    key = await a_key(client, defaults={"user_id": "bob", "channel": "work"})
    async with client_of(app, await minted(app, key["api_key"])) as alice:
        stored = await body_of(alice.post("/v1/memories", json={"content": "Alice's boat", "infer": False}), 201)
        kept = (await alice.get(f"/v1/memories/{stored['results'][0]['id']}")).json()
    assert (kept["user_id"], kept["channel"]) == ("alice", "work")


async def test_it_expires(client: AsyncClient, app: FastAPI, clock: SetClock) -> None:
    token = await minted(app, (await a_key(client))["api_key"], expires_in_s=60)
    async with client_of(app, token) as alice:
        assert (await alice.get("/v1/memories")).status_code == 200
        clock.forward(seconds=60)
        late = await alice.get("/v1/memories")
        assert (late.status_code, late.json()["detail"]) == (401, "The token has expired; ask for a new one.")


async def test_it_ends_with_its_key(client: AsyncClient, app: FastAPI) -> None:
    key = await a_key(client)
    async with client_of(app, await minted(app, key["api_key"])) as alice:
        assert (await alice.get("/v1/memories")).status_code == 200
        assert (await client.delete(f"/v1/api-keys/{key['id']}")).status_code == 204
        ended = await alice.get("/v1/memories")
        assert (ended.status_code, "revoked" in ended.json()["detail"]) == (401, True)


async def test_it_ends_with_the_expiry_of_its_key(client: AsyncClient, app: FastAPI, clock: SetClock) -> None:
    key, end = await a_key(client, expires_at="2026-03-02T09:35:00Z"), "2026-03-02T09:35:00+00:00"
    async with client_of(app, key["api_key"]) as server:
        token = await body_of(server.post("/v1/tokens", json={"user_id": "alice", "rights": RIGHTS}), 201)
    assert token["expires_at"] == end
    async with client_of(app, token["token"]) as alice:
        assert (await alice.get("/v1/whoami")).json()["expires_at"] == end
        clock.forward(minutes=5)
        assert (await alice.get("/v1/memories")).status_code == 401


async def test_it_survives_a_rotation_and_loses_what_the_key_loses(client: AsyncClient, app: FastAPI) -> None:
    key = await a_key(client)
    async with client_of(app, await minted(app, key["api_key"])) as alice:
        assert (await client.post(f"/v1/api-keys/{key['id']}/rotate", json={})).status_code == 200
        assert (await alice.get("/v1/memories")).status_code == 200
        narrower = {"rights": ["memory:read", "tokens"]}
        assert (await client.patch(f"/v1/api-keys/{key['id']}", json=narrower)).status_code == 200
        assert (await alice.post("/v1/memories", json={"content": "x"})).status_code == 403
        assert (await client.patch(f"/v1/api-keys/{key['id']}", json={"user_id": "bob"})).status_code == 200
        assert (await alice.get("/v1/memories")).status_code == 401


async def test_narrowing_its_key_narrows_it(client: AsyncClient, app: FastAPI) -> None:
    key = await a_key(client)
    inside = await store(client, "Sails on Sundays", channel="support", agent_id="guide")
    outside = await store(client, "Rows on Mondays", channel="board", agent_id="guide")
    elsewhere = await minted(app, key["api_key"], channels=["board"])
    async with client_of(app, await minted(app, key["api_key"])) as alice:
        assert (await alice.get(f"/v1/memories/{outside}")).status_code == 200
        narrower = {"channels": ["support"], "agent_id": "guide"}
        assert (await client.patch(f"/v1/api-keys/{key['id']}", json=narrower)).status_code == 200
        assert (await alice.get(f"/v1/memories/{inside}")).status_code == 200
        assert (await alice.get(f"/v1/memories/{outside}")).status_code == 404
        who = (await alice.get("/v1/whoami")).json()
        assert (who["user_id"], who["agent_id"], who["channels"]) == ("alice", "guide", ["support"])
    async with client_of(app, elsewhere) as nowhere:
        assert (await nowhere.get("/v1/memories")).status_code == 401, "the walls exclude each other"


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"rights": ["memory:read"]}, 400, "user_id"),
        ({"user_id": "alice", "rights": []}, 400, "rights"),
        ({"user_id": "alice", "rights": ["admin"]}, 400, "rights"),
        ({"user_id": "alice", "rights": ["tokens"]}, 400, "rights"),
        ({"user_id": "alice", "rights": ["memory:delete"]}, 403, "rights"),
        ({"user_id": "alice", "rights": RIGHTS, "expires_in_s": 59}, 400, "expires_in_s"),
        ({"user_id": "alice", "rights": RIGHTS, "expires_in_s": 3601}, 400, "expires_in_s"),
    ],
)
async def test_refused(client: AsyncClient, app: FastAPI, body: Any, status: int, field: str) -> None:
    async with client_of(app, (await a_key(client))["api_key"]) as server:
        refused = await server.post("/v1/tokens", json=body)
    assert (refused.status_code, refused.json()["field"]) == (status, field), refused.text


async def test_minting_needs_the_right(client: AsyncClient, app: FastAPI) -> None:
    key = await a_key(client, rights=RIGHTS)
    async with client_of(app, key["api_key"]) as server:
        assert (await server.post("/v1/tokens", json={"user_id": "a", "rights": RIGHTS})).status_code == 403


async def test_a_walled_key_mints_inside_its_wall(client: AsyncClient, app: FastAPI) -> None:
    key = await a_key(client, agent_id="guide", channels=["support", "sales"])
    token = await minted(app, key["api_key"], channels=["support"])
    async with client_of(app, token) as alice:
        who = (await alice.get("/v1/whoami")).json()
        assert (who["user_id"], who["agent_id"], who["channels"]) == ("alice", "guide", ["support"])
    async with client_of(app, key["api_key"]) as server:
        for field, outside in (("agent_id", "other"), ("channels", ["support", "other"])):
            refused = await server.post("/v1/tokens", json={"user_id": "a", "rights": RIGHTS, field: outside})
            assert (refused.status_code, refused.json()["field"]) == (403, field)


async def test_forged_tokens(client: AsyncClient, app: FastAPI, anonymous: AsyncClient) -> None:
    key = await a_key(client)
    good = await minted(app, key["api_key"])
    claims = jwt.decode(good, options={"verify_signature": False})
    head, body, signature = good.split(".")
    for forged in (
        jwt.encode(claims, "x" * 48, algorithm="HS256"),
        jwt.encode(claims, cast(Any, None), algorithm="none"),
        jwt.encode(claims, app.state.tokens.secret, algorithm="HS512"),
        jwt.encode({**claims, "exp": None}, app.state.tokens.secret, algorithm="HS256"),
        jwt.encode({**claims, "iss": "other"}, app.state.tokens.secret, algorithm="HS256"),
        f"{head}.{body}.",
        f"{head}.{body}.{signature[:-4]}AAAA",
        f"{head}..{signature}",
        "eyJ..",
        "eyJ." + "x" * 20_000 + ".y",
    ):
        refused = await anonymous.get("/v1/memories", headers={"Authorization": f"Bearer {forged}"})
        assert (refused.status_code, "malformed" in refused.json()["detail"]) == (401, True), forged[:80]
    other = jwt.encode({**claims, "key": claims["workspace"]}, app.state.tokens.secret, algorithm="HS256")
    assert (await anonymous.get("/v1/memories", headers={"X-API-Key": other})).status_code == 401


async def test_the_secret_is_made_once(database: Database) -> None:
    first = await keys.token_secret(database, "a" * 64)
    assert await keys.token_secret(database, "b" * 64) == first
