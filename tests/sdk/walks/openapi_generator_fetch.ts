// A walk with the TypeScript client of openapi-generator.
import {
  Configuration,
  DecisionsApi,
  MemoriesApi,
  RecallApi,
  ResponseError,
} from "./ogt/index.js";

const settings = new Configuration({ basePath: process.env.LOXODON_URL!, accessToken: process.env.LOXODON_API_KEY! });
const memories = new MemoriesApi(settings);
const decisions = new DecisionsApi(settings);
const userId = "ogt";

async function main(): Promise<void> {
  const storeRequest = { content: "Prefers tea.", userId, tags: ["drink"], metadata: { priority: 3 } };
  const id = (await memories.storeMemory({ storeRequest })).results[0]!.id!;
  const messages = [{ role: "user", content: "I moved to Lisbon in May." }];
  await memories.storeMemory({ storeRequest: { messages, userId } });

  const filters = { field: "metadata.priority", operator: "gte", value: 2 } as const;
  const found = await memories.searchMemories({ searchRequest: { query: "tea", userId, filters } });
  if (found.results[0]!.id !== id) throw new Error("the tea was not found");
  await new RecallApi(settings).recall({ recallRequest: { query: "Where does she live?", userId } });

  const changed = await memories.patchMemory({ id, patchMemoryRequest: { importance: 0.9 } });
  if (changed.importance !== 0.9) throw new Error("the change was lost");
  if ((await memories.getMemoryHistory({ id })).results.length !== 2) throw new Error("the history lacks a version");
  const page = await memories.listMemories({ userId, limit: 1 });
  await memories.listMemories({ userId, limit: 1, cursor: page.nextCursor! });
  await memories.deleteMemory({ id });

  await memories.storeMemory({ storeRequest: { content: "Alice lives in Oslo.", userId } });
  const moved = await memories.storeMemory({ storeRequest: { content: "Alice lives in Bergen now.", userId } });
  const made = await decisions.getMemoryDecisions({ id: moved.results[0]!.id! });
  await decisions.undoDecision({ id: made.results.at(-1)!.id });
  await memories.forget({ forgetRequest: { query: "tea", userId, dryRun: true } });
  try {
    await memories.searchMemories({ searchRequest: { query: "tea" } });
  } catch (refused) {
    if (!(refused instanceof ResponseError) || refused.response.status !== 400) throw refused;
    return;
  }
  throw new Error("a search without a scope was answered");
}

main().catch((failed: unknown) => {
  console.error(failed);
  process.exit(1);
});
