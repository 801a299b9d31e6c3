"""Logging: one line per event on standard error, with ids and counts, never memory text.

Text on a terminal, otherwise one JSON object a line.
"""

from __future__ import annotations

import logging
import sys

import structlog

from service.kit.settings import Settings

QUIET = (
    "httpx",
    "httpx2",
    "asyncio",
    "alembic",
    "mcp",
    "opentelemetry",
    "urllib3",
    "service.postgres.engine",
)
"""Libraries whose messages would quote requests, and the pool, which logs every stop."""

FROM_LIBRARY = structlog.stdlib.ExtraAdder(["frames"])
"""Extra fields that a line of the standard library's loggers may have."""


SHORT_ID = 12
"""Characters at the end of a request's id, enough to distinguish it from others nearby."""


def set_up(settings: Settings) -> None:
    """Writes the lines of structlog and of the standard library's loggers alike. Call once per process."""
    level = settings.server.log_level
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, *_renderer()],
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # not by way of the standard library, at twice the CPU
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name, FROM_LIBRARY],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderer()],
        )
    )
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def _renderer() -> list[structlog.typing.Processor]:
    """Text for a person at a terminal, JSON for all else."""
    if not sys.stderr.isatty():
        return [structlog.processors.JSONRenderer()]
    return [
        _frames_below,
        _on_one_line,
        structlog.dev.ConsoleRenderer(colors=True, exception_formatter=structlog.dev.plain_traceback),
    ]


def _frames_below(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Puts the frames of an unexpected error on separate lines."""
    if frames := event.pop("frames", None):
        event["exception"] = "\n".join(f"    {frame}" for frame in frames)
    return event


def _on_one_line(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Shortens a line to the width of a terminal; JSON has everything."""
    event["timestamp"] = f"{event['timestamp'][:19]}Z"
    if event["event"] == "request":
        event["event"] = f"{event.pop('method', '')} {event.pop('path', '')} {event.pop('status', '')}".strip()
        for name in ("workspace", "key_id"):
            event.pop(name, None)
    if "request_id" in event:
        event["request_id"] = event["request_id"][-SHORT_ID:]
    return event
