"""The tools: one row each, with its request and the part of the answer that an agent sees.

Arguments have the names of the REST API, so that errors name the right one. Answers are short, because an agent pays
for each word. Anything that is not in a row is out of reach through MCP, even if the route would accept it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from service.domain.errors import InvalidInput
from service.domain.kinds import MemoryType
from service.domain.relation import AUTHORABLE
from service.domain.sizes import MESSAGES_AT_ONCE
from service.mcp.requests import FixedIds, RestRequest, Values, in_path

Schema = Mapping[str, Any]

IDS = ("user_id", "agent_id", "run_id")
SCOPE: Mapping[str, Schema] = {
    "user_id": {"type": "string", "maxLength": 255, "description": "Whose memory"},
    "agent_id": {"type": "string", "maxLength": 255, "description": "Agent or persona"},
    "channel": {"type": "string", "maxLength": 100, "description": "Soft scope such as a project"},
}
"""The scope of a tool, unless the connection or the key fixes it. A run is set by programs, with the connection."""

TYPES = tuple(MemoryType)


def text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def moment(description: str) -> Schema:
    return text(f"{description}; ISO 8601", format="date-time")


def uuid(description: str) -> Schema:
    return text(description, format="uuid")


def integer(description: str, least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


def share(description: str) -> Schema:
    return {"type": "number", "minimum": 0, "maximum": 1, "description": f"0..1: {description}"}


def array(description: str, items: Schema, most: int) -> Schema:
    return {"type": "array", "items": items, "maxItems": most, "description": description}


TAGS = array("Such as project:atlas", {"type": "string", "maxLength": 255}, 100)
TYPE = text("Classified when left out", enum=TYPES)
IMPORTANCE = share("rated when left out")
METADATA: Schema = {"type": "object", "description": "More to keep with it"}
MEMORY_ID = uuid("UUID of the memory, as search shows it")
LIST, TEXTS = {"type": "array", "items": {"type": "object"}}, {"type": "array", "items": {"type": "string"}}
OR_NULL = {"anyOf": [{"type": "string"}, {"type": "null"}]}

Shown = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool for agents. `also`: fields of each request unless an argument replaces them; `implied`: fields that come
    with an argument. `repeatable`: repeating it changes nothing. `is_scoped`: it looks in a scope, or at a record by
    id, which must be in the fixed scope. `shown` turns the body of the answer into the fields of `answer`."""

    name: str
    description: str
    method: str
    path: str
    arguments: Mapping[str, Schema]
    shown: Shown
    answer: Mapping[str, Schema]
    needed: Sequence[str] = ()
    also: Values = field(default_factory=dict)
    implied: Mapping[str, Values] = field(default_factory=dict)
    is_scoped: bool = True
    reads_only: bool = False
    destroys: bool = False
    repeatable: bool = False
    as_text: Callable[[dict[str, Any]], str] | None = None
    """The text of the answer, if it is not the fields as JSON."""

    def schema(self, ids: FixedIds) -> dict[str, Any]:
        """JSON Schema of the arguments, without those that the connection fixes."""
        scope = {name: each for name, each in SCOPE.items() if self.is_scoped and name not in ids}
        object_schema = {"type": "object", "properties": {**self.arguments, **scope}, "additionalProperties": False}
        return {**object_schema, "required": [*self.needed]} if self.needed else object_schema

    def answer_schema(self) -> dict[str, Any]:
        """JSON Schema of the structured answer."""
        return {"type": "object", "properties": {**self.answer}, "required": [*self.answer]}

    def request(self, given: Values, ids: FixedIds) -> RestRequest:
        """The request of the tool; raises InvalidInput for an unknown or missing argument, a text in place of a
        list, and a word that is none of the choices. The route checks the rest."""
        sent = {name: value for name, value in given.items() if value is not None}
        known = self.schema(ids)["properties"]
        for name, value in sent.items():
            if name not in known:
                is_fixed = name in ids and self.is_scoped
                reason = "is fixed by this connection; leave it out" if is_fixed else "is not an argument of this tool"
                raise InvalidInput(f"{name[:60]}: {reason}.", field=name[:60])
            if known[name].get("type") == "array" and not isinstance(value, list):  # the route would split a text
                raise InvalidInput(f"{name}: must be a list.", field=name)
            choices = known[name].get("enum")
            if choices and value not in choices:  # the route may take more
                raise InvalidInput(f"{name}: must be one of {', '.join(choices)}.", field=name)
        for name in self.needed:
            if name not in sent:
                raise InvalidInput(f"{name}: is missing.", field=name)
        path = re.sub(r"{(\w+)}", lambda match: in_path(match[1], sent.pop(match[1])), self.path)
        values = {**self.also, **sent}
        for name in sent:
            values |= self.implied.get(name, {})
        fixed = {name: value for name, value in ids.items() if self.is_scoped or name in IDS}
        if self.method == "GET":
            return RestRequest(self.method, path, {**values, **fixed})
        if self.is_scoped:
            return RestRequest(self.method, path, {}, {**values, **fixed})
        return RestRequest(self.method, path, fixed, values)


