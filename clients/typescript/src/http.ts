/** One request through all its attempts: the same body and the same Idempotency-Key each time. */
import { type ApiError, LoxodonError, NoAnswerError, TimedOutError, errorOf } from "./errors.js";
import { KEYED } from "./routes.js";

/** How a client reaches the service. */
export interface Settings {
  /** Where the service is; default LOXODON_URL, else http://127.0.0.1:8080. */
  baseUrl?: string;
  /** A key, or a token of one user; default LOXODON_API_KEY. */
  apiKey?: string;
  /** Milliseconds for one attempt, its answer included; default 60,000. */
  timeoutMs?: number;
  /** Attempts after the first; default 4. */
  maxRetries?: number;
  /** A service that asks for a longer wait is not waited for; default 60,000. */
  longestRetryAfterMs?: number;
  /** Instead of the global fetch: for tests, proxies, other runtimes. */
  fetch?: typeof fetch;
}

/** What one call may have of its own. */
export interface CallOptions {
  /** Ends the call, its retries and their pauses. */
  signal?: AbortSignal;
  timeoutMs?: number;
  maxRetries?: number;
  /** The key under which a repetition is recognised; default one of its own for each call. */
  idempotencyKey?: string;
  /** The version that was read: somebody else's change in between is then an error (PreconditionFailedError). */
  ifMatch?: number | string;
}

export type Query = Record<string, unknown>;

export interface Sent {
  method: string;
  /** As the OpenAPI document has it, `{id}` and all. */
  route: string;
  path?: Record<string, string | number> | undefined;
  query?: Query | undefined;
  body?: unknown;
}

/** POST routes that change nothing, so that they can be repeated without a key. */
const READS = new Set([
  "POST /v1/memories/search",
  "POST /v1/memories/batch/get",
  "POST /v1/recall",
  "POST /v1/entities",
]);
const POSITION = "X-Loxodon-Position";
/**
 * How far each service had written when it last answered a write, so that later reads of this process see it, whichever
 * database server they reach. The greatest is the last, also as text.
 */
