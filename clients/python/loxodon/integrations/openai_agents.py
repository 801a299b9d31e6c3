"""A session of the OpenAI Agents SDK that is a conversation in Loxodon.

    from loxodon import AsyncMemory
    from loxodon.integrations.openai_agents import LoxodonSession

    session = LoxodonSession("chat-17", AsyncMemory(), user_id="alice")
    await Runner.run(agent, "Hello", session=session)

An item is a turn: what was said is the turn's text, the rest of the item its metadata. So turns are found by search and
recall, facts can be read from them, and what is forgotten is gone from the session, too.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping
from typing import Any, cast

from agents.items import TResponseInputItem
from agents.memory import SessionSettings
from agents.memory.session import SessionABC
from agents.memory.session_settings import resolve_session_limit

from loxodon import AsyncMemory, ConflictError, NotFoundError, types

PLACES: tuple[tuple[str | int, ...], ...] = (("content",), ("content", 0, "text"), ("output",), ("arguments",))
"""Where the text of an item may stand; the first that holds one."""
PAGE = 1000
ATTEMPTS = 20
"""Of numbering a turn while others add some."""


class LoxodonSession(SessionABC):
    """A `Session` of a user or an agent; its name is unique to them. It is opened by the first item."""

    def __init__(
        self,
        session_id: str,
        memory: AsyncMemory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        channel: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        if not (user_id or agent_id):
            raise ValueError("A session belongs to a user or an agent: give user_id or agent_id")
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._memory = memory
        self._user_id, self._agent_id, self._channel = user_id, agent_id, channel

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in order; with a limit the latest."""
        turns = await self._turns()
        most = resolve_session_limit(limit, self.session_settings)
        if most is not None:
            turns = turns[-most:] if most > 0 else []
        return [_item(turn) for turn in turns]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """One turn each, numbered, so that what is said twice is kept twice."""
        if not items:
            return
        opened = await self._open()
        index = opened["next_index"]
        for item in items:
            index = await self._add(opened["id"], index, cast(Mapping[str, Any], item)) + 1

    async def pop_item(self) -> TResponseInputItem | None:
        """Deletes the last turn. What was learnt from it stays, unless nothing else told it: it goes with its turn."""
        turns = await self._turns()
        if not turns:
            return None
        await self._memory.conversations.delete_turn(turns[-1]["id"], facts=True)
        return _item(turns[-1])

    async def clear_session(self) -> None:
        """Deletes the conversation with its turns; facts that were learnt in it stay what is known of the user."""
        with contextlib.suppress(NotFoundError):
            await self._memory.conversations.delete(self.session_id, user_id=self._user_id, agent_id=self._agent_id)

    async def _open(self) -> types.ConversationResponse:
        return await self._memory.conversations.open(
            external_id=self.session_id, user_id=self._user_id, agent_id=self._agent_id, channel=self._channel
        )

    async def _turns(self) -> list[types.TurnResponse]:
        pages = self._memory.conversations.turns(
            self.session_id, user_id=self._user_id, agent_id=self._agent_id, limit=PAGE
        )
        try:
            return [turn async for turn in pages]
        except NotFoundError:
            return []

    async def _add(self, conversation_id: str, index: int, item: Mapping[str, Any]) -> int:
        """The index it got: the next free one, where somebody else took this one."""
        text, rest = _parts(item)
        role, name = str(item.get("role", "tool")), item.get("name")
        for _ in range(ATTEMPTS):
            try:
                await self._memory.conversations.add(
                    conversation_id, role, text, turn_index=index, name=name, metadata=rest
                )
            except ConflictError:
                index = max(index + 1, (await self._open())["next_index"])
            else:
                return index
        raise RuntimeError(f"{ATTEMPTS} others added to the session {self.session_id} at the same time")


def _parts(item: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The text of an item, and the item without it."""
    rest = copy.deepcopy(dict(item))
    for place in PLACES:
        text = _at(rest, place)
        if isinstance(text, str) and text.strip():
            holder = _at(rest, place[:-1])
            holder[place[-1]] = None
            return text, {"item": rest, "text_at": list(place)}
    return f"[{item.get('type', 'item')}]", {"item": rest}


def _item(turn: types.TurnResponse) -> TResponseInputItem:
    """The item that a turn was; of a turn that came by another way, a message."""
    held = turn["metadata"].get("item")
    if not isinstance(held, dict):
        return cast(TResponseInputItem, {"role": turn["role"], "content": turn["content"]})
    item = copy.deepcopy(held)
    if place := turn["metadata"].get("text_at"):
        _at(item, place[:-1])[place[-1]] = turn["content"]
    return cast(TResponseInputItem, item)


def _at(part: Any, place: Any) -> Any:
    """What stands at a place, None where there is none."""
    for step in place:
        try:
            part = part[step]
        except (KeyError, IndexError, TypeError):
            return None
    return part
