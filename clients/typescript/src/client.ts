/** The client: a face for what most programs do, and `request` for every other route, with the same types and retries. */
import { LoxodonError, TimedOutError } from "./errors.js";
import { type CallOptions, Http, type Settings } from "./http.js";
import { type Page, Pages } from "./pages.js";
import type {
  AnswerOf,
  BodyOf,
  Filter,
  Given,
  Memory,
  MemoryItem,
  Message,
  Method,
  QueryOf,
  RouteOf,
  Schemas,
  Scope,
} from "./types.js";

type Without<Type, Names extends PropertyKey> = Omit<Type, Names>;
/** As in the address, but a filter may be the object that it is. */
type ListQuery = Without<QueryOf<"/v1/memories", "get">, "cursor" | "filters"> & { filters?: Filter };
type Owner = Pick<Scope, "user_id" | "agent_id" | "run_id">;

/** A connection to one service with one key. It holds no state, so one is enough for a program. */
export class Loxodon {
  readonly #http: Http;
  readonly memory: Memories;
  readonly conversations: Conversations;

  constructor(settings: Settings = {}) {
    this.#http = new Http(settings);
    this.memory = new Memories(this);
    this.conversations = new Conversations(this);
  }

  get baseUrl(): string {
    return this.#http.baseUrl;
  }

  /** Any route: `request("get", "/v1/goals/{id}", { path: { id } })`. */
  request<M extends Method, R extends RouteOf<M>>(
    method: M,
    route: R,
    given: Given<R, M> = {} as Given<R, M>,
    call: CallOptions = {},
  ): Promise<AnswerOf<R, M>> {
    const { path, query, body } = given as { path?: Record<string, string>; query?: object; body?: unknown };
    const sent = { method: method.toUpperCase(), route, path, query: { ...query }, body };
    return this.#http.send(sent, call);
  }

  /** The same for any list with `cursor`: `pages("/v1/goals", { query: { user_id } })`. */
  pages<R extends RouteOf<"get">>(
    route: R,
    given: Given<R, "get"> = {} as Given<R, "get">,
    call: CallOptions = {},
  ): Pages<AnswerOf<R, "get"> extends { results: (infer Item)[] } ? Item : never> {
    return new Pages(async (cursor) => {
      const query = { ...(given.query as object), ...(cursor === null ? {} : { cursor }) };
      const page = await this.request("get", route, { ...given, query } as Given<R, "get">, call);
      const { results, next_cursor } = page as Partial<Page<never>>;
      if (results === undefined) throw new LoxodonError(`GET ${route} is not a list.`);
      return { results, next_cursor: next_cursor ?? null };
    });
  }

  /**
   * What has changed since `after`, the `next_cursor` of the page before; "now": only what comes. Every change once, in
   * an order that is the same for every reader. Keep `next_cursor` with what you made of the page; where `has_more` is
   * false, ask again later.
   */
  changes(options: QueryOf<"/v1/changes", "get"> = {}, call?: CallOptions): Promise<Schemas["ChangesPage"]> {
    return this.request("get", "/v1/changes", { query: options }, call) as Promise<Schemas["ChangesPage"]>;
  }

  /** Waits until an operation is done or failed. Throws TimedOutError after about `withinMs`, by default 5 minutes. */
  async wait(operationId: string, withinMs = 300_000, call: CallOptions = {}): Promise<Schemas["OperationResponse"]> {
    const until = Date.now() + withinMs;
    for (let ms = 100; ; ms = Math.min(2_000, ms * 1.5)) {
      const found = await this.request("get", "/v1/operations/{id}", { path: { id: operationId } }, call);
      if (found.status === "done" || found.status === "failed") return found;
      if (Date.now() + ms > until) {
        throw new TimedOutError(`Operation ${operationId} is ${found.status} after ${withinMs} ms`, true);
      }
      await new Promise((resolve) => setTimeout(resolve, ms));
    }
  }
}

/** What is remembered. */
export class Memories {
  readonly #client: Loxodon;

  constructor(client: Loxodon) {
    this.#client = client;
  }

  /** Stores a text as one memory, or messages as what they tell: `results` says what became of each text or fact. */
  add(
    what: string | Message | Message[],
    options: Without<Schemas["StoreRequest"], "content" | "messages"> = {},
    call?: CallOptions,
  ): Promise<Schemas["StoreResponse"]> {
    return this.#client.request("post", "/v1/memories", { body: { ...said(what), ...options } }, call);
  }

  /** Up to 100 stores in one request. Each has a `status` of its own, and an `error` where it failed. */
  addMany(items: Schemas["StoreRequest"][], call?: CallOptions): Promise<Schemas["StoreBatchResponse"]> {
    return this.#client.request("post", "/v1/memories/batch", { body: { items } }, call);
  }

