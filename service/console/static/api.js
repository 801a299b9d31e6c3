/** A client of the REST API: its key, errors and retries. */

const TRIES = 3, WAIT_MS = 400, TEMPORARY = [429, 502, 503, 504];

/** Where this tab's sessionStorage has the key. */
export const KEY = "loxodon.key";

/** The values as a query string, without empty ones. */
export function queryString(values) {
  const given = Object.entries(values).filter(([, value]) => value);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** The service's sentence about a refusal, and the id in its log. */
async function refusal(answer) {
  const { detail = `The service answered ${answer.status}.` } = await answer.json().catch(() => ({}));
  return Object.assign(new Error(`${detail} Request ${answer.headers.get("X-Request-ID")}.`), { status: answer.status });
}

let position = ""; // the greatest yet: reads then see what was written, also on a standby

/** Sends a request; throws an error with a `status` when it is refused, a TypeError when nothing answers. */
async function send(method, path, { body, headers, signal } = /** @type {any} */ ({})) {
  const all = { Authorization: `Bearer ${sessionStorage.getItem(KEY)}`, "Content-Type": "application/json", ...headers };
  if (position) all["X-Loxodon-Position"] = position;
  const safe = method === "GET" || !/-keys|jobs/.test(path);
  if (safe) all["Idempotency-Key"] = crypto.getRandomValues(new Uint32Array(4)).join("-");
  for (let tries = safe ? 1 : TRIES; ; tries += 1) {
    try {
      const answer = await fetch(path, { method, signal, headers: all, body: body && JSON.stringify(body) });
      const reached = answer.headers.get("X-Loxodon-Position") ?? "";
      if (reached > position) position = reached;
      if (answer.ok) return answer;
      if (tries === TRIES || !TEMPORARY.includes(answer.status)) throw await refusal(answer);
    } catch (error) {
      if (tries === TRIES || signal?.aborted || error.status) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS * tries));
  }
}

const json = async (...request) => (await send(...request)).json();
export const get = (path, query = {}) => json("GET", path + queryString(query));
export const post = (path, body = {}) => json("POST", path, { body });
export const patch = (path, body, version) => json("PATCH", path, { body, headers: { "If-Match": `"${version}"` } });
export const remove = (path) => send("DELETE", path);

/** Reads the change feed until `signal` is aborted. EventSource could not send the key. */
export async function follow(onChanges, signal) {
  const answer = await send("GET", "/v1/changes", { headers: { Accept: "text/event-stream" }, signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (text + part.value).split("\n");
    text = lines.pop();
    onChanges(lines.filter((line) => line.startsWith("data:")).map((line) => JSON.parse(line.slice(5))));
  }
}