const positions = new Map<string, string>();
const AGAIN = new Set([408, 429, 502, 503, 504]);
/** What would take as long, or cost as much, again. */
const NOT_AGAIN = new Set<string>(["deadline_exceeded", "model_budget"]);
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 8_000;
/** A timer for longer goes off at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class Http {
  readonly baseUrl: string;
  readonly #apiKey: string;
  readonly #timeoutMs: number;
  readonly #maxRetries: number;
  readonly #longestRetryAfterMs: number;
  readonly #fetch: typeof fetch;

  constructor(settings: Settings) {
    const environment = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {};
    const apiKey = (settings.apiKey ?? environment["LOXODON_API_KEY"] ?? "").trim();
    if (!apiKey) {
      throw new LoxodonError("No API key: pass apiKey, or set LOXODON_API_KEY. `make run` of the service prints one.");
    }
    if (!/^[\x20-\x7e]+$/.test(apiKey)) {
      throw new LoxodonError("The API key holds characters that no key has. A key is one line of ASCII.");
    }
    this.#apiKey = apiKey;
    this.baseUrl = checkedUrl(settings.baseUrl ?? environment["LOXODON_URL"] ?? "http://127.0.0.1:8080");
    this.#timeoutMs = checkedMs("timeoutMs", settings.timeoutMs ?? 60_000);
    this.#maxRetries = settings.maxRetries ?? 4;
    this.#longestRetryAfterMs = checkedMs("longestRetryAfterMs", settings.longestRetryAfterMs ?? 60_000);
    this.#fetch = settings.fetch ?? ((...given) => fetch(...given));
  }

  /** The JSON of the answer; undefined where there is none. Throws the errors of errors.ts, or what aborted it. */
  async send<Answer>(sent: Sent, call: CallOptions = {}): Promise<Answer> {
    const name = `${sent.method} ${sent.route.split("?")[0]}`;
    const [url, init] = this.#prepare(sent, name, call);
    const headers = init.headers as Record<string, string>;
    const repeatable = "Idempotency-Key" in headers || READS.has(name) || sent.method === "GET";
    const most = call.maxRetries ?? this.#maxRetries;
    for (let made = 1; ; made += 1) {
      const failed = await this.#attempt(url, init, call, made);
      if ("answer" in failed) return failed.answer as Answer;
      const again = made <= most && this.#mayRepeat(failed.error, repeatable);
      if (!again) throw failed.error;
      await pause(waitMs(failed.error, made), call.signal);
    }
  }

  #prepare(sent: Sent, name: string, call: CallOptions): [string, RequestInit] {
    try {
      return this.#request(sent, name, call);
    } catch (cause) {
      throw cause instanceof LoxodonError ? cause : new LoxodonError(`${name}: cannot be sent: ${reason(cause)}`, { cause });
    }
  }

  #request(sent: Sent, name: string, call: CallOptions): [string, RequestInit] {
    if (!/^\/[^#]*$/.test(sent.route)) throw new LoxodonError(`${name}: not a route, such as /v1/timeline.`);
    const path = sent.route.replace(/\{(\w+)\}/g, (_, each: string) => {
      const value = sent.path?.[each];
      // without it the address would be another route, which may take more; dots are steps in a URL, even encoded
      if (value === undefined || value === "") throw new LoxodonError(`${name}: ${each} is missing.`);
      if (value === "." || value === "..") throw new LoxodonError(`${name}: ${each} cannot be ${value}`);
      return encodeURIComponent(value);
    });
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(sent.query ?? {})) {
      for (const each of Array.isArray(value) ? value : [value]) {
        if (each !== undefined && each !== null) query.append(key, text(key, each));
      }
    }
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#apiKey}`, Accept: "application/json" };
    const position = positions.get(this.baseUrl);
    if (position !== undefined) headers[POSITION] = position;
    if (call.idempotencyKey !== undefined || KEYED.has(name)) {
      headers["Idempotency-Key"] = headerText("idempotencyKey", call.idempotencyKey ?? newKey());
    }
    if (call.ifMatch !== undefined) {
      headers["If-Match"] = headerText("ifMatch", typeof call.ifMatch === "number" ? `"${call.ifMatch}"` : call.ifMatch);
    }
    // a redirected POST becomes a GET, whose answer is not that of a store; and the key would go to another address
    const init: RequestInit = { method: sent.method, headers, redirect: "manual" };
    if (sent.body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(sent.body, refuseInvalid);
    }
    const asked = query.toString();
    const url = `${this.baseUrl}${path}`;
    return [asked ? `${url}${path.includes("?") ? "&" : "?"}${asked}` : url, init];
  }

  async #attempt(
    url: string,
    init: RequestInit,
    call: CallOptions,
    made: number,
  ): Promise<{ answer: unknown } | { error: ApiError | NoAnswerError }> {
    call.signal?.throwIfAborted();
    const timeoutMs = checkedMs("timeoutMs", call.timeoutMs ?? this.#timeoutMs);
    const controller = new AbortController();
    const abort = (): void => controller.abort(call.signal?.reason);
    call.signal?.addEventListener("abort", abort, { once: true });
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      controller.abort();
    }, timeoutMs);
    const where = `${init.method} ${url.split("?")[0]}`;
    try {
      const response = await this.#fetch(url, { ...init, signal: controller.signal });
      const position = response.headers.get(POSITION);
      if (position !== null && position > (positions.get(this.baseUrl) ?? "")) positions.set(this.baseUrl, position);
      const body = await response.text();
      if (response.ok) return { answer: response.status === 204 ? undefined : JSON.parse(body) };
      return { error: errorOf(response.status, body, retryAfterMs(response.headers.get("Retry-After"))) };
    } catch (cause) {
      if (call.signal?.aborted) throw call.signal.reason;
      if (cause instanceof SyntaxError) throw new LoxodonError(`${where}: the answer is not JSON.`, { cause });
      const after = `attempt ${made}`;
      if (late) return { error: new TimedOutError(`${where}: no answer within ${timeoutMs} ms (${after})`, true, { cause }) };
      return { error: new NoAnswerError(`${where}: ${reason(cause)} (${after})`, !wasRefused(cause), { cause }) };
    } finally {
      clearTimeout(timer);
      call.signal?.removeEventListener("abort", abort);
    }
  }

  #mayRepeat(error: ApiError | NoAnswerError, repeatable: boolean): boolean {
    if (error instanceof NoAnswerError) return repeatable || !error.sent;
    if (!AGAIN.has(error.status) || NOT_AGAIN.has(error.code)) return false;
    if ((error.retryAfterMs ?? 0) > this.#longestRetryAfterMs) return false;
    return repeatable || error.status === 429; // refused before any work
  }
}

