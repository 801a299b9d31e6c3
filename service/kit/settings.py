"""All settings, in groups, each with its unit, range, default and purpose.

`Settings.from_env(os.environ)` is the only reader of the environment. Every setting has one flat name, the alias of its
field (`llm.timeout_s` is `llm_timeout_s`): as `LOXODON_LLM_TIMEOUT_S` in the environment, and as it stands in the
settings of a workspace and in GET /v1/config. The names in `UNPREFIXED`, customary without the prefix (DATABASE_URL,
OPENAI_API_KEY, LLM_MODEL, ...), are read when the prefixed one is not set. A workspace may override those in
`PER_WORKSPACE`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
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

from service.domain import sizes
from service.domain.ageing import Ageing, Promoting
from service.domain.job import JobIntervals
from service.domain.model_budget import ModelBudget, lower
from service.domain.ranking import Ranking, Techniques
from service.kit import postgres_url

PREFIX = "LOXODON_"

UNPREFIXED: Mapping[str, str] = {
    "database_url": "DATABASE_URL",
    "openai_api_key": "OPENAI_API_KEY",
    "anthropic_api_key": "ANTHROPIC_API_KEY",
    "google_api_key": "GOOGLE_API_KEY",
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

OTHERS = frozenset(
    {
        "LOXODON_PG_BIN", "LOXODON_API_PASSWORD", "LOXODON_JOBS_PASSWORD", "LOXODON_MIGRATE_PASSWORD",
        "LOXODON_MCP_USER_ID", "LOXODON_MCP_AGENT_ID", "LOXODON_MCP_RUN_ID", "LOXODON_MCP_CHANNEL",
    }
)  # fmt: skip
"""Variables with our prefix that are not settings: of the embedded Postgres, compose.yaml and the command `mcp`."""

PER_WORKSPACE = frozenset(
    {
        "ageing", "audit_level", "classifier_use_llm", "contradiction_policy", "custom_prompts", "dedup_exact",
        "dedup_near", "graph_enabled", "include_shared", "job_intervals_min",
        "memory_retention_days", "model_budget", "promoting", "recall_relation_limit", "reinforce",
        "search_techniques", "timezone", "working_ttl_s",
    }
)  # fmt: skip

LIMITS = frozenset({"memory_retention_days", "model_budget"})
"""Limits: the lower one applies, the service's or the workspace's."""

GRANTED = "granted"
"""Key in a workspace's settings; holds the limits that an operator set for it instead of the service's."""

MIN_FIRST_KEY_CHARS = 20
ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d{1,5})?|https?://\[[0-9a-f:]+\](:\d{1,5})?")


class SettingsError(Exception):
    """The environment holds a value that cannot be used; the message names the variable."""


def _normal_url(value: SecretStr, known: ValidationInfo) -> SecretStr:
    least, ca_file = known.data.get("tls", "prefer"), known.data.get("ca_file")
    return SecretStr(postgres_url.normal(value.get_secret_value(), least=least, ca_file=ca_file))


def _check_key(value: SecretStr) -> SecretStr:
    if len(value.get_secret_value()) < MIN_FIRST_KEY_CHARS:
        raise ValueError(f"must have at least {MIN_FIRST_KEY_CHARS} characters: nothing but its length protects it")
    if not re.fullmatch("[!-~]+", value.get_secret_value()):
        raise ValueError("must be of ASCII letters, digits and signs, without blanks: it is sent in a header")
    return value


def check_zone(value: str) -> str:
    """The value; raises ValueError if it is not an IANA time zone."""
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be an IANA time zone such as Europe/Berlin") from None
    return value


def _split(value: object) -> object:
    """The parts of an environment variable, between commas."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _split_urls(value: object) -> object:
    """The URLs of an environment variable; one that names several hosts contains commas, too."""
    return tuple(re.split(r"\s*,\s*(?=postgres)", value.strip(" ,"))) if isinstance(value, str) else value


def _check_origins(value: tuple[str, ...]) -> tuple[str, ...]:
    for origin in value:
        if not ORIGIN.fullmatch(origin):
            raise ValueError("must be origins such as https://app.example:8443: scheme and host, without path or *")
    return value


def _check_networks(value: tuple[str, ...]) -> tuple[str, ...]:
    for network in value:
        try:
            ip_network(network)
        except ValueError:
            raise ValueError(f"{network!r} is not a network such as 10.0.0.0/8 or 127.0.0.1/32") from None
    return value


def _check_proxies(value: str) -> str:
    if value != "*":
        _check_networks(tuple(part.strip() for part in value.split(",")))
    return value


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


