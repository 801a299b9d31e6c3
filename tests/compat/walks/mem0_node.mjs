// A walk through the service with mem0's own client for JavaScript (npm mem0ai).
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { MemoryClient } from "mem0ai";

const host = `${process.env.LOXODON_URL}/v1/compat/mem0`;
const client = new MemoryClient({ apiKey: process.env.LOXODON_API_KEY, host });
const userId = `node/${randomUUID()}`;
const filters = { user_id: userId };
const list = (answer) => (Array.isArray(answer) ? answer : answer.results);

async function waited(least) {
  for (let tries = 0; tries < 100; tries++) {
    const found = list(await client.getAll({ filters }));
    if (found.length >= least) return found;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  assert.fail("nothing came of what was added");
}

const talk = [
  { role: "user", content: "I work as a software engineer at Acme Corp. My favourite colour is blue." },
  { role: "assistant", content: "Got it!" },
];
const pending = await client.add(talk, { userId, metadata: { source: "walk" } });
assert.ok(pending.eventId && pending.status);
const said = await client.add([{ role: "user", content: "Keeps bees in the garden" }], { userId, infer: false });
assert.equal(said.results[0].event, "ADD");
await waited(2);

const id = said.results[0].id;
const memory = await client.get(id);
assert.equal(memory.memory, "Keeps bees in the garden");
assert.equal(memory.userId, userId);
assert.ok(Array.isArray(memory.categories) && !Number.isNaN(Date.parse(memory.createdAt)));
const page = await client.getAll({ filters, page: 1, pageSize: 1 });
assert.equal(list(page).length, 1);
assert.ok(page.count >= 2 && page.next);

const hits = list(await client.search("Who keeps bees?", { filters, topK: 3 }));
assert.equal(hits[0].id, id);
assert.ok(hits[0].score > 0 && hits[0].score <= 1);
assert.ok(list(await client.search("What do you know about me?", { filters: { OR: [filters] } })).length > 0);
assert.deepEqual(list(await client.search("anything", { filters: { user_id: randomUUID() } })), []);

await client.update(id, { text: "Keeps goats in the garden", metadata: { checked: true } });
assert.equal((await client.get(id)).metadata.checked, true);
const history = await client.history(id);
assert.deepEqual(history.map((each) => each.event), ["ADD", "UPDATE"]);
await client.batchUpdate([{ memoryId: id, text: "Keeps geese in the garden" }]);
assert.equal((await client.get(id)).memory, "Keeps geese in the garden");
assert.equal((await client.feedback({ memoryId: id, feedback: "POSITIVE" })).feedback, "POSITIVE");
assert.ok("customInstructions" in (await client.getProject({ fields: ["custom_instructions"] })));
await assert.rejects(client.updateProject({ customInstructions: "x" }), /workspace/);
await assert.rejects(client.createWebhook({ url: "http://127.0.0.1", name: "x", eventTypes: [] }), /not available/);

assert.ok((await client.users()).results.some((each) => each.name === userId && each.type === "user"));
assert.ok((await client.delete(id)).message);
await assert.rejects(client.get(id), /no memory with this id/);
const left = list(await client.getAll({ filters }));
await client.batchDelete(left.slice(0, 1).map((each) => each.id));
await assert.rejects(client.deleteAll({ userId: "*" }), /everyone/);
assert.ok((await client.deleteAll({ userId })).message);
assert.deepEqual(list(await client.getAll({ filters })), []);
await client.add([{ role: "user", content: "For a while" }], { userId, infer: false });
assert.equal((await client.deleteUsers({ userId })).message, "Entity deleted successfully.");
assert.ok((await client.deleteAll({ userId: randomUUID() })).message);
console.log("mem0ai of npm: walked");
