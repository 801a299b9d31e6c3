// A walk with the types of openapi-typescript and the client openapi-fetch.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const client = createClient<paths>({
  baseUrl: process.env.LOXODON_URL!,
  headers: { Authorization: `Bearer ${process.env.LOXODON_API_KEY}` },
});
const user_id = "fetch";

// @ts-expect-error a misspelt field does not compile
export const misspelt: components["schemas"]["SearchRequest"] = { qury: "tea" };

function good<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

async function main(): Promise<void> {
  const stored = good(
    await client.POST("/v1/memories", {
      body: { content: "Prefers tea.", user_id, tags: ["drink"], metadata: { priority: 3 } },
    }),
  );
  const id = stored.results[0]!.id!;
  good(
    await client.POST("/v1/memories", {
      body: { messages: [{ role: "user", content: "I moved to Lisbon in May." }], user_id },
    }),
  );
  const filters = { field: "metadata.priority", operator: "gte", value: 2 } as const;
  const found = good(await client.POST("/v1/memories/search", { body: { query: "tea", user_id, filters } }));
  if (found.results[0]!.id !== id) throw new Error("the tea was not found");
  good(await client.POST("/v1/recall", { body: { query: "Where does she live?", user_id } }));

  const path = { id };
  const changed = good(await client.PATCH("/v1/memories/{id}", { params: { path }, body: { importance: 0.9 } }));
  if (changed.importance !== 0.9) throw new Error("the change was lost");
  const history = good(await client.GET("/v1/memories/{id}/history", { params: { path } }));
  if (history.results.length !== 2) throw new Error("the history lacks a version");
  const page = good(await client.GET("/v1/memories", { params: { query: { user_id, limit: 1 } } }));
  const cursor = page.next_cursor!;
  good(await client.GET("/v1/memories", { params: { query: { user_id, limit: 1, cursor } } }));
  good(await client.DELETE("/v1/memories/{id}", { params: { path } }));

  good(await client.POST("/v1/memories", { body: { content: "Alice lives in Oslo.", user_id } }));
  const moved = good(await client.POST("/v1/memories", { body: { content: "Alice lives in Bergen now.", user_id } }));
  const home = { id: moved.results[0]!.id! };
  const decisions = good(await client.GET("/v1/memories/{id}/decisions", { params: { path: home } }));
  good(await client.POST("/v1/decisions/{id}/undo", { params: { path: { id: decisions.results.at(-1)!.id } } }));
  good(await client.POST("/v1/forget", { body: { query: "tea", user_id, dry_run: true } }));

  const refused = await client.POST("/v1/memories/search", { body: { query: "tea" } });
  if (refused.error?.code !== "scope_error") throw new Error("a search without a scope was answered");
}

main().catch((failed: unknown) => {
  console.error(failed);
  process.exit(1);
});
