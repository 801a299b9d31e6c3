"""Short-lived tokens for one end user: JSON Web Tokens (HS256), minted by a key.

A token has its own rights and wall, limited by those that its key has now: both walls apply, and it has the rights that
both have. So revoking or narrowing the key ends or narrows its tokens within seconds, without a list of tokens.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from service.access.statements import keys
from service.domain.access import Caller, Right, Wall
from service.domain.errors import Unauthenticated
from service.kit.process import import_module
from service.postgres.engine import Database

if TYPE_CHECKING:
    from jwt.types import Options

ALGORITHM, ISSUER = "HS256", "loxodon"
MAX_TOKEN_CHARS = 16_384
"""A token with the longest ids and a hundred channels is shorter."""

OPTIONS: Options = {"verify_exp": False, "require": ["exp", "iss"]}
"""Our clock decides whether a token has expired."""

MALFORMED = "The token is malformed, or was not signed by this service."


class Claims(BaseModel):
    """The contents of a token. `key`: the key that minted it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    workspace: UUID
    key: UUID
    rights: Sequence[str]
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    channels: tuple[str, ...] = ()
    exp: int

    @property
    def wall(self) -> Wall:
        return Wall(self.user_id, self.agent_id, self.run_id, self.channels)

    @property
    def expires_at(self) -> datetime:
        return datetime.fromtimestamp(self.exp, UTC)


def looks_like_token(secret: str) -> bool:
    """Whether a credential is a token rather than a key: it has three parts and begins with a JSON object in base64."""
    return secret.startswith("eyJ") and secret.count(".") == 2


@dataclass(slots=True)
class TokenSigner:
    """Signs and reads tokens with the secret of the settings, or else the one in the database."""

    database: Database
    secret: str | None

    async def mint(self, minter: Caller, wall: Wall, rights: Sequence[Right], expires_at: datetime) -> str:
        """A token of the caller's key."""
        claims = Claims(
            workspace=minter.workspace_id,
            key=minter.key_id,
            rights=[str(right) for right in rights],
            exp=int(expires_at.timestamp()),
            **asdict(wall),
        )
        await import_module("jwt")
        import jwt

        payload = {"iss": ISSUER, **claims.model_dump(mode="json", exclude_none=True)}
        return jwt.encode(payload, await self._secret(), algorithm=ALGORITHM)

    async def read(self, token: str, now: datetime) -> Claims:
        """The claims of a token; raises Unauthenticated if it is malformed or has expired."""
        if len(token) > MAX_TOKEN_CHARS:
            raise Unauthenticated(MALFORMED)
        secret = await self._secret()
        await import_module("jwt")
        import jwt

        try:
            payload = jwt.decode(token, secret, [ALGORITHM], options=OPTIONS, issuer=ISSUER)
            claims = Claims.model_validate(payload)
        except (jwt.InvalidTokenError, ValidationError):
            raise Unauthenticated(MALFORMED) from None
        if claims.expires_at <= now:
            raise Unauthenticated("The token has expired; ask for a new one.")
        return claims

    async def _secret(self) -> str:
        if self.secret is None:
            self.secret = await keys.token_secret(self.database, secrets.token_urlsafe(48))
        return self.secret


def caller_of(claims: Claims, key: Caller | None, now: datetime) -> Caller:
    """The caller of a token. `key`: the key that minted it, as it is now. Raises Unauthenticated if that key has ended,
    or may no longer mint such a token."""
    if key is None or (key.expires_at is not None and key.expires_at <= now):
        raise Unauthenticated("The key that minted this token is revoked or has expired.")
    wall = claims.wall & key.wall
    if not wall or any(wall.leaves(key.wall)) or not key.may(Right.TOKENS):
        raise Unauthenticated("The key that minted this token may no longer mint such a token.")
    ends = [claims.expires_at] if key.expires_at is None else [claims.expires_at, key.expires_at]
    return replace(
        key,
        rights=frozenset(right for right in keys.rights_of(claims.rights) if key.may(right)),
        wall=wall,
        defaults=replace(key.defaults, **dict.fromkeys(key.defaults.leaves(wall))),
        expires_at=min(ends),
    )
