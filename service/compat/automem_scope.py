"""The scope of an AutoMem client.

AutoMem has one store for everybody; here each key has its own: that of its user, agent or run, or of the user
`automem`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from service.domain.access import Caller
from service.domain.errors import InvalidInput, NotFound
from service.domain.filters import uuid_or_none
from service.domain.memory import Memory
from service.http.narrowing import NarrowingFields
from service.http.query_parameters import body_of
from service.memories import reading
from service.runtime.resources import Resources

ONE_STORE: Final = "automem"
"""The user who owns everything stored with a key that has no owner."""


def owner(caller: Caller) -> dict[str, str]:
    """The owner of the memories as fields of a request: that of the key, or the one store."""
    return {} if any(caller.ids(None, None, None)) else {"user_id": ONE_STORE}


def _is_here(memory: Memory, caller: Caller) -> bool:
    user_id, agent_id, run_id = caller.ids(None, None, None)
    if not any((user_id, agent_id, run_id)):
        user_id = ONE_STORE
    return memory.scope.has_ids(user_id=user_id, agent_id=agent_id, run_id=run_id)


async def read(caller: Caller, ids: Iterable[UUID], res: Resources) -> dict[UUID, Memory]:
    """The existing memories in the key's store."""
    by_id = await reading.get_many(caller.workspace_id, list(ids), res)
    return {key: memory for key, memory in by_id.items() if _is_here(memory, caller)}


def uuid_of(given: str, field: str = "id") -> UUID:
    """The id of a memory; raises InvalidInput if it is not one."""
    if (wanted := uuid_or_none(given.strip())) is None:
        raise InvalidInput(f"{field}: must be a UUID.", field=field)
    return wanted


async def one(caller: Caller, id: str, res: Resources) -> Memory:
    wanted = uuid_of(id)
    if (memory := (await read(caller, [wanted], res)).get(wanted)) is None:
        raise NotFound.of("memory")
    return memory


def find_tagged(caller: Caller, wanted: Sequence[str]) -> NarrowingFields:
    """The selection of memories with one of the tags."""
    return body_of(NarrowingFields, {**owner(caller), "tags": list(wanted), "tag_match": "exact"})


async def is_untouched(caller: Caller, id: str, res: Resources) -> bool:
    """Whether the memory exists unchanged."""
    memory = (await read(caller, [UUID(id)], res)).get(UUID(id))
    return memory is not None and memory.version == 1


def ends_of(sent: Mapping[str, Any]) -> tuple[UUID, UUID]:
    """The two memories of a relation; raises InvalidInput."""
    for name in ("memory1_id", "memory2_id"):
        if not isinstance(sent.get(name), str) or not sent[name].strip():
            raise InvalidInput(f"{name}: is missing.", field=name)
    source, target = (uuid_of(sent[name], name) for name in ("memory1_id", "memory2_id"))
    if source == target:
        raise InvalidInput("memory2_id: a memory cannot be related to itself.", field="memory2_id")
    return source, target