FirstSecret = Annotated[SecretStr, AfterValidator(_check_key)]
PostgresUrl = Annotated[SecretStr, AfterValidator(_normal_url)]
PostgresUrls = Annotated[tuple[PostgresUrl, ...], BeforeValidator(_split_urls)]
Zone = Annotated[str, AfterValidator(check_zone)]
Networks = Annotated[tuple[str, ...], BeforeValidator(_split), AfterValidator(_check_networks)]
Origins = Annotated[tuple[str, ...], BeforeValidator(_split), AfterValidator(_check_origins)]
MAX_DAYS_KEPT = 36_500
DaysKept = Annotated[int, Field(ge=1, le=MAX_DAYS_KEPT)]
Dimension = Annotated[Literal[384, 768, 1024, 1536], BeforeValidator(int)]
FromJson = BeforeValidator(_parse_json)


def _after(prefix: str) -> Callable[[str], str]:
    """Flat names that are the prefix and the field's name."""
    return lambda name: prefix + name


class _Group(BaseModel):
    """Settings of one capability."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ServerSettings(_Group):
    """Address, limits and access of the API, and the logs of all processes."""

    host: str = "127.0.0.1"  # where the API listens; 0.0.0.0 for every interface
    port: int = Field(default=8080, ge=1, le=65535)  # TCP port of the API
    data_dir: Path = Field(default_factory=lambda: platformdirs.user_data_path("loxodon"))  # embedded Postgres, key
    bootstrap_api_key: FirstSecret | None = None  # created once, with every right; revoking it lasts
    token_secret: SecretStr | None = Field(default=None, min_length=32)  # signs tokens; None: one kept in the database
    auth_allow_query: bool = False  # ?api_key=...: proxies and browsers keep URLs, and so the key
    key_requests_per_s: float = Field(default=0.0, ge=0, le=1_000_000)  # of each key, in each process; 0: no limit
    request_deadline_s: float = Field(default=24.0, gt=0, le=600)  # then 503 if nothing was written; clients wait 25 s
    trusted_proxies: Annotated[str, AfterValidator(_check_proxies)] = "127.0.0.1"  # whose X-Forwarded-For is believed
    webhook_networks: Networks = ()  # private ones that webhooks may reach, over http too, between commas
    cors_origins: Origins = ()  # pages whose scripts may call the API, between commas
    serve_docs: bool = True  # /docs and /openapi.json, which need no key
    serve_console: bool = True  # /console, whose files need no key; what they show does
    log_level: Literal["debug", "info", "warning", "error"] = "info"


class ClientSettings(_Group):
    """The service that the commands talk to."""

    url: str | None = None  # None: http://127.0.0.1:<port>
    api_key: SecretStr | None = None  # None: the first key in the data folder, without a url


class DatabaseSettings(_Group):
    """Postgres. `tls` and `ca_file` come before the URLs, whose validation reads them."""

    tls: postgres_url.LeastTls = Field(default="prefer", alias="database_tls")  # the least for another machine
    ca_file: Path | None = Field(default=None, alias="database_ca_file")  # for URLs without sslrootcert
    url: PostgresUrl | None = Field(default=None, alias="database_url")  # None: `make run` starts the embedded server
    worker_url: PostgresUrl | None = Field(default=None, alias="worker_database_url")  # the worker's login; None: url
    owner_url: PostgresUrl | None = Field(default=None, alias="owner_database_url")  # the migrations' login; None: url
    listen_url: PostgresUrl | None = Field(default=None, alias="listen_database_url")  # for LISTEN past a pooler
    read_urls: PostgresUrls = Field(default=(), alias="read_database_url")  # standbys that serve reads, between commas
    read_max_lag_s: float = Field(default=5.0, ge=0.1, le=300)  # how far behind a read may be that names no position
    pooler: Literal["none", "transaction"] = Field(default="none")  # transaction: unnamed statements
    pool_size: int = Field(default=10, ge=1, le=200)  # connections per process
    vector_partitions: int = Field(default=1, ge=1, le=64)  # for the first migration


class EmbedderSettings(_Group, alias_generator=_after("embedder_")):
    """The embedder: recorded by the first start, changed by `loxodon reembed`."""

    provider: str = "local"  # or a hosted one: openai, azure_openai, google, ollama, huggingface, vllm, custom
    model: str | None = None  # None: the provider's usual one. local: a folder with model.onnx and tokenizer.json
    base_url: str | None = None  # another OpenAI-compatible server
    api_key: SecretStr | None = None  # None: the provider's own variable
    old_base_url: str | None = Field(default=None, alias="old_embedder_base_url")  # of the one being replaced
    old_api_key: SecretStr | None = Field(default=None, alias="old_embedder_api_key")  # None: the key of its provider
    dim: Dimension = Field(default=384, alias="embedding_dim")  # of a hosted model; the local one has 384
    threads: int = Field(default=2, ge=1, le=64)  # CPU threads of the local model


class CustomPrompts(BaseModel):
    """Instructions that replace ours."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fact_extraction: str | None = None
    update_decision: str | None = None


