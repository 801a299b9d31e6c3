"""The check that a memory belongs to the scope that a request names."""

from __future__ import annotations

from service.http.preconditions import in_scope
from service.memories import reading, restore
from service.runtime.transactions import memory_not_found

IN_SCOPE = [in_scope(reading.find, memory_not_found)]
DELETED_TOO = [in_scope(restore.find, memory_not_found)]
