"""The page /docs/errors, which the `type` of every problem links to: the codes, their causes, and what to do.

A test compares it with docs/errors.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from types import MappingProxyType

PAGE = "/docs/errors"


@dataclass(frozen=True, slots=True)
class ErrorHelp:
    """Help on an error. `status`: of the response; `when`: its cause; `then`: what a client should do."""

    status: str
    when: str
    then: str


def page_of(code: str) -> str:
    """URL of the explanation of a code, relative to the service."""
    return f"{PAGE}#{code}"


def html() -> bytes:
    """The page, which needs no other resources."""
    rows = (
        (f'<tr id="{code}"><td><code>{code}</code>', error_help.status, error_help.when, error_help.then)
        for code, error_help in HELP.items()
    )
    cells = "\n".join("<td>".join((begin, *map(escape, said))) for begin, *said in rows)
    return SHELL.format(rows=cells).encode()


SHELL = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Loxodon: errors</title>
<style>
body {{ font: 16px/1.5 sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em }}
td, th {{ text-align: left; vertical-align: top; padding: .4em .8em; border-bottom: 1px solid #ddd }}
:target {{ background: #fff3c4 }}
</style>
<h1>Errors</h1>
<p>Programs read <code>code</code>, people read <code>detail</code>; <code>field</code> names the part of the request
that is wrong. 429 and 503 have a <code>Retry-After</code> in seconds.
<table><tr><th>code<th>status<th>when<th>what a client does
{rows}</table></html>
"""

HELP: Mapping[str, ErrorHelp] = MappingProxyType(
    {
        "invalid_input": ErrorHelp(
            "400",
            "The request cannot be used: a field is missing, unknown, of the wrong type or out of range",
            "Correct the request; field says where",
        ),
        "scope_error": ErrorHelp(
            "400",
            "No user_id, agent_id or run_id, neither in the request nor as the key's default",
            "Name at least one",
        ),
        "too_large": ErrorHelp(
            "400, 413",
            "A text, a list or a value is over its limit (400), or the whole body is (413)",
            "Send less",
        ),
        "pii_rejected": ErrorHelp(
            "422",
            "The text announces a secret that cannot be cut out, or an id, a header or another name "
            "contains one (redaction)",
            "Remove the secret; nothing is stored",
        ),
        "unauthenticated": ErrorHelp(
            "401",
            "No API key; an unknown, expired or revoked one; a token that is malformed or expired, or whose key was "
            "revoked; or a key in the URL (?api_key=) if the service does not accept that",
            "Send a valid key in Authorization: Bearer",
        ),
        "forbidden": ErrorHelp(
            "403",
            "The key is valid but lacks the right, or is made for another user, agent, run or channel (keys)",
            "Use a key with the right that detail names, or that reaches the field",
        ),
        "not_found": ErrorHelp(
            "404",
            "Nothing of that kind in the key's workspace, or no such route",
            "Do not repeat",
        ),
        "method_not_allowed": ErrorHelp(
            "405",
            "The address supports other methods; Allow lists them",
            "Use one of them",
        ),
        "http_error": ErrorHelp(
            "as sent",
            "Any other refusal of the HTTP layer",
            "Read detail",
        ),
        "conflict": ErrorHelp(
            "409",
            "The request conflicts with stored data, such as an id of another scope",
            "Read the current state and decide again",
        ),
        "idempotency_mismatch": ErrorHelp(
            "409",
            "The Idempotency-Key was used with another request within 24 hours",
            "Use a new key for a new request",
        ),
        "place_lost": ErrorHelp(
            "410",
            "The change feed cannot be continued from this after: the database was restored from a dump, or the "
            "changes after it are no longer kept",
            "Begin with after=now, and read all memories again",
        ),
        "precondition_failed": ErrorHelp(
            "412",
            "If-Match names a version that is no longer the current one",
            "Read it again, change that version, and send its ETag",
        ),
        "request_timeout": ErrorHelp(
            "408",
            "The body arrived too slowly",
            "Send it again, in one go",
        ),
        "rate_limited": ErrorHelp(
            "429",
            "A budget of the key or its workspace is used up, or too many wrong keys came from this address (limits)",
            "Wait for Retry-After",
        ),
        "too_many_requests": ErrorHelp(
            "429",
            "Too many requests of the workspace are waiting already (limits)",
            "Wait for Retry-After; send fewer at once",
        ),
        "unavailable": ErrorHelp(
            "503",
            "The service cannot do it now, or too many requests are waiting already",
            "Wait for Retry-After, then repeat",
        ),
        "store_unavailable": ErrorHelp(
            "503",
            "Postgres cannot be reached, is overloaded, or a lock was not free in time. Nothing was written",
            "Wait for Retry-After, then repeat",
        ),
        "schema_mismatch": ErrorHelp(
            "503",
            "A newer version of the service has changed the schema: this process serves reads only, or "
            "nothing. Nothing was written",
            "Wait for Retry-After, then repeat",
        ),
        "outcome_unknown": ErrorHelp(
            "503",
            "The connection to Postgres was lost during COMMIT. It was written as a whole, or not at all; the "
            "service cannot know which",
            "Repeat with the same Idempotency-Key: you get the stored answer, or the write is done now. "
            "Without a key, read the state first",
        ),
        "deadline_exceeded": ErrorHelp(
            "503",
            "A search or recall took longer than 15 s, or any request longer than "
            "LOXODON_REQUEST_DEADLINE_S. Nothing was written",
            "Repeat later, or ask for less; send less at once, or store with Prefer: respond-async",
        ),
        "client_gone": ErrorHelp(
            "503",
            "The client closed the connection during a search; it appears in the log only",
            "Nothing",
        ),
        "provider_error": ErrorHelp(
            "503",
            "A model server failed or could not be reached",
            "Wait for Retry-After, then repeat",
        ),
        "embedding_error": ErrorHelp(
            "503",
            "The text could not be embedded. Nothing was written",
            "The same",
        ),
        "llm_error": ErrorHelp(
            "503",
            "The language model failed, and the request cannot do without it",
            "The same",
        ),
        "model_budget": ErrorHelp(
            "503",
            "The workspace has used up its budget for the language model today (limits). No route returns it: "
            "requests do without the model, and jobs wait",
            "Wait until the day ends in UTC, or raise the limit",
        ),
        "rerank_error": ErrorHelp(
            "503",
            "The reranker failed; searches do without it and warn",
            "The same",
        ),
        "internal_error": ErrorHelp(
            "500",
            "A bug in the service; the log has it under the request id",
            "Report it with request_id",
        ),
        "service_error": ErrorHelp(
            "500",
            "The base of all errors; no route returns it",
            "Report it with request_id",
        ),
    }
)
