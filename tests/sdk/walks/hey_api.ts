// A walk with the fetch client of @hey-api/openapi-ts.
import { client } from "./hey/client.gen.js";
import * as loxodon from "./hey/index.js";
import type { SearchRequest } from "./hey/index.js";

client.setConfig({ baseUrl: process.env.LOXODON_URL!, auth: () => process.env.LOXODON_API_KEY! });
const user_id = "hey";
const throwOnError = true as const;

// @ts-expect-error a misspelt field does not compile
export const misspelt: SearchRequest = { qury: "tea" };

async function main(): Promise<void> {
  const body = { content: "Prefers tea.", user_id, tags: ["drink"], metadata: { priority: 3 } };
  const id = (await loxodon.storeMemory({ body, throwOnError })).data.results[0]!.id!;
  const messages = [{ role: "user", content: "I moved to Lisbon in May." }];
  await loxodon.storeMemory({ body: { messages, user_id }, throwOnError });
  const filters = { field: "metadata.priority", operator: "gte", value: 2 } as const;
  const found = await loxodon.searchMemories({ body: { query: "tea", user_id, filters }, throwOnError });
  if (found.data.results[0]!.id !== id) throw new Error("the tea was not found");
  await loxodon.recall({ body: { query: "Where does she live?", user_id }, throwOnError });

  const path = { id };
  const changed = await loxodon.patchMemory({ path, body: { importance: 0.9 }, throwOnError });
  if (changed.data.importance !== 0.9) throw new Error("the change was lost");
  const history = await loxodon.getMemoryHistory({ path, throwOnError });
  if (history.data.results.length !== 2) throw new Error("the history lacks a version");
  const page = await loxodon.listMemories({ query: { user_id, limit: 1 }, throwOnError });
  await loxodon.listMemories({ query: { user_id, limit: 1, cursor: page.data.next_cursor! }, throwOnError });
  await loxodon.deleteMemory({ path, throwOnError });

  await loxodon.storeMemory({ body: { content: "Alice lives in Oslo.", user_id }, throwOnError });
  const moved = await loxodon.storeMemory({ body: { content: "Alice lives in Bergen now.", user_id }, throwOnError });
  const home = { id: moved.data.results[0]!.id! };
  const decisions = await loxodon.getMemoryDecisions({ path: home, throwOnError });
  await loxodon.undoDecision({ path: { id: decisions.data.results.at(-1)!.id }, throwOnError });
  await loxodon.forget({ body: { query: "tea", user_id, dry_run: true }, throwOnError });

  const refused = await loxodon.searchMemories({ body: { query: "tea" } });
  if (refused.error?.code !== "scope_error") throw new Error("a search without a scope was answered");
}

main().catch((failed: unknown) => {
  console.error(failed);
  process.exit(1);
});