  /** Stores a long conversation: answered when it is safe; `client.wait(operation_id)` says when it is read. */
  addLater(
    messages: Message[],
    options: Without<Schemas["StoreRequest"], "content" | "messages"> = {},
    call?: CallOptions,
  ): Promise<Schemas["AcceptedResponse"]> {
    return this.#client.request("post", "/v1/operations", { body: { messages, ...options } }, call);
  }

  /** The memories that answer, best first. With "" what the narrowing leaves, the most important first. */
  search(
    query: string,
    options: Without<BodyOf<"/v1/memories/search", "post">, "query"> = {},
    call?: CallOptions,
  ): Promise<Schemas["SearchResponse"]> {
    return this.#client.request("post", "/v1/memories/search", { body: { query, ...options } }, call);
  }

  /** Everything that helps to answer, within `max_tokens`; with `format: "markdown"` as one block for a prompt. */
  recall(
    query: string,
    options: Without<Schemas["RecallRequest"], "query"> = {},
    call?: CallOptions,
  ): Promise<Schemas["RecallResponse"]> {
    return this.#client.request("post", "/v1/recall", { body: { query, ...options } }, call);
  }

  /** The memories of a scope, newest first; with `state: "deleted"` those that are gone. */
  list(options: ListQuery, call?: CallOptions): Pages<MemoryItem> {
    const query = options as QueryOf<"/v1/memories", "get">; // a filter becomes JSON in the address
    return this.#client.pages("/v1/memories", { query }, call);
  }

  /** One memory. Throws NotFoundError. */
  get(id: string, options: QueryOf<"/v1/memories/{id}", "get"> = {}, call?: CallOptions): Promise<Memory> {
    return this.#client.request("get", "/v1/memories/{id}", { path: { id }, query: options }, call);
  }

  /** Up to 1,000 memories; `missing` lists the ids that are none. */
  getMany(ids: string[], call?: CallOptions): Promise<Schemas["MemoriesByIdResponse"]> {
    return this.#client.request("post", "/v1/memories/batch/get", { body: { ids } }, call);
  }

  /** Changes what is named; null removes where that makes sense. `call.ifMatch`: the version that you read. */
  update(
    id: string,
    changes: Schemas["PatchMemoryRequest"],
    call?: CallOptions,
  ): Promise<Memory> {
    return this.#client.request("patch", "/v1/memories/{id}", { path: { id }, body: changes }, call);
  }

  /** Deletes a memory; its history stays. Doing it again says `already_deleted`. Without a trace: `purge`. */
  delete(id: string, options: Owner = {}, call?: CallOptions): Promise<Schemas["DeletedMemoryResponse"]> {
    const found = this.#client.request("delete", "/v1/memories/{id}", { path: { id }, query: options }, call);
    return found as Promise<Schemas["DeletedMemoryResponse"]>;
  }

  /** Deletes a memory with its history and all that came from it (right memory:purge). There is no way back. */
  purge(id: string, options: Owner = {}, call?: CallOptions): Promise<Schemas["PurgeReceiptResponse"]> {
    const query = { ...options, purge: true };
    const found = this.#client.request("delete", "/v1/memories/{id}", { path: { id }, query }, call);
    return found as Promise<Schemas["PurgeReceiptResponse"]>;
  }

  /** Deletes all of a user, agent or run. A large deletion goes on: `status` is then queued, and `client.wait` waits. */
  deleteAll(
    scope: Without<QueryOf<"/v1/memories", "delete">, "purge">,
    call?: CallOptions,
  ): Promise<Schemas["ScopeDeletionResponse"]> {
    const found = this.#client.request("delete", "/v1/memories", { query: scope }, call);
    return found as Promise<Schemas["ScopeDeletionResponse"]>;
  }

  /** Deletes all of a user, agent or run, history included (right memory:purge). There is no way back. */
  purgeAll(
    scope: Without<QueryOf<"/v1/memories", "delete">, "purge" | "shared">,
    call?: CallOptions,
  ): Promise<Schemas["PurgeReceiptResponse"]> {
    const found = this.#client.request("delete", "/v1/memories", { query: { ...scope, purge: true } }, call);
    return found as Promise<Schemas["PurgeReceiptResponse"]>;
  }

  /** Forgets what a query means, or the memories of these ids; `dry_run` shows what would go. */
  forget(
    what: string | string[],
    options: Without<Schemas["ForgetRequest"], "query" | "ids"> = {},
    call?: CallOptions,
  ): Promise<Schemas["ForgetResponse"]> {
    const wanted = typeof what === "string" ? { query: what } : { ids: what };
    return this.#client.request("post", "/v1/forget", { body: { ...wanted, ...options } }, call);
  }

