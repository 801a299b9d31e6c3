// A walk with the fetch client of orval.
import * as loxodon from "./orval/client.js";
import type { SearchRequest } from "./orval/client.js";

// its requests have addresses without a host, as in a browser
const plain = globalThis.fetch;
globalThis.fetch = (path, init) => plain(`${process.env.LOXODON_URL}${String(path)}`, init);
const options = { headers: { Authorization: `Bearer ${process.env.LOXODON_API_KEY}` } };
const user_id = "orval";

// @ts-expect-error a misspelt field does not compile
export const misspelt: SearchRequest = { qury: "tea" };

function good<A extends { status: number; data: unknown }>(answer: A): Extract<A, { status: 200 | 201 }>["data"] {
  if (answer.status >= 300) throw new Error(JSON.stringify(answer.data));
  return answer.data as Extract<A, { status: 200 | 201 }>["data"];
}

async function main(): Promise<void> {
  const tea = { content: "Prefers tea.", user_id, tags: ["drink"], metadata: { priority: 3 } };
  const id = good(await loxodon.storeMemory(tea, options)).results[0]!.id!;
  const messages = [{ role: "user", content: "I moved to Lisbon in May." }];
  good(await loxodon.storeMemory({ messages, user_id }, options));
  const filters = { field: "metadata.priority", operator: "gte", value: 2 } as const;
  const found = good(await loxodon.searchMemories({ query: "tea", user_id, filters }, options));
  if (found.results[0]!.id !== id) throw new Error("the tea was not found");
  good(await loxodon.recall({ query: "Where does she live?", user_id }, options));

  const changed = good(await loxodon.patchMemory(id, { importance: 0.9 }, undefined, options));
  if (changed.importance !== 0.9) throw new Error("the change was lost");
  const history = good(await loxodon.getMemoryHistory(id, undefined, options));
  if (history.results.length !== 2) throw new Error("the history lacks a version");
  const page = good(await loxodon.listMemories({ user_id, limit: 1 }, options));
  good(await loxodon.listMemories({ user_id, limit: 1, cursor: page.next_cursor! }, options));
  good(await loxodon.deleteMemory(id, undefined, options));

  good(await loxodon.storeMemory({ content: "Alice lives in Oslo.", user_id }, options));
  const moved = good(await loxodon.storeMemory({ content: "Alice lives in Bergen now.", user_id }, options));
  const decisions = good(await loxodon.getMemoryDecisions(moved.results[0]!.id!, undefined, options));
  good(await loxodon.undoDecision(decisions.results.at(-1)!.id, options));
  good(await loxodon.forget({ query: "tea", user_id, dry_run: true }, options));

  const refused = await loxodon.searchMemories({ query: "tea" }, options);
  if (refused.status !== 400 || refused.data.code !== "scope_error") throw new Error("a search without a scope was answered");
}

main().catch((failed: unknown) => {
  console.error(failed);
  process.exit(1);
});
