/** The types of requests and answers by their route, out of the generated ones. Names are those of the wire. */
import type { components, paths } from "./schema.js";

export type Schemas = components["schemas"];
export type Method = "get" | "post" | "put" | "patch" | "delete";
/** The routes that take a method. */
export type RouteOf<M extends Method> = {
  [R in keyof paths]: paths[R] extends Record<M, object> ? R : never;
}[keyof paths];

type Operation<R extends keyof paths, M extends Method> = NonNullable<paths[R][M]>;
type Parameters<O, Place extends string> = O extends { parameters: infer P }
  ? Place extends keyof P
    ? NonNullable<P[Place]>
    : never
  : never;
type Json<Content> = Content extends { content: { "application/json": infer Found } } ? Found : never;

/** What stands behind the question mark. */
export type QueryOf<R extends keyof paths, M extends Method> = [Parameters<Operation<R, M>, "query">] extends [never]
  ? Record<never, never>
  : Parameters<Operation<R, M>, "query">;
export type PathOf<R extends keyof paths, M extends Method> = Parameters<Operation<R, M>, "path">;
export type BodyOf<R extends keyof paths, M extends Method> =
  Operation<R, M> extends { requestBody?: infer Body } ? Json<NonNullable<Body>> : never;
/** The good answers, whatever their status. */
export type AnswerOf<R extends keyof paths, M extends Method> =
  Operation<R, M> extends { responses: infer All }
    ? { [Status in keyof All & (200 | 201 | 202)]: Json<All[Status]> }[keyof All & (200 | 201 | 202)]
    : never;

/** What a route needs beside its name. */
export type Given<R extends keyof paths, M extends Method> = ([PathOf<R, M>] extends [never]
  ? { path?: never }
  : { path: PathOf<R, M> }) & { query?: QueryOf<R, M> } & ([BodyOf<R, M>] extends [never]
    ? { body?: never }
    : { body?: BodyOf<R, M> });

export type Memory = Schemas["MemoryResponse"];
/** A memory in a list; with `detail: "full"` it has the fields of a Memory, too. */
export type MemoryItem = Schemas["MemoryItem"];
export type Message = Schemas["MessageInput"];
export type Filter = Schemas["FilterInput"];
/** Whose memories: at least one of the three ids, unless the key has one of its own. */
export type Scope = Pick<Schemas["StoreRequest"], "user_id" | "agent_id" | "run_id" | "channel">;