# -- what an agent sees ------------------------------------------------------------------------------------------------


def select_fields(values: Values, *names: str) -> dict[str, Any]:
    """The fields with these names that are not empty, numbers with three digits."""
    selected = {name: values[name] for name in names if values.get(name) not in (None, [], {})}
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in selected.items()}


def show_memory(values: Values) -> dict[str, Any]:
    times = ("timestamp", "t_valid", "t_invalid", "expires_at")
    more = ("conversation_id", "may_be_outdated_by", "version_of", "score", "answer_probability")
    return select_fields(values, "id", "memory", "type", "importance", "tags", *times, *more)


def _show_stored(body: Values) -> dict[str, Any]:
    items = [
        {
            **select_fields(each, "event", "id", "memory", "old_memory", "type", "tags"),
            **({"redacted": hidden} if (hidden := each["pii"]["redactions"]) else {}),
        }
        for each in body["results"]
    ]
    return {"results": items, "warnings": body["warnings"]}


def _show_recall(body: Values) -> dict[str, Any]:
    facts = [select_fields(each, "id", "memory", "score") for each in body["facts"]]
    turns = sorted({each["conversation_id"] for each in body["turns"]})
    answerable = {name: body[name] for name in ("answerable", "answer_probability")}
    return {"context": body["markdown"] or "", "facts": facts, "conversations": turns, **answerable}


def _show_found(body: Values) -> dict[str, Any]:
    answerable = {name: body[name] for name in ("answerable", "answer_probability")}
    return {"results": [_show_hit(each) for each in body["results"]], "warnings": body["warnings"], **answerable}


def _show_hit(hit: Values) -> dict[str, Any]:
    if hit["source"] == "memory":
        return show_memory(hit)
    return {**show_memory(hit), "source": f"turn, said by {hit['speaker'] or hit['role'].capitalize()}"}


def _page(body: Values) -> dict[str, Any]:
    return {"results": [show_memory(each) for each in body["results"]], "next_cursor": body["next_cursor"]}


def _show_forgotten(body: Values) -> dict[str, Any]:
    turns = [select_fields(each, "conversation_id", "text", "reason") for each in body["turns"]]
    kept = {name: body[name] for name in ("dry_run", "removed", "explanation", "memories", "near_misses", "warnings")}
    return {**kept, "sentences": turns}


def _show_related(body: Values) -> dict[str, Any]:
    return select_fields(body, "source_id", "target_id", "type", "strength")


def _show_explanation(body: Values) -> dict[str, Any]:
    names = ("quote", "role", "speaker", "timestamp", "conversation_id")
    decided = ("event", "source", "reason", "before", "after", "state", "created_at")
    return {
        "id": body["id"],
        "memory": body["memory"],
        "sources": [select_fields(each, *names) for each in body["sources"]],
        "decisions": [select_fields(each, *decided) for each in body["decisions"]],
        "changes": [select_fields(each, "event", "old_memory", "new_memory", "timestamp") for each in body["changes"]],
    }


def show_goal(goal: Values) -> dict[str, Any]:
    more = ("deadline", "overdue", "result", "parent_id", "blocked_by")
    return select_fields(goal, "id", "description", "status", "priority", *more)


