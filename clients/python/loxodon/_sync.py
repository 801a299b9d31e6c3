# Written by clients/python/generate.py: change that, or what it reads.
"""The client for asyncio."""

from __future__ import annotations

import time
from collections.abc import Iterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack, cast

import httpx

from loxodon import types
from loxodon._wire import Attempts, Settings, any_request, decoded, operation, said
from loxodon.types import Id

T = TypeVar("T")


class Pages(Generic[T]):
    """A long listing. Going through it fetches page after page and holds one; `limit` is the size of a page."""

    def __init__(self, fetch: Callable[[str | None], Any], items: str) -> None:
        self._fetch = fetch
        self._items = items

    def pages(self) -> Iterator[dict[str, Any]]:
        """The pages as they came, with `total` and whatever else a page has."""
        cursor: str | None = None
        while True:
            page = self._fetch(cursor)
            yield page
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            for each in page[self._items]:
                yield each

    def first(self, most: int) -> list[T]:
        """At most so many, from the start."""
        found: list[T] = []
        for each in self:
            if len(found) >= most:
                break
            found.append(each)
        return found


class Memory:
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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.settings = Settings.read(
            url,
            api_key,
            timeout_s=timeout_s,
            retries=retries,
            longest_retry_after_s=longest_retry_after_s,
            call_timeout_s=call_timeout_s,
        )
        self._http = httpx.Client(
            base_url=self.settings.url,
            headers=self.settings.headers,
            transport=transport,
        )
        self.conversations = Conversations(self)
        self.goals = Goals(self)
        self.entities = Entities(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        http = self._http
        http.close()

    # store

    def add(
        self,
        what: str | types.MessageInput | Sequence[types.MessageInput],
        /,
        **options: Unpack[types.StoreMemoryOptions],
    ) -> types.StoreResponse:
        """Stores a text as one memory, or a message or several as what they tell. Needs user_id, agent_id or run_id.

        `results` says what became of each text or fact: its `event` is ADD, UPDATE, DELETE or NONE.
        """
        return cast(types.StoreResponse, self._call("store_memory", {**said(what), **options}))

    def add_many(
        self, items: Sequence[types.StoreRequest], /, **options: Unpack[types.StoreMemoriesOptions]
    ) -> types.StoreBatchResponse:
        """Up to 100 stores in one request. Each has a `status` of its own, and an `error` where it failed."""
        return cast(types.StoreBatchResponse, self._call("store_memories", {"items": list(items), **options}))

    def add_later(
        self, what: Sequence[types.MessageInput], /, **options: Unpack[types.StoreConversationLaterOptions]
    ) -> types.AcceptedResponse:
        """Stores a long conversation by a job: the answer comes when it is safe, `wait` says when it is read."""
        answer = self._call("store_conversation_later", {**said(what), **options})
        return cast(types.AcceptedResponse, answer)

    def wait(self, operation_id: Id, /, *, timeout_s: float = 300.0) -> types.OperationResponse:
        """The operation when it is done or failed. Raises TimeoutError after about `timeout_s`."""
        waited, pause = 0.0, 0.1
        while True:
            found = cast(types.OperationResponse, self._call("get_operation", {"id": operation_id}))
            if found["status"] in ("done", "failed"):
                return found
            if waited >= timeout_s:
                raise TimeoutError(f"Operation {operation_id} is {found['status']} after {waited:.0f} s")
            time.sleep(pause)
            waited, pause = waited + pause, min(2.0, pause * 1.5)

    # find

    def search(
        self, query: str | None = None, /, **options: Unpack[types.SearchMemoriesOptions]
    ) -> types.SearchResponse:
        """The memories that answer, best first. Without a query, what the narrowing leaves, by importance."""
        return cast(types.SearchResponse, self._call("search_memories", {"query": query, **options}))

    def recall(self, query: str, /, **options: Unpack[types.RecallOptions]) -> types.RecallResponse:
        """Everything that helps to answer, within `max_tokens`; with format="markdown" as one block for a prompt."""
        return cast(types.RecallResponse, self._call("recall", {"query": query, **options}))

    def list(self, **options: Unpack[types.ListMemoriesOptions]) -> Pages[types.MemoryItem]:
        """All memories of a scope, newest first."""
        return self._pages("list_memories", {**options})

    def get(self, id: Id, /, **options: Unpack[types.GetMemoryOptions]) -> types.MemoryResponse:
        """One memory. Raises NotFoundError."""
        return cast(types.MemoryResponse, self._call("get_memory", {"id": id, **options}))

    def get_many(self, ids: Sequence[Id], /) -> types.MemoriesByIdResponse:
        """Up to 1,000 memories; `missing` lists the ids that are none."""
        return cast(types.MemoriesByIdResponse, self._call("get_memories", {"ids": list(ids)}))

    def history(self, id: Id, /, **options: Unpack[types.GetMemoryHistoryOptions]) -> types.MemoryHistoryResponse:
        """Every change of a memory, oldest first; also after it is gone."""
        return cast(types.MemoryHistoryResponse, self._call("get_memory_history", {"id": id, **options}))

    def why(self, id: Id, /, **options: Unpack[types.ExplainMemoryOptions]) -> types.ExplainMemoryResponse:
        """Where a memory comes from, and who decided it."""
        return cast(types.ExplainMemoryResponse, self._call("explain_memory", {"id": id, **options}))

    # change

    def update(self, id: Id, /, **options: Unpack[types.PatchMemoryOptions]) -> types.MemoryResponse:
        """Changes what is named: content, tags, metadata, importance ... None removes where that makes sense.
        `if_match='"3"'` raises PreconditionFailedError when its version is another one."""
        return cast(types.MemoryResponse, self._call("patch_memory", {"id": id, **options}))

    def restore(self, id: Id, /, **options: Unpack[types.RestoreMemoryOptions]) -> types.MemoryResponse:
        """Brings back an archived memory."""
        return cast(types.MemoryResponse, self._call("restore_memory", {"id": id, **options}))

    def decisions(self, id: Id, /, **options: Unpack[types.GetMemoryDecisionsOptions]) -> types.DecisionPage:
        """The rulings about a memory; `undo` takes one back by its id."""
        return cast(types.DecisionPage, self._call("get_memory_decisions", {"id": id, **options}))

    def undo(self, decision_id: Id, /, **options: Unpack[types.UndoDecisionOptions]) -> types.UndoDecisionResponse:
        """Takes back a decision, with all that was decided together with it."""
        return cast(types.UndoDecisionResponse, self._call("undo_decision", {"id": decision_id, **options}))

    # forget

    def delete(
        self, id: Id, /, **options: Unpack[types.DeleteMemoryOptions]
    ) -> types.DeletedMemoryResponse | types.PurgeReceiptResponse:
        """Deletes a memory; its history stays, unless `purge` is true. Doing it again says `already_deleted`."""
        answer = self._call("delete_memory", {"id": id, **options})
        return cast("types.DeletedMemoryResponse | types.PurgeReceiptResponse", answer)

    def delete_all(
        self, **options: Unpack[types.DeleteMemoriesOptions]
    ) -> types.DeletedCountResponse | types.PurgeReceiptResponse | types.AcceptedResponse:
        """Deletes all of a user, agent or run. What is large is done by a job: then there is an `operation_id`."""
        answer = self._call("delete_memories", {**options})
        return cast("types.DeletedCountResponse | types.PurgeReceiptResponse | types.AcceptedResponse", answer)

    def forget(self, query: str | None = None, /, **options: Unpack[types.ForgetOptions]) -> types.ForgetResponse:
        """Forgets what a query means, or `ids`; `dry_run=True` shows what would go."""
        return cast(types.ForgetResponse, self._call("forget", {"query": query, **options}))

    # follow

    def changes(self, **options: Unpack[types.ListChangesOptions]) -> types.ChangesPage:
        """What has changed since `after`, the `next_cursor` of the page before; "now": only what comes.

        Every change once, in an order that is the same for every reader. Keep `next_cursor` with what you made of the
        page; where `has_more` is false, ask again later.
        """
        return cast(types.ChangesPage, self._call("list_changes", {**options}))

    # who

    def profile(self, user_id: str, /) -> types.ProfileResponse:
        """What is known of a user as a person. Raises NotFoundError."""
        return cast(types.ProfileResponse, self._call("get_user_profile", {"user_id": user_id}))

    def replace_profile(self, user_id: str, /, **options: Unpack[types.PutUserProfileOptions]) -> types.ProfileResponse:
        """Makes a user's profile, or replaces all of it."""
        return cast(types.ProfileResponse, self._call("put_user_profile", {"user_id": user_id, **options}))

    def users(self, **options: Unpack[types.ListScopesOptions]) -> Pages[types.ScopeItem]:
        """Users, agents and runs that have memories; `type="user"` for users alone."""
        return self._pages("list_scopes", {**options})

    def whoami(self) -> types.WhoAmIResponse:
        """What the key is and may do."""
        return cast(types.WhoAmIResponse, self._call("whoami", {}))

    # anything else

    def request(
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
        return self._send(any_request(self.settings, method, path, query, body, idempotency_key))

    def _call(self, name: str, options: Mapping[str, Any]) -> Any:
        return self._send(operation(self.settings, name, options))

    def _pages(self, name: str, options: Mapping[str, Any], items: str = "results") -> Pages[Any]:
        def fetch(cursor: str | None) -> Any:
            return self._call(name, {**options, "cursor": cursor})

        return Pages(fetch, items)

    def _send(self, attempts: Attempts) -> Any:
        while True:
            try:
                answer = self._http.request(
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
            time.sleep(wait_s)


class Conversations:
    """What was said, turn by turn. An `id` is the conversation's id or your name for it."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def open(self, **options: Unpack[types.CreateConversationOptions]) -> types.ConversationResponse:
        """Opens a conversation of a user, agent or run, by the name `external_id`; the same one if it is there."""
        return cast(types.ConversationResponse, self._memory._call("create_conversation", {**options}))

    def list(self, **options: Unpack[types.ListConversationsOptions]) -> Pages[types.ConversationResponse]:
        """Conversations of a scope, newest first."""
        return self._memory._pages("list_conversations", {**options})

    def add(
        self, id: Id, role: str, content: str, /, **options: Unpack[types.StoreTurnOptions]
    ) -> types.StoreTurnResponse:
        """Keeps a turn. Number turns with `turn_index` where somebody may say the same twice."""
        told = {"id": id, "role": role, "content": content, **options}
        return cast(types.StoreTurnResponse, self._memory._call("store_turn", told))

    def turns(self, id: Id, /, **options: Unpack[types.GetConversationOptions]) -> Pages[types.TurnResponse]:
        """Its turns, in order."""
        return self._memory._pages("get_conversation", {"id": id, **options}, "turns")

    def context(
        self, id: Id, /, **options: Unpack[types.GetConversationContextOptions]
    ) -> types.ConversationContextResponse:
        """The latest turns and what bears on them, as a block for a prompt."""
        answer = self._memory._call("get_conversation_context", {"id": id, **options})
        return cast(types.ConversationContextResponse, answer)

    def search(self, query: str, /, **options: Unpack[types.SearchTurnsOptions]) -> types.TurnSearchResponse:
        """The turns that answer."""
        return cast(types.TurnSearchResponse, self._memory._call("search_turns", {"query": query, **options}))

    def update(self, id: Id, /, **options: Unpack[types.PatchConversationOptions]) -> types.ConversationResponse:
        """Title, metadata, archived."""
        return cast(types.ConversationResponse, self._memory._call("patch_conversation", {"id": id, **options}))

    def delete(
        self, id: Id, /, **options: Unpack[types.DeleteConversationOptions]
    ) -> types.DeletedTurnsResponse | types.PurgeReceiptResponse:
        """Deletes it with its turns; with `facts` what only it told goes as well."""
        answer = self._memory._call("delete_conversation", {"id": id, **options})
        return cast("types.DeletedTurnsResponse | types.PurgeReceiptResponse", answer)

    def delete_turn(
        self, turn_id: Id, /, **options: Unpack[types.DeleteTurnOptions]
    ) -> types.DeletedTurnsResponse | types.PurgeReceiptResponse:
        """Deletes one turn; the others keep their index."""
        answer = self._memory._call("delete_turn", {"id": turn_id, **options})
        return cast("types.DeletedTurnsResponse | types.PurgeReceiptResponse", answer)


class Goals:
    """What a user or an agent wants to achieve."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def create(self, description: str, /, **options: Unpack[types.CreateGoalOptions]) -> types.GoalDetailsResponse:
        answer = self._memory._call("create_goal", {"description": description, **options})
        return cast(types.GoalDetailsResponse, answer)

    def list(self, **options: Unpack[types.ListGoalsOptions]) -> Pages[types.GoalResponse]:
        return self._memory._pages("list_goals", {**options})

    def get(self, id: Id, /, **options: Unpack[types.GetGoalOptions]) -> types.GoalDetailsResponse:
        return cast(types.GoalDetailsResponse, self._memory._call("get_goal", {"id": id, **options}))

    def update(self, id: Id, /, **options: Unpack[types.UpdateGoalOptions]) -> types.GoalDetailsResponse:
        return cast(types.GoalDetailsResponse, self._memory._call("update_goal", {"id": id, **options}))

    def complete(self, id: Id, /, **options: Unpack[types.CompleteGoalOptions]) -> types.GoalDetailsResponse:
        return cast(types.GoalDetailsResponse, self._memory._call("complete_goal", {"id": id, **options}))

    def delete(self, id: Id, /, **options: Unpack[types.DeleteGoalOptions]) -> types.DeletedCountResponse:
        return cast(types.DeletedCountResponse, self._memory._call("delete_goal", {"id": id, **options}))


class Entities:
    """People, places and things that memories name."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def list(self, **options: Unpack[types.ListEntitiesOptions]) -> Pages[types.EntityResponse]:
        return self._memory._pages("list_entities", {**options})

    def search(self, query: str, /, **options: Unpack[types.SearchEntitiesOptions]) -> types.EntitySearchResponse:
        answer = self._memory._call("search_entities", {"query": query, **options})
        return cast(types.EntitySearchResponse, answer)

    def get(self, id: Id, /, **options: Unpack[types.GetEntityOptions]) -> types.EntityResponse:
        return cast(types.EntityResponse, self._memory._call("get_entity", {"id": id, **options}))

    def put(self, **options: Unpack[types.UpsertEntityOptions]) -> types.EntityResponse:
        """Makes an entity, or adds to the one of this name."""
        return cast(types.EntityResponse, self._memory._call("upsert_entity", {**options}))

    def relations(
        self, name: str, /, **options: Unpack[types.ListEntityRelationsOptions]
    ) -> Pages[types.EntityRelationResponse]:
        """What is known about how it is related to others."""
        return self._memory._pages("list_entity_relations", {"name": name, **options})

    def delete(self, id: Id, /, **options: Unpack[types.DeleteEntityOptions]) -> types.DeletedEntityResponse:
        return cast(types.DeletedEntityResponse, self._memory._call("delete_entity", {"id": id, **options}))