/** Throws for what is not the address of a service. */
function checkedUrl(given: string): string {
  const url = given.trim().replace(/\/+$/, "");
  const scheme = URL.canParse(url) ? new URL(url).protocol : "";
  if (!["http:", "https:"].includes(scheme) || /[?#]/.test(url)) {
    throw new LoxodonError(`baseUrl: not the address of a service, such as http://127.0.0.1:8080: ${given}`);
  }
  return url;
}

/** Throws for what is no time; at most what a timer can wait. */
function checkedMs(name: string, ms: number): number {
  if (!(ms >= 0)) throw new LoxodonError(`${name}: must be milliseconds, from 0: ${ms}`);
  return Math.min(ms, LONGEST_TIMER_MS);
}

/** Throws for what JSON would turn into null: an invalid date, NaN and the infinities. */
function refuseInvalid(this: Record<string, unknown>, key: string, value: unknown): unknown {
  const given = this[key];
  const amount = given instanceof Date ? given.getTime() : given;
  if (typeof amount === "number" && !Number.isFinite(amount)) throw new LoxodonError(`${key}: ${String(given)} cannot be sent.`);
  return value;
}

/** As long as the service asks, and a little more by chance; else twice as long each time, so that clients spread. */
function waitMs(error: ApiError | NoAnswerError, made: number): number {
  const asked = error instanceof NoAnswerError ? null : error.retryAfterMs;
  if (asked !== null) return asked + Math.random() * FIRST_WAIT_MS;
  return Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (made - 1)) * (0.5 + Math.random() / 2);
}

/** Seconds or a date, in milliseconds from now; null for neither. */
function retryAfterMs(header: string | null): number | null {
  if (header === null) return null;
  const seconds = Number(header);
  if (header.trim() !== "" && Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const moment = Date.parse(header);
  return Number.isNaN(moment) ? null : Math.max(0, moment - Date.now());
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Node tells why in the cause of a TypeError "fetch failed"; browsers do not tell. */
function causeOf(error: unknown): { code?: unknown; message?: unknown } {
  const cause = error instanceof Error ? (error as { cause?: unknown }).cause : undefined;
  return typeof cause === "object" && cause !== null ? cause : {};
}

function reason(error: unknown): string {
  const told = causeOf(error);
  return String(told.message || told.code || (error instanceof Error ? error.message : error));
}

/** Whether no connection was made, so that nothing was sent. */
function wasRefused(error: unknown): boolean {
  return ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"].includes(String(causeOf(error).code));
}

/** A header in UTF-8, as the service reads it; throws for what HTTP does not carry. */
function headerText(name: string, value: string): string {
  if (/[\p{Cc}\p{Cs}]/u.test(value)) throw new LoxodonError(`${name}: cannot be sent: ${JSON.stringify(value)}`);
  return String.fromCharCode(...new TextEncoder().encode(value));
}

function text(key: string, value: unknown): string {
  refuseInvalid.call({ [key]: value }, key, value);
  if (value instanceof Date) return value.toISOString();
  return typeof value === "object" ? JSON.stringify(value, refuseInvalid) : String(value);
}

/** 128 bits by chance. Old Node and pages without TLS have no crypto.randomUUID. */
function newKey(): string {
  const bytes = new Uint8Array(16);
  const found = (globalThis as { crypto?: Crypto }).crypto;
  if (found) found.getRandomValues(bytes);
  else bytes.forEach((_, place) => (bytes[place] = Math.random() * 256));
  return Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
}
