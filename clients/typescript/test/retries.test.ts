/** A call is repeated until it is answered, and done once. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import {
  ApiError,
  Loxodon,
  LoxodonError,
  NoAnswerError,
  OutcomeUnknownError,
  RateLimitedError,
  TimedOutError,
  UnavailableError,
} from "../src/index.js";
import { type Fate, Flaky } from "./flaky.js";

const flaky = new Flaky(process.env["LOXODON_URL"]!);
let loxodon: Loxodon;
let baseUrl: string;

before(async () => {
  baseUrl = await flaky.start();
  loxodon = new Loxodon({ baseUrl });
});
after(() => flaky.stop());

async function storedOnce(...fates: Fate[]): Promise<void> {
  const scope = { user_id: `u-${randomUUID()}` };
  flaky.forget(...fates);
  const told = await loxodon.memory.add("Prefers tea.", { ...scope, dedup: false });
  assert.equal(told.results[0]!.event, "ADD");
  assert.equal(flaky.keys.length, fates.length + 1);
  assert.equal(new Set(flaky.keys).size, 1, "the key was made once for the call");
  assert.match(flaky.keys[0]!, /^[0-9a-f]{32}$/);
  assert.equal((await loxodon.memory.list(scope).toArray()).length, 1);
}

test("a store whose answer is lost is done once", async () => {
  await storedOnce("after", "half");
  await storedOnce("before", "after", { status: 503, retryAfter: "0" }, { status: 502, body: "<h1>Bad Gateway</h1>" });
});

test("two calls have two keys, and a key of one's own is taken", async () => {
  const scope = { user_id: `u-${randomUUID()}` };
  flaky.forget();
  const mine = `mine-${randomUUID()}`;
  await loxodon.memory.add("Prefers tea.", scope);
  await loxodon.memory.add("Has a boat.", scope);
  await loxodon.memory.add("Has a cat.", scope, { idempotencyKey: mine });
  assert.equal(new Set(flaky.keys).size, 3);
  assert.equal(flaky.keys[2], mine);
  await assert.rejects(loxodon.memory.add("Has a dog.", scope, { idempotencyKey: mine }), { code: "idempotency_mismatch" });
});

test("what no request can carry is refused before one is sent", async () => {
  for (const settings of [{ apiKey: "lox_\n1" }, { apiKey: "lox_…" }, { baseUrl: "localhost" }, { baseUrl: "http://a:b" }, { baseUrl: "http://a/?x=1" }]) {
    assert.throws(() => new Loxodon({ baseUrl, apiKey: "lox_1", ...settings }), { name: "LoxodonError" });
  }
  for (const options of [{ timestamp: new Date("x") as unknown as string }, { importance: NaN }]) {
    await assert.rejects(loxodon.memory.add("Prefers tea.", { user_id: "a", ...options }), /cannot be sent/);
  }
  for (const [query, named] of [[{ limit: NaN }, /^limit: NaN/], [{ filters: { importance: { gt: -Infinity } } }, /^gt: -Infinity/]] as const) {
    await assert.rejects(loxodon.request("get", "/v1/memories", { query: query as { limit?: number } }), { message: named });
  }
  flaky.forget();
  const [get, cycle] = [{ path: { id: "\ud800" } }, { a: {} }];
  cycle.a = cycle;
  await assert.rejects(loxodon.request("get", "/v1/memories/{id}", get), LoxodonError);
  for (const metadata of [{ a: 1n as unknown as number }, cycle]) {
    await assert.rejects(loxodon.memory.add("Prefers tea.", { user_id: "a", metadata }), LoxodonError);
  }
  for (const idempotencyKey of ["a\nb", "\ud800"]) {
    await assert.rejects(loxodon.memory.add("Prefers tea.", { user_id: "a" }, { idempotencyKey }), LoxodonError);
  }
  for (const timeoutMs of [NaN, -1]) {
    assert.throws(() => new Loxodon({ baseUrl, timeoutMs }), LoxodonError);
    await assert.rejects(loxodon.memory.list({ user_id: "a" }, { timeoutMs }).toArray(), LoxodonError);
  }
  assert.equal(flaky.times.length, 0);
  assert.equal(new Loxodon({ baseUrl: ` ${baseUrl}/ `, apiKey: "lox_1\r\n" }).baseUrl, baseUrl);
});

test("a key in any script is a key, and the query of a route is kept", async () => {
  const scope = { user_id: `u-${randomUUID()}` };
  flaky.forget("after");
  const idempotencyKey = `ключ-${randomUUID()}`;
  await loxodon.memory.add("Prefers tea.", { ...scope, channel: "board", dedup: false }, { idempotencyKey });
  await loxodon.memory.add("Prefers tea.", { ...scope, channel: "work", dedup: false });
  const route = "/v1/memories?channel=board" as "/v1/memories";
  assert.equal((await loxodon.request("delete", route, { query: scope }) as { deleted: number }).deleted, 1);
  await assert.rejects(loxodon.request("get", "@a/v1/whoami" as "/v1/whoami", {}), LoxodonError);
});

test("a redirect is not followed", async () => {
  const elsewhere = new Flaky(process.env["LOXODON_URL"]!);
  const location = await elsewhere.start();
  try {
    for (const status of [301, 302, 307, 308]) {
      flaky.forget({ status, location: `${location}/v1/memories` });
      await assert.rejects(loxodon.memory.add("Prefers tea.", { user_id: "a" }), (error) => {
        return error instanceof ApiError && error.status === status;
      });
    }
    assert.equal(elsewhere.times.length, 0);
  } finally {
    elsewhere.stop();
  }
});

test("a timeout may be as long as one likes", async () => {
  flaky.forget();
  for (const timeoutMs of [Infinity, 3e9]) {
    const patient = new Loxodon({ baseUrl, timeoutMs, longestRetryAfterMs: Infinity, maxRetries: 1 });
    assert.ok((await patient.memory.search("tea", { user_id: "alice" })).results);
    flaky.forget({ status: 429, retryAfter: "9999999" });
    await assert.rejects(patient.memory.search("tea", { user_id: "alice" }), RateLimitedError);
    assert.equal(flaky.times.length, 1);
    flaky.forget();
  }
});

test("reads carry the greatest position that a write was answered with", async () => {
  const sent: (string | null)[] = [];
  const answers = ["00000000000000A0", "0000000000000009", null, "00000000000000B0", null];
  const client = (): Loxodon =>
    new Loxodon({
      baseUrl: "http://positions.test",
      fetch: async (_, init) => {
        sent.push(new Headers(init?.headers).get("X-Loxodon-Position"));
        const position = answers.shift();
        return Response.json({ results: [] }, position ? { headers: { "X-Loxodon-Position": position } } : {});
      },
    });
  const [one, another] = [client(), client()];
  await one.memory.add("Prefers tea.", { user_id: "a" });
  await another.memory.add("Has a boat.", { user_id: "a" });
  await another.memory.search("tea", { user_id: "a" });
  await one.memory.add("Has a cat.", { user_id: "a" });
  await another.memory.search("cat", { user_id: "a" });
  assert.deepEqual(sent, [null, ...Array(3).fill("00000000000000A0"), "00000000000000B0"]);
});

test("Retry-After is waited for, as seconds and as a date", async () => {
  flaky.forget({ status: 429, retryAfter: "1" });
  await loxodon.memory.search("tea", { user_id: "alice" });
  assert.ok(flaky.times[1]! - flaky.times[0]! >= 1_000);
  flaky.forget({ status: 503, retryAfter: new Date(Date.now() + 2_500).toUTCString() });
  await loxodon.memory.search("tea", { user_id: "alice" });
  assert.ok(flaky.times[1]! - flaky.times[0]! >= 1_000);
});

test("a wait that is too long is told instead", async () => {
  flaky.forget({ status: 429, retryAfter: "3600" });
  await assert.rejects(loxodon.memory.search("tea", { user_id: "alice" }), (error) => {
    return error instanceof RateLimitedError && error.retryAfterMs === 3_600_000;
  });
  assert.equal(flaky.times.length, 1);
});

test("what cannot be repeated is not, unless nothing was done", async () => {
  const body = { name: `k-${randomUUID()}`, rights: ["memory:read" as const] };
  flaky.forget("after");
  await assert.rejects(loxodon.request("post", "/v1/api-keys", { body }), (error) => error instanceof NoAnswerError && error.sent);
  assert.equal(flaky.times.length, 1);
  flaky.forget("after");
  const path = { conversation_id: `c-${randomUUID()}`, key: "city" };
  const note = loxodon.request("put", "/v1/working/{conversation_id}/items/{key}", { path, body: { value: "Oslo" } });
  await assert.rejects(note, (error) => error instanceof NoAnswerError && error.sent);
  assert.equal(flaky.times.length, 1);
  flaky.forget({ status: 429, retryAfter: "0" });
  assert.ok((await loxodon.request("post", "/v1/api-keys", { body })).api_key);
});

test("what would be refused again is not repeated", async () => {
  for (const [status, code] of [[400, "invalid_input"], [503, "deadline_exceeded"], [500, "internal_error"]] as const) {
    flaky.forget({ status, body: JSON.stringify({ code, detail: "No." }) });
    await assert.rejects(loxodon.memory.search("tea", { user_id: "alice" }), (error) => {
      return error instanceof ApiError && error.code === code && error.message === "No.";
    });
    assert.equal(flaky.times.length, 1);
  }
});

test("after the last attempt its error is thrown", async () => {
  const once = new Loxodon({ baseUrl, maxRetries: 1 });
  flaky.forget({ status: 503 }, { status: 503, body: '{"code": "outcome_unknown", "detail": "Lost."}' });
  await assert.rejects(once.memory.search("tea", { user_id: "alice" }), (error) => {
    return error instanceof OutcomeUnknownError && error instanceof UnavailableError;
  });
  assert.equal(flaky.times.length, 2);
  const gone = new Flaky("");
  const nowhere = await gone.start();
  gone.stop();
  const nobody = new Loxodon({ baseUrl: nowhere, maxRetries: 1 });
  await assert.rejects(nobody.memory.search("tea", { user_id: "alice" }), (error) => {
    return error instanceof NoAnswerError && !error.sent;
  });
});

test("an attempt takes no longer than it may, and the next may answer", async () => {
  flaky.forget("never");
  const found = await loxodon.memory.search("tea", { user_id: "alice" }, { timeoutMs: 5_000 });
  assert.ok(found.results);
  flaky.forget("never");
  const short = loxodon.memory.search("tea", { user_id: "alice" }, { timeoutMs: 100, maxRetries: 0 });
  await assert.rejects(short, TimedOutError);
});

test("a signal ends the call, also while it waits to be repeated", async () => {
  const given: Fate[] = ["never", { status: 503, retryAfter: "30" }];
  for (const fate of given) {
    flaky.forget(fate);
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error("enough")), 200);
    const began = performance.now();
    const call = loxodon.memory.search("tea", { user_id: "alice" }, { signal: controller.signal });
    await assert.rejects(call, /enough/);
    assert.ok(performance.now() - began < 5_000);
  }
  flaky.forget();
  await assert.rejects(loxodon.memory.get("x", {}, { signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.equal(flaky.times.length, 0);
});

test("a list goes on where a page was lost", async () => {
  const scope = { user_id: `u-${randomUUID()}` };
  await loxodon.memory.addMany(Array.from({ length: 9 }, (_, place) => ({ content: `Fact ${place}`, dedup: false, ...scope })));
  flaky.forget("pass", "after", "pass", "half");
  assert.equal(new Set((await loxodon.memory.list({ ...scope, limit: 3 }).toArray()).map((each) => each.id)).size, 9);
});
