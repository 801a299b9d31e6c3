"""A walk with the Python client of openapi-generator."""

import os
import sys

sys.path.insert(0, "ogp")

import loxodon_generated

USER = "ogp"
settings = loxodon_generated.Configuration(host=os.environ["LOXODON_URL"], access_token=os.environ["LOXODON_API_KEY"])


def main(client: loxodon_generated.ApiClient) -> None:
    memories, decisions = loxodon_generated.MemoriesApi(client), loxodon_generated.DecisionsApi(client)
    body = loxodon_generated.StoreRequest(
        content="Prefers tea.", user_id=USER, tags=["drink"], metadata={"priority": 3}
    )
    tea = memories.store_memory(body).results[0].id
    assert tea is not None
    talk = [loxodon_generated.MessageInput(role="user", content="I moved to Lisbon in May.")]
    memories.store_memory(loxodon_generated.StoreRequest(messages=talk, user_id=USER))

    where = loxodon_generated.FilterInput(
        field="metadata.priority", operator=loxodon_generated.FilterOperator.GTE, value=2
    )
    found = memories.search_memories(loxodon_generated.SearchRequest(query="tea", user_id=USER, filters=where))
    assert [each.id for each in found.results] == [tea]
    assert (
        loxodon_generated.RecallApi(client)
        .recall(loxodon_generated.RecallRequest(query="Where does she live?", user_id=USER))
        .facts
    )

    assert memories.patch_memory(tea, loxodon_generated.PatchMemoryRequest(importance=0.9)).importance == 0.9
    assert len(memories.get_memory_history(tea).results) == 2
    page = memories.list_memories(user_id=USER, limit=1)
    assert page.next_cursor
    assert memories.list_memories(user_id=USER, limit=1, cursor=page.next_cursor).results[0].id != page.results[0].id
    memories.delete_memory(tea)

    memories.store_memory(loxodon_generated.StoreRequest(content="Alice lives in Oslo.", user_id=USER))
    home = (
        memories.store_memory(loxodon_generated.StoreRequest(content="Alice lives in Bergen now.", user_id=USER))
        .results[0]
        .id
    )
    assert home is not None
    decisions.undo_decision(decisions.get_memory_decisions(home).results[-1].id)
    memories.forget(loxodon_generated.ForgetRequest(query="tea", user_id=USER, dry_run=True))
    assert refusal(memories) == (400, True)


def refusal(memories: loxodon_generated.MemoriesApi) -> tuple[int, bool]:
    """The status of a search without a scope, and whether the error says what is missing."""
    try:
        memories.search_memories(loxodon_generated.SearchRequest(query="tea"))
    except loxodon_generated.ApiException as refused:
        return refused.status, "scope_error" in str(refused.body)
    return 200, False


with loxodon_generated.ApiClient(settings) as made:
    main(made)
