"""The client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack, cast

import httpx

from loxodon import types
from loxodon._wire import Attempts, Settings, any_request, decoded, operation, said
from loxodon.types import Id

T = TypeVar("T")


class AsyncPages(Generic[T]):
    """A long listing. Going through it fetches page after page and holds one; `limit` is the size of a page."""

    def __init__(self, fetch: Callable[[str | None], Any], items: str) -> None:
        self._fetch = fetch
        self._items = items

    async def pages(self) -> AsyncIterator[dict[str, Any]]:
        """The pages as they came, with `total` and whatever else a page has."""
        cursor: str | None = None
        while True:
            page = await self._fetch(cursor)
            yield page
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for each in page[self._items]:
                yield each

    async def first(self, most: int) -> list[T]:
        """At most so many, from the start."""
        found: list[T] = []
        async for each in self:
            if len(found) >= most:
                break
            found.append(each)
        return found


class AsyncMemory:
    """Everything an agent does with its memory. Close it, or use it as a context manager.

    `url` and `api_key` come from LOXODON_URL (default http://127.0.0.1:8080) and LOXODON_API_KEY where they are left
    out. `timeout_s` is for one attempt. A call is tried `retries` times more when the service is busy, away or cuts it
    off; it carries the same Idempotency-Key each time, so nothing is done twice. Retry-After is waited for, up to
    `longest_retry_after_s`. `call_timeout_s` is for a call with all its attempts and pauses; None is no limit.
    `transport`: an httpx transport of your own.

    Every call takes by name what its route takes. Answers are the service's JSON as dicts, typed in `loxodon.types`.
    Raises the errors of `loxodon.errors`.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = 25.0,
        retries: int = 3,
        longest_retry_after_s: float = 60.0,
        call_timeout_s: float | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.settings = Settings.read(
            url,
            api_key,
            timeout_s=timeout_s,
            retries=retries,
            longest_retry_after_s=longest_retry_after_s,
            call_timeout_s=call_timeout_s,
        )
        self._http = httpx.AsyncClient(
            base_url=self.settings.url,
            headers=self.settings.headers,
            transport=transport,
        )
        self.conversations = AsyncConversations(self)
        self.goals = AsyncGoals(self)
        self.entities = AsyncEntities(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        http = self._http
        await http.aclose()

    # store

    async def add(
        self,
        what: str | types.MessageInput | Sequence[types.MessageInput],
        /,
        **options: Unpack[types.StoreMemoryOptions],
    ) -> types.StoreResponse:
        """Stores a text as one memory, or a message or several as what they tell. Needs user_id, agent_id or run_id.

        `results` says what became of each text or fact: its `event` is ADD, UPDATE, DELETE or NONE.
        """
        return cast(types.StoreResponse, await self._call("store_memory", {**said(what), **options}))

    async def add_many(
        self, items: Sequence[types.StoreRequest], /, **options: Unpack[types.StoreMemoriesOptions]
    ) -> types.StoreBatchResponse:
        """Up to 100 stores in one request. Each has a `status` of its own, and an `error` where it failed."""
        return cast(types.StoreBatchResponse, await self._call("store_memories", {"items": list(items), **options}))

    async def add_later(
        self, what: Sequence[types.MessageInput], /, **options: Unpack[types.StoreConversationLaterOptions]
    ) -> types.AcceptedResponse:
        """Stores a long conversation by a job: the answer comes when it is safe, `wait` says when it is read."""
        answer = await self._call("store_conversation_later", {**said(what), **options})
        return cast(types.AcceptedResponse, answer)

    async def wait(self, operation_id: Id, /, *, timeout_s: float = 300.0) -> types.OperationResponse:
        """The operation when it is done or failed. Raises TimeoutError after about `timeout_s`."""
        waited, pause = 0.0, 0.1
        while True:
            found = cast(types.OperationResponse, await self._call("get_operation", {"id": operation_id}))
            if found["status"] in ("done", "failed"):
                return found
            if waited >= timeout_s:
                raise TimeoutError(f"Operation {operation_id} is {found['status']} after {waited:.0f} s")
            await asyncio.sleep(pause)
            waited, pause = waited + pause, min(2.0, pause * 1.5)

    # find

    async def search(
        self, query: str | None = None, /, **options: Unpack[types.SearchMemoriesOptions]
    ) -> types.SearchResponse:
        """The memories that answer, best first. Without a query, what the narrowing leaves, by importance."""
        return cast(types.SearchResponse, await self._call("search_memories", {"query": query, **options}))

    async def recall(self, query: str, /, **options: Unpack[types.RecallOptions]) -> types.RecallResponse:
        """Everything that helps to answer, within `max_tokens`; with format="markdown" as one block for a prompt."""
        return cast(types.RecallResponse, await self._call("recall", {"query": query, **options}))

    def list(self, **options: Unpack[types.ListMemoriesOptions]) -> AsyncPages[types.MemoryItem]:
        """All memories of a scope, newest first."""
        return self._pages("list_memories", {**options})

    async def get(self, id: Id, /, **options: Unpack[types.GetMemoryOptions]) -> types.MemoryResponse:
        """One memory. Raises NotFoundError."""
        return cast(types.MemoryResponse, await self._call("get_memory", {"id": id, **options}))

    async def get_many(self, ids: Sequence[Id], /) -> types.MemoriesByIdResponse:
        """Up to 1,000 memories; `missing` lists the ids that are none."""
        return cast(types.MemoriesByIdResponse, await self._call("get_memories", {"ids": list(ids)}))

    async def history(self, id: Id, /, **options: Unpack[types.GetMemoryHistoryOptions]) -> types.MemoryHistoryResponse:
        """Every change of a memory, oldest first; also after it is gone."""
        return cast(types.MemoryHistoryResponse, await self._call("get_memory_history", {"id": id, **options}))

    async def why(self, id: Id, /, **options: Unpack[types.ExplainMemoryOptions]) -> types.ExplainMemoryResponse:
        """Where a memory comes from, and who decided it."""
        return cast(types.ExplainMemoryResponse, await self._call("explain_memory", {"id": id, **options}))

    # change

    async def update(self, id: Id, /, **options: Unpack[types.PatchMemoryOptions]) -> types.MemoryResponse:
        """Changes what is named: content, tags, metadata, importance ... None removes where that makes sense.
        `if_match='"3"'` raises PreconditionFailedError when its version is another one."""
        return cast(types.MemoryResponse, await self._call("patch_memory", {"id": id, **options}))

    async def restore(self, id: Id, /, **options: Unpack[types.RestoreMemoryOptions]) -> types.MemoryResponse:
        """Brings back an archived memory."""
        return cast(types.MemoryResponse, await self._call("restore_memory", {"id": id, **options}))

    async def decisions(self, id: Id, /, **options: Unpack[types.GetMemoryDecisionsOptions]) -> types.DecisionPage:
        """The rulings about a memory; `undo` takes one back by its id."""
        return cast(types.DecisionPage, await self._call("get_memory_decisions", {"id": id, **options}))

    async def undo(
        self, decision_id: Id, /, **options: Unpack[types.UndoDecisionOptions]
    ) -> types.UndoDecisionResponse:
        """Takes back a decision, with all that was decided together with it."""
        return cast(types.UndoDecisionResponse, await self._call("undo_decision", {"id": decision_id, **options}))

    # forget

    async def delete(
        self, id: Id, /, **options: Unpack[types.DeleteMemoryOptions]
    ) -> types.DeletedMemoryResponse | types.PurgeReceiptResponse:
        """Deletes a memory; its history stays, unless `purge` is true. Doing it again says `already_deleted`."""
        answer = await self._call("delete_memory", {"id": id, **options})
        return cast("types.DeletedMemoryResponse | types.PurgeReceiptResponse", answer)

    async def delete_all(
        self, **options: Unpack[types.DeleteMemoriesOptions]
    ) -> types.DeletedCountResponse | types.PurgeReceiptResponse | types.AcceptedResponse:
        """Deletes all of a user, agent or run. What is large is done by a job: then there is an `operation_id`."""
        answer = await self._call("delete_memories", {**options})
        return cast("types.DeletedCountResponse | types.PurgeReceiptResponse | types.AcceptedResponse", answer)

    async def forget(self, query: str | None = None, /, **options: Unpack[types.ForgetOptions]) -> types.ForgetResponse:
        """Forgets what a query means, or `ids`; `dry_run=True` shows what would go."""
        return cast(types.ForgetResponse, await self._call("forget", {"query": query, **options}))

    # follow

    async def changes(self, **options: Unpack[types.ListChangesOptions]) -> types.ChangesPage:
        """What has changed since `after`, the `next_cursor` of the page before; "now": only what comes.

        Every change once, in an order that is the same for every reader. Keep `next_cursor` with what you made of the
        page; where `has_more` is false, ask again later.
        """
        return cast(types.ChangesPage, await self._call("list_changes", {**options}))

    # who

    async def profile(self, user_id: str, /) -> types.ProfileResponse:
        """What is known of a user as a person. Raises NotFoundError."""
        return cast(types.ProfileResponse, await self._call("get_user_profile", {"user_id": user_id}))

    async def replace_profile(
        self, user_id: str, /, **options: Unpack[types.PutUserProfileOptions]
    ) -> types.ProfileResponse:
        """Makes a user's profile, or replaces all of it."""
        return cast(types.ProfileResponse, await self._call("put_user_profile", {"user_id": user_id, **options}))

    def users(self, **options: Unpack[types.ListScopesOptions]) -> AsyncPages[types.ScopeItem]:
        """Users, agents and runs that have memories; `type="user"` for users alone."""
        return self._pages("list_scopes", {**options})

    async def whoami(self) -> types.WhoAmIResponse:
        """What the key is and may do."""
        return cast(types.WhoAmIResponse, await self._call("whoami", {}))

    # anything else

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Any route, such as ("GET", "/v1/timeline"), with the same retries and errors. Writes are repeated only with
        an `idempotency_key`."""
        return await self._send(any_request(self.settings, method, path, query, body, idempotency_key))

    async def _call(self, name: str, options: Mapping[str, Any]) -> Any:
        return await self._send(operation(self.settings, name, options))

    def _pages(self, name: str, options: Mapping[str, Any], items: str = "results") -> AsyncPages[Any]:
        async def fetch(cursor: str | None) -> Any:
            return await self._call(name, {**options, "cursor": cursor})

        return AsyncPages(fetch, items)

    async def _send(self, attempts: Attempts) -> Any:
        while True:
            try:
                answer = await self._http.request(
                    attempts.method,
                    attempts.path,
                    params=attempts.query,
                    content=attempts.content,
                    headers=attempts.headers,
                    timeout=attempts.timeout,
                )
            except httpx.RequestError as error:
                wait_s = attempts.failed(error)
            else:
                again_s = attempts.answered(answer)
                if again_s is None:
                    return decoded(answer)
                wait_s = again_s
            await asyncio.sleep(wait_s)


class AsyncConversations:
    """What was said, turn by turn. An `id` is the conversation's id or your name for it."""

    def __init__(self, memory: AsyncMemory) -> None:
        self._memory = memory

    async def open(self, **options: Unpack[types.CreateConversationOptions]) -> types.ConversationResponse:
        """Opens a conversation of a user, agent or run, by the name `external_id`; the same one if it is there."""
        return cast(types.ConversationResponse, await self._memory._call("create_conversation", {**options}))

    def list(self, **options: Unpack[types.ListConversationsOptions]) -> AsyncPages[types.ConversationResponse]:
        """Conversations of a scope, newest first."""
        return self._memory._pages("list_conversations", {**options})

    async def add(
        self, id: Id, role: str, content: str, /, **options: Unpack[types.StoreTurnOptions]
    ) -> types.StoreTurnResponse:
        """Keeps a turn. Number turns with `turn_index` where somebody may say the same twice."""
        told = {"id": id, "role": role, "content": content, **options}
        return cast(types.StoreTurnResponse, await self._memory._call("store_turn", told))

    def turns(self, id: Id, /, **options: Unpack[types.GetConversationOptions]) -> AsyncPages[types.TurnResponse]:
        """Its turns, in order."""
        return self._memory._pages("get_conversation", {"id": id, **options}, "turns")

    async def context(
        self, id: Id, /, **options: Unpack[types.GetConversationContextOptions]
    ) -> types.ConversationContextResponse:
        """The latest turns and what bears on them, as a block for a prompt."""
        answer = await self._memory._call("get_conversation_context", {"id": id, **options})
        return cast(types.ConversationContextResponse, answer)

    async def search(self, query: str, /, **options: Unpack[types.SearchTurnsOptions]) -> types.TurnSearchResponse:
        """The turns that answer."""
        return cast(types.TurnSearchResponse, await self._memory._call("search_turns", {"query": query, **options}))

    async def update(self, id: Id, /, **options: Unpack[types.PatchConversationOptions]) -> types.ConversationResponse:
        """Title, metadata, archived."""
        return cast(types.ConversationResponse, await self._memory._call("patch_conversation", {"id": id, **options}))

    async def delete(
        self, id: Id, /, **options: Unpack[types.DeleteConversationOptions]
    ) -> types.DeletedTurnsResponse | types.PurgeReceiptResponse:
        """Deletes it with its turns; with `facts` what only it told goes as well."""
        answer = await self._memory._call("delete_conversation", {"id": id, **options})
        return cast("types.DeletedTurnsResponse | types.PurgeReceiptResponse", answer)

    async def delete_turn(
        self, turn_id: Id, /, **options: Unpack[types.DeleteTurnOptions]
    ) -> types.DeletedTurnsResponse | types.PurgeReceiptResponse:
        """Deletes one turn; the others keep their index."""
        answer = await self._memory._call("delete_turn", {"id": turn_id, **options})
        return cast("types.DeletedTurnsResponse | types.PurgeReceiptResponse", answer)


class AsyncGoals:
    """What a user or an agent wants to achieve."""

    def __init__(self, memory: AsyncMemory) -> None:
        self._memory = memory

    async def create(
        self, description: str, /, **options: Unpack[types.CreateGoalOptions]
    ) -> types.GoalDetailsResponse:
        answer = await self._memory._call("create_goal", {"description": description, **options})
        return cast(types.GoalDetailsResponse, answer)

    def list(self, **options: Unpack[types.ListGoalsOptions]) -> AsyncPages[types.GoalResponse]:
        return self._memory._pages("list_goals", {**options})

    async def get(self, id: Id, /, **options: Unpack[types.GetGoalOptions]) -> types.GoalDetailsResponse:
        return cast(types.GoalDetailsResponse, await self._memory._call("get_goal", {"id": id, **options}))

    async def update(self, id: Id, /, **options: Unpack[types.UpdateGoalOptions]) -> types.GoalDetailsResponse:
        return cast(types.GoalDetailsResponse, await self._memory._call("update_goal", {"id": id, **options}))

    async def complete(self, id: Id, /, **options: Unpack[types.CompleteGoalOptions]) -> types.GoalDetailsResponse:
        return cast(types.GoalDetailsResponse, await self._memory._call("complete_goal", {"id": id, **options}))

    async def delete(self, id: Id, /, **options: Unpack[types.DeleteGoalOptions]) -> types.DeletedCountResponse:
        return cast(types.DeletedCountResponse, await self._memory._call("delete_goal", {"id": id, **options}))


class AsyncEntities:
    """People, places and things that memories name."""

    def __init__(self, memory: AsyncMemory) -> None:
        self._memory = memory

    def list(self, **options: Unpack[types.ListEntitiesOptions]) -> AsyncPages[types.EntityResponse]:
        return self._memory._pages("list_entities", {**options})

    async def search(self, query: str, /, **options: Unpack[types.SearchEntitiesOptions]) -> types.EntitySearchResponse:
        answer = await self._memory._call("search_entities", {"query": query, **options})
        return cast(types.EntitySearchResponse, answer)

    async def get(self, id: Id, /, **options: Unpack[types.GetEntityOptions]) -> types.EntityResponse:
        return cast(types.EntityResponse, await self._memory._call("get_entity", {"id": id, **options}))

    async def put(self, **options: Unpack[types.UpsertEntityOptions]) -> types.EntityResponse:
        """Makes an entity, or adds to the one of this name."""
        return cast(types.EntityResponse, await self._memory._call("upsert_entity", {**options}))

    def relations(
        self, name: str, /, **options: Unpack[types.ListEntityRelationsOptions]
    ) -> AsyncPages[types.EntityRelationResponse]:
        """What is known about how it is related to others."""
        return self._memory._pages("list_entity_relations", {"name": name, **options})

    async def delete(self, id: Id, /, **options: Unpack[types.DeleteEntityOptions]) -> types.DeletedEntityResponse:
        return cast(types.DeletedEntityResponse, await self._memory._call("delete_entity", {"id": id, **options}))