  /** Brings back an archived memory. */
  restore(id: string, call?: CallOptions): Promise<Memory> {
    return this.#client.request("post", "/v1/memories/{id}/restore", { path: { id } }, call);
  }

  /** Every change of a memory, oldest first; also after it is gone. */
  history(id: string, call?: CallOptions): Promise<Schemas["MemoryHistoryResponse"]> {
    return this.#client.request("get", "/v1/memories/{id}/history", { path: { id } }, call);
  }

  /** Where a memory comes from, and who decided it. */
  why(id: string, call?: CallOptions): Promise<Schemas["ExplainMemoryResponse"]> {
    return this.#client.request("get", "/v1/memories/{id}/why", { path: { id } }, call);
  }

  /** The rulings about a memory; `undo` takes one back by its id. */
  decisions(id: string, call?: CallOptions): Promise<Schemas["DecisionPage"]> {
    return this.#client.request("get", "/v1/memories/{id}/decisions", { path: { id } }, call);
  }

  /** Takes back a decision, with all that was decided together with it. */
  undo(decisionId: string, call?: CallOptions): Promise<Schemas["UndoDecisionResponse"]> {
    return this.#client.request("post", "/v1/decisions/{id}/undo", { path: { id: decisionId } }, call);
  }
}

/** What was said, turn by turn. An `id` is the conversation's id, or your name for it with its owner beside it. */
export class Conversations {
  readonly #client: Loxodon;

  constructor(client: Loxodon) {
    this.#client = client;
  }

  /** Opens a conversation by your name `external_id`; the same one if it is there. */
  open(
    options: Schemas["CreateConversationRequest"],
    call?: CallOptions,
  ): Promise<Schemas["ConversationResponse"]> {
    return this.#client.request("post", "/v1/conversations", { body: options }, call);
  }

  /** The conversations of a scope, newest first. */
  list(
    options: Without<QueryOf<"/v1/conversations", "get">, "cursor">,
    call?: CallOptions,
  ): Pages<Schemas["ConversationResponse"]> {
    return this.#client.pages("/v1/conversations", { query: options }, call);
  }

  /** Keeps a turn. Number turns with `turn_index` where somebody may say the same twice. */
  add(
    id: string,
    turn: Schemas["StoreTurnRequest"],
    owner: Owner = {},
    call?: CallOptions,
  ): Promise<Schemas["StoreTurnResponse"]> {
    return this.#client.request("post", "/v1/conversations/{id}/turns", { path: { id }, query: owner, body: turn }, call);
  }

  /** Its turns, in order. */
  turns(
    id: string,
    options: Without<QueryOf<"/v1/conversations/{id}", "get">, "cursor"> = {},
    call?: CallOptions,
  ): Pages<Schemas["TurnResponse"]> {
    return new Pages(async (cursor) => {
      const query = { ...options, ...(cursor === null ? {} : { cursor }) };
      const page = await this.#client.request("get", "/v1/conversations/{id}", { path: { id }, query }, call);
      return { results: page.turns, next_cursor: page.next_cursor ?? null };
    });
  }

  /** The latest turns and what bears on them, as a block for a prompt. */
  context(
    id: string,
    options: QueryOf<"/v1/conversations/{id}/context", "get"> = {},
    call?: CallOptions,
  ): Promise<Schemas["ConversationContextResponse"]> {
    return this.#client.request("get", "/v1/conversations/{id}/context", { path: { id }, query: options }, call);
  }

  /** The turns that answer, of all conversations of a scope. */
  search(
    query: string,
    options: Without<QueryOf<"/v1/turns/search", "get">, "query"> = {},
    call?: CallOptions,
  ): Promise<Schemas["TurnSearchResponse"]> {
    return this.#client.request("get", "/v1/turns/search", { query: { query, ...options } }, call);
  }

  /** Deletes it with its turns; with `facts` what only it told goes as well. */
  delete(
    id: string,
    options: Owner & { facts?: boolean } = {},
    call?: CallOptions,
  ): Promise<Schemas["DeletedTurnsResponse"]> {
    const found = this.#client.request("delete", "/v1/conversations/{id}", { path: { id }, query: options }, call);
    return found as Promise<Schemas["DeletedTurnsResponse"]>;
  }
}

function said(what: string | Message | Message[]): { content: string } | { messages: Message[] } {
  if (typeof what === "string") return { content: what };
  return { messages: Array.isArray(what) ? what : [what] };
}
