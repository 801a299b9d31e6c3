/** Every method of the face against a running service: LOXODON_URL and LOXODON_API_KEY. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import {
  ApiError,
  ForbiddenError,
  InvalidInputError,
  Loxodon,
  LoxodonError,
  type MemoryItem,
  NotFoundError,
  PreconditionFailedError,
  ScopeMissingError,
  UnauthenticatedError,
} from "../src/index.js";

const loxodon = new Loxodon();
const { memory, conversations } = loxodon;

function somebody(): { user_id: string } {
  return { user_id: `u-${randomUUID()}` };
}

async function stored(content: string, scope: { user_id: string }): Promise<string> {
  return (await memory.add(content, { ...scope, dedup: false })).results[0]!.id!;
}

test("a memory's life", async () => {
  const scope = somebody();
  const [first] = (await memory.add("Prefers tea.", { ...scope, tags: ["drink"], metadata: { priority: 3 } })).results;
  const id = first!.id!;
  assert.equal(first!.event, "ADD");

  const found = await memory.search("What does she drink?", {
    ...scope,
    filters: { field: "metadata.priority", operator: "gte", value: 2 },
    tuning: { weights: { text_lexical: 2 } },
  });
  assert.equal(found.results[0]!.id, id);
  const bundle = await memory.recall("What does she drink?", { ...scope, format: "markdown" });
  assert.match(bundle.markdown!, /tea/);

  const read = await memory.get(id);
  assert.deepEqual(read.metadata["priority"], 3);
  assert.equal(read.importance_band satisfies "Critical" | "Important" | "Standard" | "Minor" | "Low", read.importance_band);
  const changed = await memory.update(id, { importance: 0.9, tags: ["drink", "morning"] }, { ifMatch: read.version });
  assert.equal(changed.importance, 0.9);
  await assert.rejects(memory.update(id, { importance: 0.1 }, { ifMatch: read.version }), PreconditionFailedError);

  const history = await memory.history(id);
  assert.deepEqual(
    history.results.map((each) => each.event),
    ["ADD", "UPDATE"],
  );
  assert.deepEqual((await memory.getMany([id, randomUUID()])).missing.length, 1);
  assert.ok((await memory.why(id)).decisions);
  assert.equal((await memory.delete(id)).already_deleted, false);
  assert.equal((await memory.delete(id)).already_deleted, true);
  assert.deepEqual(
    (await memory.list({ ...scope, state: "deleted" }).toArray()).map((each) => each.id),
    [id],
  );
  assert.equal((await memory.purge(id)).purged, true);
  assert.deepEqual(await memory.list({ ...scope, state: "deleted" }).toArray(), []);
});

test("messages become facts, and a decision is undone", async () => {
  const scope = somebody();
  const told = await memory.add([{ role: "user", content: "My name is Ana and I moved to Lisbon in May." }], scope);
  assert.ok(told.results.length > 0);
  const kept = await memory.add({ role: "user", content: "See you!" }, { ...scope, infer: false });
  assert.equal(kept.results[0]!.role, "user");

  const other = somebody();
  await memory.add("Alice lives in Oslo.", other);
  const moved = await memory.add("Alice lives in Bergen now.", other);
  const decided = (await memory.decisions(moved.results[0]!.id!)).results;
  await memory.undo(decided.at(-1)!.id);
  const texts = (await memory.list(other).toArray()).map((each) => each.memory);
  assert.ok(texts.includes("Alice lives in Oslo."));
});

test("a long conversation is stored later", async () => {
  const scope = somebody();
  const accepted = await memory.addLater([{ role: "user", content: "I work at Acme." }], { ...scope, infer: false });
  const done = await loxodon.wait(accepted.operation_id, 60_000);
  assert.equal(done.status, "done");
  assert.equal((await memory.list(scope).toArray()).length, 1);
});

test("several at once, and each failure by itself", async () => {
  const scope = somebody();
  const batch = await memory.addMany([
    { content: "Has a boat.", ...scope },
    { content: "Nobody's." },
  ]);
  assert.deepEqual([batch.succeeded, batch.failed], [1, 1]);
  assert.equal(batch.results[1]!.error!.code, "scope_error");
});

test("a list of any length is read page by page", async () => {
  const scope = somebody();
  const items = Array.from({ length: 45 }, (_, place) => ({ content: `Fact number ${place}`, dedup: false, ...scope }));
  await memory.addMany(items);
  const list = memory.list({ ...scope, limit: 20, filters: { field: "memory", operator: "icontains", value: "fact" } });
  const sizes: number[] = [];
  for await (const page of list.pages()) sizes.push(page.results.length);
  assert.deepEqual(sizes, [20, 20, 5]);

  const seen = new Set<string>();
  for await (const each of list) seen.add(each.id);
  assert.equal(seen.size, 45);
  assert.equal((await list.toArray(7)).length, 7);
  let streamed = 0;
  const reader = list.toStream().getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) streamed += next.value satisfies MemoryItem ? 1 : 0;
  assert.equal(streamed, 45);
});

test("conversations keep what was said", async () => {
  const scope = somebody();
  const name = `chat-${randomUUID()}`;
  const opened = await conversations.open({ ...scope, external_id: name, title: "Moving" });
  for (let turn_index = 0; turn_index < 3; turn_index += 1) {
    await conversations.add(opened.id, { role: "user", content: `I moved to Lisbon, part ${turn_index}`, turn_index });
  }
  const turns = await conversations.turns(opened.id, { limit: 2 }).toArray();
  assert.deepEqual(
    turns.map((each) => each.turn_index),
    [0, 1, 2],
  );
  assert.equal((await conversations.list(scope).toArray())[0]!.external_id, name);
  assert.match((await conversations.context(opened.id, { query: "Where does she live?" })).context, /Lisbon/);
  assert.ok((await conversations.search("Lisbon", scope)).results.length > 0);
  assert.equal((await conversations.delete(opened.id)).turns, 3);
});

test("forgetting shows first, then does", async () => {
  const scope = somebody();
  await memory.add("Wanda is her boat.", scope);
  const plan = await memory.forget("everything about Wanda", { ...scope, dry_run: true });
  assert.deepEqual([plan.memories.length, plan.removed], [1, false]);
  await memory.forget(plan.memories.map((each) => each.id), scope);
  assert.deepEqual(await memory.list(scope).toArray(), []);
  await memory.add("Has a cat.", scope);
  const all = await memory.deleteAll(scope);
  assert.deepEqual([all.deleted, all.status], [1, "done"]);
});

test("what has changed is told page by page", async () => {
  let page = await loxodon.changes({ after: "now" });
  assert.deepEqual(page.results, []);
  const stored = await memory.add("Keeps bees on the roof.", somebody());
  const id = stored.results[0]?.id ?? "";
  await memory.delete(id);
  const told: string[] = [];
  for (let asked = 0; told.length < 2 && asked < 200; asked++) {
    page = await loxodon.changes({ after: page.next_cursor, limit: 1 });
    told.push(...page.results.filter((each) => each.memory_id === id).map((each) => each.event));
  }
  assert.deepEqual(told, ["memory.added", "memory.deleted"]);
});

test("every other route is there, with its types", async () => {
  const scope = somebody();
  const goal = await loxodon.request("post", "/v1/goals", { body: { description: "Learn Portuguese", ...scope } });
  const read = await loxodon.request("get", "/v1/goals/{id}", { path: { id: goal.id } });
  assert.equal(read.description, "Learn Portuguese");
  const goals = await loxodon.pages("/v1/goals", { query: { ...scope, limit: 1 } }).toArray();
  assert.deepEqual(
    goals.map((each) => each.id),
    [goal.id],
  );
});

test("errors have a class, a code, a sentence, a field and the id of the request", async () => {
  await assert.rejects(memory.search("tea"), (error: unknown) => {
    assert.ok(error instanceof ScopeMissingError && error instanceof InvalidInputError && error instanceof LoxodonError);
    assert.deepEqual([error.name, error.code, error.field, error.status], ["ScopeMissingError", "scope_error", "user_id", 400]);
    assert.match(error.message, /user_id/);
    assert.equal(error.sentence, error.message);
    assert.match(error.requestId!, /^[0-9a-f-]{36}$/);
    return true;
  });
  await assert.rejects(memory.get(randomUUID()), NotFoundError);
  await assert.rejects(new Loxodon({ apiKey: "lox_wrong" }).memory.get(randomUUID()), UnauthenticatedError);
  const none = await loxodon.request("post", "/v1/api-keys", { body: { name: `r-${randomUUID()}`, rights: ["memory:read"] } });
  const reader = new Loxodon({ apiKey: none.api_key });
  await assert.rejects(reader.memory.add("x", somebody()), ForbiddenError);
  // @ts-expect-error a misspelt field does not compile, and the service names the one that was meant
  await assert.rejects(memory.add("x", { userId: "alice" }), (error) => error instanceof ApiError && /user_id/.test(error.message));
  // @ts-expect-error nor does one of another type
  await assert.rejects(memory.search("x", { ...somebody(), limit: "many" }), InvalidInputError);
  // @ts-expect-error nor a route that is none
  await assert.rejects(loxodon.request("get", "/v1/nothing"), NotFoundError);
  // @ts-expect-error nor a path without its id: the address would be another one
  await assert.rejects(loxodon.request("delete", "/v1/memories/{id}", {}), LoxodonError);
  await assert.rejects(memory.get(""), LoxodonError);
});

test("an id with a slash stays one part of the address", async () => {
  const scope = { user_id: `team/${randomUUID()}` };
  const id = await stored("Prefers tea.", scope);
  const profile = loxodon.request("get", "/v1/users/{user_id}/profile", { path: scope });
  await assert.rejects(profile, NotFoundError);
  assert.equal((await memory.list(scope).toArray())[0]!.id, id);
});

test("names that hold what a path is made of", async () => {
  for (const name of ["a/b", "/a", "a/", "/", "a\n", "100%", "a?b", "a#b", "a\\b", "１２", "../a"]) {
    await conversations.open({ user_id: "alice", external_id: name });
    await conversations.add(name, { role: "user", content: "I like tea." });
    assert.ok(await conversations.context(name));
    await conversations.delete(name);
    await assert.rejects(conversations.context(name), NotFoundError);
  }
  for (const name of ["", ".", ".."]) await assert.rejects(async () => conversations.context(name), LoxodonError);
});
