"""Traces: request, stage, provider. Switched on by OpenTelemetry's own variables (docs/tracing.md).

Without OTEL_EXPORTER_OTLP_ENDPOINT OpenTelemetry is not imported, and a span costs one check of a variable. Spans have
names, counts and ids, never text of a memory, parameters or error messages.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from service import __version__
from service.domain.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

P = ParamSpec("P")
R = TypeVar("R")
Kind = Literal["INTERNAL", "SERVER", "CLIENT", "CONSUMER"]
Attributes = Mapping[str, str | int | bool]

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
SPOKEN = "http/protobuf"
TRACEPARENT = re.compile(rb"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
NOTHING: Attributes = {}
OFF: AbstractContextManager[None] = nullcontext()

log = logging.getLogger(__name__)
_tracer: Tracer | None = None
_provider: TracerProvider | None = None


def is_wanted(env: Mapping[str, str]) -> bool:
    """Whether the standard variables ask for traces."""
    disabled = env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    exported = env.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() not in ("", "none")
    return not disabled and exported and any(env.get(name) for name in ENDPOINTS)


def set_up(env: Mapping[str, str], process: str) -> None:
    """Starts sending spans if the variables ask for it. `process`: api or worker. Call once per process."""
    if not is_wanted(env) or _tracer is not None:
        return
    spoken = next((env[name] for name in PROTOCOLS if env.get(name)), SPOKEN)
    if spoken != SPOKEN:
        log.warning("traces are sent as %s, not as %s: name the collector's HTTP port, mostly 4318", SPOKEN, spoken)
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        packages = "opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
        log.warning("no traces: %s is set, but OpenTelemetry is not installed: pip install %s", ENDPOINTS[1], packages)
        return
    about = {"service.version": __version__, "loxodon.process": process}
    if "service.name=" not in env.get("OTEL_RESOURCE_ATTRIBUTES", "") and not env.get("OTEL_SERVICE_NAME"):
        about["service.name"] = "loxodon"
    # the sampler is that of OTEL_TRACES_SAMPLER, the headers those of OTEL_EXPORTER_OTLP_HEADERS
    provider = TracerProvider(resource=Resource.create(about))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    use(provider)


def use(provider: TracerProvider) -> None:
    """Sends spans to this provider from now on."""
    global _tracer, _provider
    _provider, _tracer = provider, provider.get_tracer("loxodon", __version__)


def shut_down() -> None:
    """Sends the remaining spans, for some seconds at most; blocks. Safe to repeat."""
    global _tracer, _provider
    provider, _provider, _tracer = _provider, None, None
    if provider is not None:
        provider.shutdown()


@contextmanager
def _traced(tracer: Tracer, name: str, kind: Kind, attributes: Attributes, parent: Any = None) -> Iterator[Span]:
    """A span that is current inside the block. OpenTelemetry itself would record the message of an error."""
    from opentelemetry import trace

    started = tracer.start_as_current_span(
        name, parent, trace.SpanKind[kind], attributes, record_exception=False, set_status_on_exception=False
    )
    with started as span:
        try:
            yield span
        except BaseException as error:
            _mark_failed(span, error.code if isinstance(error, ServiceError) else type(error).__name__)
            raise


def span(name: str, kind: Kind = "INTERNAL", attributes: Attributes = NOTHING) -> AbstractContextManager[Any]:
    """A span around the block; nothing while tracing is off. `name`: one of a fixed set."""
    return OFF if _tracer is None else _traced(_tracer, name, kind, attributes)


def trace(name: str) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Callable[P, Coroutine[Any, Any, R]]]:
    """A span around an asynchronous function."""

    def around(function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        @wraps(function)
        async def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with span(name):
                return await function(*args, **kwargs)

        return call

    return around


def request(method: str, headers: Iterable[tuple[bytes, bytes]]) -> AbstractContextManager[Any]:
    """The span of a request, below the one in its `traceparent`."""
    if _tracer is None:
        return OFF
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name.startswith(b"trace")}
    parent = TraceContextTextMapPropagator().extract(carrier)
    return _traced(_tracer, method, "SERVER", {"http.request.method": method}, parent)


def complete(request_span: Span | None, method: str, route: str, status: int, about: Attributes) -> None:
    """Completes the span of a request. `route`: the template."""
    if request_span is None:
        return
    request_span.update_name(f"{method} {route}")
    request_span.set_attributes({"http.route": route, "http.response.status_code": status, **about})
    if status >= 500:
        _mark_failed(request_span, str(status))


def _mark_failed(failed_span: Span, why: str) -> None:
    """Marks a span as failed; `why` is at most the class of an error."""
    from opentelemetry.trace import Status, StatusCode

    failed_span.set_status(Status(StatusCode.ERROR))
    failed_span.set_attribute("error.type", why)


def headers() -> dict[str, str]:
    """Headers for requests to providers, so that their spans appear below ours; empty while tracing is off."""
    carrier: dict[str, str] = {}
    if _tracer is not None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        TraceContextTextMapPropagator().inject(carrier)
    return carrier


def trace_id(given: Iterable[tuple[bytes, bytes]] = ()) -> str | None:
    """The trace id for the log: that of the span or, while tracing is off, that of the headers; None without one."""
    if _tracer is not None:
        from opentelemetry import trace

        span_context = trace.get_current_span().get_span_context()
        return trace.format_trace_id(span_context.trace_id) if span_context.is_valid else None
    named = next((value for name, value in given if name == b"traceparent"), None)
    match = TRACEPARENT.fullmatch(named) if named else None
    return match[1].decode() if match else None
