"""A collector of OpenTelemetry's traces in the test process: it takes what the real exporter sends over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.fakes.http_server import HttpRequest, HttpServer, ScriptedAnswer


@dataclass(frozen=True)
class SeenSpan:
    """A span as it arrived; ids in hexadecimal digits, `parent` empty for the first of a trace."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    attributes: dict[str, Any]
    failed: bool
    resource: dict[str, Any]


class Collector(HttpServer):
    """`spans`: all that came."""

    def __init__(self) -> None:
        super().__init__(self._take)
        self.spans: list[SeenSpan] = []
        self.paths: set[str] = set()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def named(self, name: str) -> SeenSpan:
        """The only span of that name."""
        [found] = [each for each in self.spans if each.name == name]
        return found

    def above(self, span: SeenSpan) -> list[str]:
        """The names of what it is below, the nearest first."""
        by_id = {each.id: each for each in self.spans}
        names = []
        while span.parent in by_id:
            span = by_id[span.parent]
            names.append(span.name)
        return names

    def _take(self, request: HttpRequest) -> ScriptedAnswer:
        self.paths.add(request.path)
        self.spans += _spans(ExportTraceServiceRequest.FromString(request.body))
        return ScriptedAnswer(body=b"", headers={"content-type": "application/x-protobuf"})


def _spans(sent: Any) -> Iterator[SeenSpan]:
    for of_process in sent.resource_spans:
        resource = _values(of_process.resource.attributes)
        for of_scope in of_process.scope_spans:
            for each in of_scope.spans:
                yield SeenSpan(
                    each.name,
                    each.trace_id.hex(),
                    each.span_id.hex(),
                    each.parent_span_id.hex(),
                    each.kind,
                    _values(each.attributes),
                    each.status.code == 2,
                    resource,
                )


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