class LlmSettings(_Group, alias_generator=_after("llm_")):
    """The language model; off without a key or address."""

    provider: str | None = None  # None: the first provider with a key; `none` keeps it off
    model: str | None = None  # None: the provider's usual one
    extraction_model: str | None = Field(default=None, alias="extraction_model")  # instead of model, to extract facts
    base_url: str | None = None  # another OpenAI-compatible server
    api_key: SecretStr | None = None  # None: the provider's own variable
    openai_api_key: SecretStr | None = Field(default=None, alias="openai_api_key")  # switches the model on
    anthropic_api_key: SecretStr | None = Field(default=None, alias="anthropic_api_key")  # switches the model on
    google_api_key: SecretStr | None = Field(default=None, alias="google_api_key")  # switches the model on
    temperature: float = Field(default=0.0, ge=0, le=2)  # of every task but classification
    max_tokens: int = Field(default=2_000, ge=16, le=1_000_000)  # longest answer
    timeout_s: float = Field(default=20.0, gt=0, le=3_600)  # one request, retries included
    classifier_use_llm: bool = Field(default=True, alias="classifier_use_llm")  # off: by patterns, else Context
    budget: Annotated[ModelBudget, FromJson] = Field(default=ModelBudget(), alias="model_budget")  # JSON: of a day
    prompts: Annotated[CustomPrompts, FromJson] = Field(default=CustomPrompts(), alias="custom_prompts")  # JSON


class MemorySettings(_Group):
    """How texts become memories, and how long they are kept."""

    dedup_exact: float = Field(default=0.98, ge=0, le=1)  # similarity from which a text is a duplicate
    dedup_near: float = Field(default=0.70, ge=0, le=1)  # similarity from which a neighbour is put to the decision
    contradiction_policy: Annotated[
        Literal["in_place", "supersede", "prefer_old", "flag_review"], BeforeValidator(_policy)
    ] = "in_place"  # what becomes of the memory that a new fact contradicts; prefer_new is another word for in_place
    content_soft_limit: int = Field(default=500, ge=1, le=sizes.MAX_TEXT)  # characters; above it a warning
    content_hard_limit: int = Field(default=2_000, ge=1, le=sizes.MAX_TEXT)  # characters; limits=strict refuses more
    timezone: Zone = "UTC"  # IANA name, for requests that give none
    retention_days: DaysKept | None = Field(default=None, alias="memory_retention_days")  # until removal; None: kept
    working_ttl_s: int = Field(default=3_600, ge=1, le=604_800)  # of working memory, for requests that give none


class SearchSettings(_Group):
    """What a search does unless the request says otherwise."""

    techniques: Annotated[Techniques, FromJson] = Field(default=Techniques(), alias="search_techniques")  # JSON
    include_shared: bool = False  # reads see what the workspace shares
    reinforce: bool = True  # searches count as uses of what they found
    relation_limit: int = Field(default=5, ge=0, le=50, alias="recall_relation_limit")  # connected memories per hit
    rerank_provider: Literal["none", "llm"] = "none"  # llm: the language model reorders the first hits


class HistorySettings(_Group):
    """The audit log and the history: their extent, and how long entries are kept."""

    audit_level: Literal["off", "writes", "reads", "verbose"] = "writes"  # what the audit log records
    audit_retention_days: DaysKept = 365  # older partitions are dropped
    retention_days: DaysKept = Field(default=3_650, alias="history_retention_days")  # older partitions are dropped


class JobSettings(_Group):
    """The worker and its jobs."""

    concurrency: int = Field(default=4, ge=1, le=64, alias="worker_concurrency")  # jobs a worker runs at once
    port: int | None = Field(default=None, ge=1, le=65535, alias="worker_port")  # health and metrics; None: not served
    intervals_min: Annotated[JobIntervals, FromJson] = Field(default=JobIntervals(), alias="job_intervals_min")  # JSON
    graph_enabled: bool = True  # jobs draw relations and associations; entities are found either way
    ageing: Annotated[Ageing, FromJson] = Ageing()  # JSON: when memories and conversations count as unused
    promoting: Annotated[Promoting, FromJson] = Promoting()  # JSON: what becomes known in all channels


