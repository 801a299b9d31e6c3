/** A server in front of the service that loses connections and answers 429 and 503 as it is told. */
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";

interface Refusal {
  status: number;
  retryAfter?: string;
  location?: string;
  body?: string;
}

/** What happens to one request. `before` and `after`: the connection is lost before or after the service did the work. */
export type Fate = "pass" | "before" | "after" | "half" | "never" | Refusal;

export class Flaky {
  /** One for each request to come, in order; then all pass. */
  fates: Fate[] = [];
  /** The Idempotency-Key of each request, in order. */
  keys: (string | undefined)[] = [];
  /** When each came, in milliseconds. */
  times: number[] = [];
  readonly #server: Server;

  constructor(readonly target: string) {
    this.#server = createServer((request, response) => {
      void this.#answer(request, response).catch(() => response.destroy());
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  forget(...fates: Fate[]): void {
    this.fates = fates;
    this.keys = [];
    this.times = [];
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    this.keys.push(request.headers["idempotency-key"] as string | undefined);
    this.times.push(performance.now());
    const fate = this.fates.shift() ?? "pass";
    if (fate === "never") return;
    if (fate === "before") {
      request.socket.destroy();
      return;
    }
    if (typeof fate === "object") {
      const headers = {
        ...(fate.retryAfter === undefined ? {} : { "Retry-After": fate.retryAfter }),
        ...(fate.location === undefined ? {} : { Location: fate.location }),
      };
      response.writeHead(fate.status, headers).end(fate.body ?? "");
      return;
    }
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headers)) {
      if (!["host", "connection", "content-length"].includes(name)) headers.set(name, String(value));
    }
    const body = chunks.length > 0 ? { body: Buffer.concat(chunks) } : {};
    const found = await fetch(this.target + request.url, { method: request.method ?? "GET", headers, ...body });
    const text = Buffer.from(await found.arrayBuffer());
    if (fate === "after") {
      request.socket.destroy();
      return;
    }
    const kept = Object.fromEntries([...found.headers].filter(([name]) => name !== "content-encoding"));
    response.writeHead(found.status, { ...kept, "content-length": String(text.length) });
    if (fate === "half") {
      response.write(text.subarray(0, text.length / 2), () => request.socket.destroy());
      return;
    }
    response.end(text);
  }
}
