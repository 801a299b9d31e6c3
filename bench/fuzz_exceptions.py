"""What generated requests may meet although the OpenAPI document says otherwise, each with its reason.

Schemathesis loads this file (SCHEMATHESIS_HOOKS) and asks it about every failure that it finds. What is not listed here
fails the run: it belongs into the document, or into the service.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import schemathesis
from schemathesis import Case, HookContext, Response
from schemathesis.core.failures import Failure

from bench import fuzz_values as fuzz_values

REFUSED, TAKEN, ALLOW = "RejectedPositiveData", "AcceptedNegativeData", "AllowHeaderMismatch"
IGNORED, UNSUPPORTED = "IgnoredAuth", "UnsupportedMethodResponse"
ANY = r".*"


@dataclass(frozen=True, slots=True)
class ListedFailure:
    """`kind` of failure at operations that match `operation`, answered with a detail that matches `detail`."""

    kind: str
    operation: str
    detail: str
    reason: str

    def covers(self, kind: str, operation: str, detail: str) -> bool:
        return (
            self.kind == kind
            and re.fullmatch(self.operation, operation) is not None
            and re.match(self.detail, detail, re.DOTALL) is not None
        )


TWO = "Two parameters or two fields, of which one is enough; the descriptions say it"

LISTED = (
    # -- rules between parameters and fields, which the document tells in words (docs/decisions/020-answers.md)
    ListedFailure(REFUSED, ANY, "At least one of user_id, agent_id", "One of three parameters, or the key's own id"),
    ListedFailure(REFUSED, ANY, "[a-z_]+: cannot be combined with shared", TWO),
    ListedFailure(REFUSED, ANY, "include_shared: cannot be combined with shared", TWO),
    ListedFailure(
        REFUSED, ANY, r"[\w.\[\]]+: (give|requires) ", "What excludes or needs what; the descriptions say it"
    ),
    ListedFailure(
        REFUSED, "POST /v1/operations", "messages: are required|dry_run: send it", "It stores a conversation"
    ),
    ListedFailure(REFUSED, ANY, "scope_mode: exact cannot be combined", TWO),
    ListedFailure(
        REFUSED, ANY, "query: (give a query|is required)", "A search needs one of several, and empty lists do not count"
    ),
    ListedFailure(REFUSED, "GET /v1/memories", "[a-z_]+: cannot be combined with state=deleted", TWO),
    ListedFailure(REFUSED, ANY, "(explain_id|connected): (needs a query|cannot be combined with as_of)", TWO),
    ListedFailure(REFUSED, ANY, "validity: is about now; give", TWO),
    ListedFailure(REFUSED, "POST /v1/recall", "as_of: applies to turns and facts only", TWO),
    ListedFailure(REFUSED, "POST /v1/entities/relations", "target_id: an entity cannot be related to itself", TWO),
    ListedFailure(
        REFUSED, ".* /v1/api-keys.*", "rights: .* covers the whole workspace", "Rights against the key's reach"
    ),
    ListedFailure(
        REFUSED, "POST /v1/tokens", "rights: a token cannot have", "Not every right of a key is one of a token"
    ),
    ListedFailure(
        REFUSED, ".* /v1/api-keys.*", "defaults.*: is outside what the key can access", "Defaults against its reach"
    ),
    ListedFailure(REFUSED, ANY, "cursor: (results for a query come|requires exactly one section)", TWO),
    ListedFailure(REFUSED, ANY, "turn_id: needs conversation_id", TWO),
    ListedFailure(REFUSED, ANY, r"(.*\.)?[a-z_]+: is set by the service; pass allow_system_fields", TWO),
    ListedFailure(REFUSED, ANY, r"changes\[\d+\]\.kept_(id|version): is required for", TWO),
    ListedFailure(REFUSED, "POST /v1/jobs/.*", "[a-z]+_id: a job of the whole service", "Which jobs have a scope"),
    ListedFailure(REFUSED, "POST /v1/tokens", "user_id: a token requires user_id", TWO),
    ListedFailure(REFUSED, ANY, "weights: at least one weight must be above 0", "A sum over several fields"),
    ListedFailure(REFUSED, ANY, "(items|messages): .* were sent; the maximum is", "A limit that the operator sets"),
    # -- rules over values that a schema cannot compare or know
    ListedFailure(
        REFUSED, "POST /v1/jobs/.*", "name: only these can be run", "Which jobs are whose, the description says"
    ),
    ListedFailure(REFUSED, ANY, "messages: none of them has a text", "Parts without text and blanks say nothing"),
    ListedFailure(REFUSED, ANY, r"(.*\.)?(start|since|from|t_valid): must be before", "Two moments in their order"),
    ListedFailure(
        REFUSED, ANY, r"(.*\.)?(expires_at|as_of|deadline): (must not be|lies) in the", "Before or after now"
    ),
    ListedFailure(REFUSED, ".* /v1/webhooks.*", "url: (is|must) ", "Which addresses are public no pattern can tell"),
    ListedFailure(
        REFUSED,
        ANY,
        "(cursor: (is invalid|belongs to)|after: must be)",
        "Only what the service itself made is a cursor",
    ),
    ListedFailure(REFUSED, ANY, "((The )?filters|tuning: is not valid JSON)", "JSON inside a parameter"),
    ListedFailure(REFUSED, ANY, ".*has changed since", "If-Match of a version that is not there"),
    ListedFailure(REFUSED, ANY, r"(.*\.)?timezone: must be an IANA", "The names are those of the zone database"),
    ListedFailure(REFUSED, ANY, r".*embedding: has \d+ dimensions", "The dimension is a setting"),
    ListedFailure(REFUSED, "PATCH /v1/workspaces/current", "settings", "docs/configuration.md has the range of each"),
    # -- rules over letters
    ListedFailure(REFUSED, ANY, ".*must not be blank", "Letters that cannot be seen are more than white space"),
    ListedFailure(REFUSED, ANY, ".*: name at least one", "Commas and blanks name nothing"),
    ListedFailure(REFUSED, ANY, "types: at most 20 are allowed, and each must contain", "The same"),
    ListedFailure(REFUSED, "GET .*", r"[a-z_]+\[\d+\]: String should", "A parameter holds several between commas"),
    ListedFailure(
        REFUSED,
        "GET .*",
        "types: (must have at most 7|must be one of)",
        "A parameter holds several between commas",
    ),
    ListedFailure(REFUSED, ANY, ".*contains a NUL character", "Postgres cannot store it"),
    ListedFailure(REFUSED, ANY, ".*contains a number beyond 1e308", "jsonb cannot store it"),
    ListedFailure(REFUSED, ANY, ".*must be a valid integer", "1.0 is an integer for JSON Schema, not for us"),
    ListedFailure(REFUSED, ANY, ".*must not be . or ..", "Clients of HTTP take them out of a path"),
    ListedFailure(REFUSED, ANY, ".*must be between the years", "The calendar ends where Postgres has infinity"),
    ListedFailure(REFUSED, ANY, ".*must not be longer than 512 bytes", "maxLength counts letters, an index bytes"),
    # -- what is refused for another reason than the checks know
    ListedFailure(
        IGNORED,
        ANY,
        "Expected 401 or 403, got `429 ",
        "From the hundredth wrong key in a minute on",
    ),
    ListedFailure(TAKEN, ANY, "The body is larger than", "413, which the check does not count as a refusal"),
    # -- what is taken although the document is stricter
    ListedFailure(TAKEN, "POST /v1/memories/batch(/update)?", ANY, "Each item has its own outcome, an invalid one too"),
    # -- addresses below a template
    ListedFailure(
        UNSUPPORTED,
        r".* /v1/(memories|entities|strategies|turns|jobs)/[a-z-]+",
        ANY,
        "As an {id} it answers what is wrong there",
    ),
    ListedFailure(ALLOW, ANY, ANY, "/entities/graph is an {id} for the other methods, and then answers 404"),
)


@schemathesis.hook
def filter_failure(context: HookContext, failure: Failure, case: Case[Any], response: Response) -> bool:
    """False for a failure that is listed."""
    kind, operation = type(failure).__name__, case.operation.label
    said = failure.message if kind == IGNORED else detail(response)  # its response is to the good key
    return not any(each.covers(kind, operation, said) for each in LISTED)


def detail(response: Response) -> str:
    """What the answer says is wrong; empty when it says nothing."""
    try:
        found = response.json()
    except ValueError:
        return ""
    return str(found.get("detail", "")) if isinstance(found, dict) else ""
