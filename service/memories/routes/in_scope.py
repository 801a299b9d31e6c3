"""The check that a memory belongs to the scope that a request names."""

from __future__ import annotations

from service.http.preconditions import in_scope
from service.memories import reading, restore

IN_SCOPE = [in_scope(reading.find, "memory")]
DELETED_TOO = [in_scope(restore.find, "memory")]