def _goals(body: Values) -> dict[str, Any]:
    return {"results": [show_goal(each) for each in body["results"]], "next_cursor": body.get("next_cursor")}


# -- the table ---------------------------------------------------------------------------------------------------------

ANSWERABLE: Mapping[str, Schema] = {
    "answerable": {
        "anyOf": [{"type": "boolean"}, {"type": "null"}],
        "description": "false: perhaps the answer is not in memory. Often wrong in a small one: judge the texts",
    },
    "answer_probability": {"anyOf": [{"type": "number"}, {"type": "null"}]},
}
ONE_MEMORY: Mapping[str, Schema] = {name: {"type": "string"} for name in ("id", "memory")}
ONE_GOAL: Mapping[str, Schema] = {name: {"type": "string"} for name in ("id", "description", "status")}

TOOLS: Sequence[AgentTool] = (
    AgentTool(
        "remember",
        "Store one lasting fact, preference or decision as a sentence that stands alone. What is known already is not "
        "stored twice, and newer facts replace older ones.",
        "POST",
        "/v1/memories",
        {
            "content": text("One fact, at most 2,000 characters", minLength=1),
            "type": TYPE,
            "importance": IMPORTANCE,
            "tags": TAGS,
            "metadata": METADATA,
            "embedding": array("Its vector, if you made one", {"type": "number"}, 1_536),
            "timestamp": moment("When it happened, default now"),
            "session_id": text("Your name for the chat", maxLength=255),
        },
        _show_stored,
        {"results": LIST, "warnings": TEXTS},
        needed=("content",),
        also={"limits": "strict"},
    ),
    AgentTool(
        "remember_conversation",
        "Pass on what was said; the facts are read from it, and the turns are kept.",
        "POST",
        "/v1/memories",
        {
            "messages": array(
                "In their order",
                {
                    "type": "object",
                    "properties": {"role": text("user or assistant"), "content": text("What was said")},
                    "required": ["role", "content"],
                },
                MESSAGES_AT_ONCE,
            ),
            "session_id": text("The conversation's name; further messages join it", maxLength=255),
            "timestamp": moment("When it was said, default now"),
        },
        _show_stored,
        {"results": LIST, "warnings": TEXTS},
        needed=("messages",),
    ),
    AgentTool(
        "recall",
        "Everything that helps to answer a question, as one text: facts, what was said, names, goals, the profile. Use "
        "it before you answer about earlier chats or the user.",
        "POST",
        "/v1/recall",
        {
            "query": text("The question, in plain words", minLength=1, maxLength=20_000),
            "max_tokens": integer("Length of the text, default 2000", 50, 200_000),
            "valid_at": moment("Facts that held then, default now"),
        },
        _show_recall,
        {"context": {"type": "string"}, "facts": LIST, "conversations": TEXTS, **ANSWERABLE},
        needed=("query",),
        also={"format": "markdown"},
        reads_only=True,
        as_text=lambda answer: answer["context"] or "Nothing is remembered that helps to answer this.",
    ),
    AgentTool(
        "search",
        "Single memories that answer a query, best first, with the ids that update, forget, relate and why need; and "
        "turns that say what no memory does (source), whose ids those do not take.",
        "POST",
        "/v1/memories/search",
        {
            "query": text("In plain words", minLength=1, maxLength=20_000),
            "limit": integer("Default 10", 1, 1_000),
            "tags": TAGS,
            "types": array("One of these", text("", enum=TYPES), 7),
            "time_query": text("When it happened, such as last week", maxLength=200),
            "valid_at": moment("What held then, default now"),
        },
        _show_found,
        {"results": LIST, "warnings": TEXTS, **ANSWERABLE},
        needed=("query",),
        also={"limit": 10},
        reads_only=True,
    ),
    AgentTool(
        "list_memories",
        "All memories, newest first, page by page.",
        "GET",
        "/v1/memories",
        {
            "limit": integer("Default 20", 1, 1_000),
            "cursor": text("next_cursor of the previous page", maxLength=300),
            "tags": TAGS,
            "types": array("One of these", text("", enum=TYPES), 7),
        },
        _page,
        {"results": LIST, "next_cursor": OR_NULL},
        also={"limit": 20},
        reads_only=True,
    ),
    AgentTool(
        "update",
        "Correct a memory. What you leave out stays; what it said before is kept in its history.",
        "PATCH",
        "/v1/memories/{id}",
        {
            "id": MEMORY_ID,
            "content": text("The text that is right", minLength=1),
            "type": TYPE,
            "importance": IMPORTANCE,
            "tags": TAGS,
            "type_confidence": share("how sure the type is"),
            "metadata": METADATA,
            "timestamp": moment("When it happened; needs a key with memory:admin"),
            "t_invalid": moment("When it stopped being true"),
        },
        show_memory,
        ONE_MEMORY,
        needed=("id",),
        implied={"timestamp": {"allow_system_fields": True}},
        is_scoped=False,
        destroys=True,
        repeatable=True,
    ),
    AgentTool(
        "forget",
        "Delete what a query means (a name, a number, words), or memories by their ids, and the sentences they were "
        "read from. Only when the user wants it. With dry_run it shows what would go.",
        "POST",
        "/v1/forget",
        {
            "query": text("What to forget; instead of ids", maxLength=2_000),
            "ids": array("UUIDs of memories", {"type": "string", "format": "uuid"}, 1_000),
            "session_id": text("Only what belongs to this session", maxLength=255),
            "dry_run": {"type": "boolean", "description": "Show, and delete nothing"},
        },
        _show_forgotten,
        {
            "dry_run": {"type": "boolean"},
            "removed": {"type": "boolean"},
            "explanation": {"type": "string"},
            "memories": LIST,
            "sentences": LIST,
            "near_misses": LIST,
            "warnings": TEXTS,
        },
        destroys=True,
        repeatable=True,
    ),
    AgentTool(
        "relate",
        "Connect two memories: the first one stands in this relation to the target.",
        "POST",
        "/v1/memories/{id}/relations",
        {
            "id": MEMORY_ID,
            "target_id": uuid("UUID of the other memory"),
            "type": text("Read from the first to the target", enum=AUTHORABLE),
            "strength": share("default 1"),
        },
        _show_related,
        {name: {"type": "string"} for name in ("source_id", "target_id", "type")},
        needed=("id", "target_id", "type"),
        is_scoped=False,
    ),
    AgentTool(
        "why",
        "Where a memory comes from: the words it was read from, what was decided about it, every change.",
        "GET",
        "/v1/memories/{id}/why",
        {"id": MEMORY_ID, "limit": integer("Of sources and decisions, default 100", 1, 1_000)},
        _show_explanation,
        {"id": {"type": "string"}, "memory": OR_NULL, "sources": LIST, "decisions": LIST, "changes": LIST},
        needed=("id",),
        is_scoped=False,
        reads_only=True,
    ),
    AgentTool(
        "goals",
        "What is to be achieved, newest first.",
        "GET",
        "/v1/goals",
        {
            "status": text("Default all", enum=("active", "blocked", "completed", "abandoned")),
            "limit": integer("Default 20", 1, 1_000),
            "cursor": text("next_cursor of the previous page", maxLength=200),
        },
        _goals,
        {"results": LIST, "next_cursor": OR_NULL},
        also={"limit": 20},
        reads_only=True,
    ),
    AgentTool(
        "set_goal",
        "Set a goal; memories related to it rank higher until it is closed.",
        "POST",
        "/v1/goals",
        {
            "description": text("What is to be achieved", minLength=1, maxLength=4_000),
            "priority": integer("Higher comes first, default 0", -1_000, 1_000),
            "deadline": moment("When it is due"),
            "parent_id": uuid("UUID of the goal that it is a part of"),
        },
        show_goal,
        ONE_GOAL,
        needed=("description",),
    ),
    AgentTool(
        "close_goal",
        "A goal is reached, or given up.",
        "POST",
        "/v1/goals/{id}/complete",
        {
            "id": uuid("UUID of the goal"),
            "status": text("Default completed", enum=("completed", "abandoned")),
            "result": text("How it ended", minLength=1, maxLength=4_000),
        },
        show_goal,
        ONE_GOAL,
        needed=("id",),
        is_scoped=False,
    ),
)
BY_NAME: Mapping[str, AgentTool] = {tool.name: tool for tool in TOOLS}
