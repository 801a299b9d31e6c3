"""A walk with the client of openapi-python-client."""

from __future__ import annotations

import os
import sys
from uuid import UUID

sys.path.insert(0, "opc")

from loxodon_client import AuthenticatedClient, models
from loxodon_client.api.decisions import get_memory_decisions, undo_decision
from loxodon_client.api.memories import (
    delete_memory,
    forget,
    get_memory_history,
    list_memories,
    patch_memory,
    search_memories,
    store_memory,
)
from loxodon_client.api.recall import recall

client = AuthenticatedClient(base_url=os.environ["LOXODON_URL"], token=os.environ["LOXODON_API_KEY"])
USER = "opc"


def stored(body: models.StoreRequest) -> UUID:
    answer = store_memory.sync(client=client, body=body)
    assert isinstance(answer, models.StoreResponse), answer
    found = answer.results[0].id
    assert found is not None
    return found


def main() -> None:
    metadata = models.StoreRequestMetadata.from_dict({"priority": 3})
    tea = stored(
        models.StoreRequest(content="Prefers tea over coffee.", user_id=USER, tags=["drink"], metadata=metadata)
    )
    stored(
        models.StoreRequest(
            messages=[models.MessageInput(role="user", content="I moved to Lisbon in May.")], user_id=USER
        )
    )

    where = models.FilterInput(field="metadata.priority", operator=models.FilterOperator.GTE, value=2)
    found = search_memories.sync(
        client=client, body=models.SearchRequest(query="tea", user_id=USER, filters=where, limit=5)
    )
    assert isinstance(found, models.SearchResponse), found
    assert [each.id for each in found.results] == [tea]

    bundle = recall.sync(client=client, body=models.RecallRequest(query="Where does she live?", user_id=USER))
    assert isinstance(bundle, models.RecallResponse), bundle

    changed = patch_memory.sync(tea, client=client, body=models.PatchMemoryRequest(importance=0.9))
    assert isinstance(changed, models.MemoryResponse), changed
    assert changed.importance == 0.9
    history = get_memory_history.sync(tea, client=client)
    assert isinstance(history, models.MemoryHistoryResponse), history
    assert len(history.results) == 2

    page = list_memories.sync(client=client, user_id=USER, limit=1)
    assert isinstance(page, models.MemoryPage), page
    assert isinstance(page.next_cursor, str)
    rest = list_memories.sync(client=client, user_id=USER, limit=1, cursor=page.next_cursor)
    assert isinstance(rest, models.MemoryPage), rest
    assert {page.results[0].id, rest.results[0].id} > {tea}

    gone = delete_memory.sync(tea, client=client)
    assert isinstance(gone, models.DeletedMemoryResponse), gone

    stored(models.StoreRequest(content="Alice lives in Oslo.", user_id=USER))
    moved = store_memory.sync(
        client=client, body=models.StoreRequest(content="Alice lives in Bergen now.", user_id=USER)
    )
    assert isinstance(moved, models.StoreResponse), moved
    home = moved.results[0].id
    assert home is not None
    decisions = get_memory_decisions.sync(home, client=client)
    assert isinstance(decisions, models.DecisionPage), decisions
    undone = undo_decision.sync(decisions.results[-1].id, client=client)
    assert isinstance(undone, models.UndoDecisionResponse), undone

    shown = forget.sync(client=client, body=models.ForgetRequest(query="tea", user_id=USER, dry_run=True))
    assert isinstance(shown, models.ForgetResponse), shown
    refused = search_memories.sync(client=client, body=models.SearchRequest(query="tea"))
    assert isinstance(refused, models.Problem), refused
    assert refused.code is models.ErrorCode.SCOPE_ERROR


main()
