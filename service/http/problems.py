"""Error bodies in the formats of other systems, with our sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MEM0: Final = "/v1/compat/mem0"
AUTOMEM: Final = "/v1/compat/automem"


def shaped(path: str, problem: Mapping[str, Any]) -> dict[str, Any] | None:
    """The body of an error under this path; None for the standard body."""
    more = {name: problem[name] for name in ("field", "request_id")}
    if path.startswith(f"{MEM0}/"):
        return {"detail": problem["detail"], "code": problem["code"], **more}
    if path.startswith(f"{AUTOMEM}/"):
        message = {
            "status": "error",
            "code": problem["status"],
            "message": problem["detail"],
            "error": problem["detail"],
        }
        return {**message, "error_code": problem["code"], **more}
    return None
