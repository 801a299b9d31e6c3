export { Conversations, Loxodon, Memories } from "./client.js";
export * from "./errors.js";
export type { CallOptions, Settings } from "./http.js";
export { type Page, Pages } from "./pages.js";
export type { AnswerOf, BodyOf, Filter, Given, Memory, MemoryItem, Message, Method, QueryOf, RouteOf, Schemas, Scope } from "./types.js";