class Settings(BaseModel):
    """Everything that can be configured; frozen, so a value read at start is the value in force."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: ServerSettings = ServerSettings()
    client: ClientSettings = ClientSettings()
    database: DatabaseSettings = DatabaseSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    llm: LlmSettings = LlmSettings()
    memories: MemorySettings = MemorySettings()
    search: SearchSettings = SearchSettings()
    history: HistorySettings = HistorySettings()
    jobs: JobSettings = JobSettings()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The settings with these values, by flat name. Raises ValidationError."""
        return cls.model_validate(nest(values))

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Reads `env`; raises SettingsError naming the variable that cannot be used."""
        env = {**env, "GOOGLE_API_KEY": env.get("GOOGLE_API_KEY") or env.get("GEMINI_API_KEY", "")}  # Google reads both
        read: dict[str, Any] = {}
        for name in PLACES:
            for variable in (PREFIX + name.upper(), UNPREFIXED.get(name)):
                if variable and env.get(variable, "") != "":
                    read[name] = env[variable]
                    break
        try:
            return cls.of(read)
        except ValidationError as exc:
            first = exc.errors()[0]
            _, name, *inside = map(str, first["loc"])
            where = ".".join((f"{PREFIX}{name.upper()}", *inside))
            raise SettingsError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from exc

    @classmethod
    def check_overrides(cls, overrides: Mapping[str, Any]) -> None:
        """Raises ValidationError if a workspace may not have them; those outside PER_WORKSPACE are ignored."""
        for values in (overrides, overrides.get(GRANTED) or {}):
            known = {name: value for name, value in values.items() if name in PER_WORKSPACE}
            cls.model_validate_json(json.dumps(nest(known)), strict=True)

    @classmethod
    def misspelt(cls, env: Mapping[str, str]) -> list[str]:
        """A sentence for each variable that looks like one of ours and is not read."""
        ours = [name.upper() for name in PLACES]
        bare = set(UNPREFIXED.values())
        sentences = []
        for name in sorted(env.keys() - {PREFIX + each for each in ours} - bare - OTHERS):
            near: list[str] = []
            if name.startswith(PREFIX):
                near = [PREFIX + each for each in get_close_matches(name.removeprefix(PREFIX), ours, n=1)] or [""]
            elif name.startswith(("LLM_", "EMBEDDER_")):  # another program may have its own of these
                near = [PREFIX + name] if name in ours else get_close_matches(name, bare, n=1, cutoff=0.8)
            sentences += [f"{name} is not a setting{f': did you mean {each}?' if each else '.'}" for each in near]
        return sentences

    def value(self, name: str) -> Any:
        """The value of a setting, by flat name."""
        group, field = PLACES[name]
        return getattr(getattr(self, group), field)

    def changed(self, **changes: Any) -> Self:
        """A copy with other values, by flat name; fields of an object are merged into it. Raises ValidationError."""
        groups: dict[str, Any] = {}
        for group, inside in nest(changes).items():
            values = {name: self.value(name) for name, place in PLACES.items() if place[0] == group}
            for name, value in inside.items():
                is_object = isinstance(values[name], BaseModel) and isinstance(value, dict)
                values[name] = {**dict(values[name]), **value} if is_object else value
            groups[group] = type(getattr(self, group)).model_validate(values)
        return self.model_copy(update=groups)

    def for_workspace(self, overrides: Mapping[str, Any]) -> Self:
        """The settings of a workspace. Overrides outside PER_WORKSPACE are ignored."""
        service = self._overridden(overrides.get(GRANTED) or {})
        own = service._overridden(overrides)
        retention_days = lower(own.memories.retention_days, service.memories.retention_days)
        budget = own.llm.budget.within(service.llm.budget)
        return own.changed(memory_retention_days=retention_days, model_budget=budget)

    def _overridden(self, overrides: Mapping[str, Any]) -> Self:
        known = {name: value for name, value in overrides.items() if name in PER_WORKSPACE}
        if days := known.get("memory_retention_days"):  # may have been stored before it had a limit
            known["memory_retention_days"] = min(days, MAX_DAYS_KEPT)
        return self.changed(**known)

    def database_url_of(self, *, worker: bool) -> str | None:
        """The URL that the API or the worker connects with, password included."""
        url = (self.database.worker_url if worker else None) or self.database.url
        return url.get_secret_value() if url else None

    @property
    def ranking(self) -> Ranking:
        """How searches rank unless a request says otherwise."""
        return Ranking(techniques=self.search.techniques)


PLACES: Mapping[str, tuple[str, str]] = {
    info.alias or field: (group, field)
    for group, settings in Settings()
    for field, info in type(settings).model_fields.items()
}
"""The group of each setting and its field there, by flat name."""


def nest(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Values by flat name, as Settings holds them."""
    groups: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        groups.setdefault(PLACES[name][0], {})[name] = value
    return groups
