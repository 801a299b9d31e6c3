/** What every view uses: the address, the page's context, and loading from the API. */

import { createContext, useContext, useEffect, useRef, useState } from "./vendor/htm-preact.js";
import { get, queryString } from "./api.js";

export const SCOPE = ["user_id", "agent_id", "run_id", "channel"];

/** The address after `#`: a path and its parameters. */
export function readAddress() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  return { path, query: Object.fromEntries(new URLSearchParams(query)) };
}
export const address = (path, query = {}) => `#${path}${queryString(query)}`;

/** The part of `query` that says whose memories are meant. */
export const scopeOf = (query) => Object.fromEntries(SCOPE.filter((name) => query[name]).map((name) => [name, query[name]]));

/**
 * `{path, id, query, scope, as_of, caller}`, and what a view can do: `may(right)`, `link(path, query)` an address in this scope,
 * `go(path)`, `change(query)` of the address, `ask(question)` a dialog, `act(work, sentence, undo)`. See App.
 */
export const Page = createContext(/** @type {any} */ ({}));
export const usePage = () => useContext(Page);

/** Loads whenever `inputs` change: `{value, error, reload}`; `load` receives an AbortSignal. */
export function useLoaded(load, inputs = []) {
  const [state, setState] = useState(/** @type {any} */ ({}));
  const [round, setRound] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    const set = (outcome) => controller.signal.aborted || setState(outcome);
    load(controller.signal).then((value) => set({ value }), (error) => set({ error }));
    return () => controller.abort();
  }, [JSON.stringify(inputs), round]);
  return { ...state, reload: () => setRound((before) => before + 1) };
}

/** Loads a list page by page: its rows are the value; `more()` loads the next page, `edit(rows => rows)` changes them. */
export function usePages(path, query) {
  const [state, setState] = useState(/** @type {any} */ ({}));
  const isLoading = useRef(false);
  const load = async (signal, cursor, rows = []) => {
    const page = await get(path, { ...query, cursor }, signal);
    if (!signal?.aborted) setState({ value: [...rows, ...page.results], cursor: page.next_cursor, total: page.total?.value });
  };
  const { error, reload } = useLoaded(load, [path, query]);
  const more = async () => {
    if (!state.cursor || isLoading.current) return;
    isLoading.current = true;
    await load(undefined, state.cursor, state.value).finally(() => { isLoading.current = false; });
  };
  return { ...state, error, reload, more, edit: (change) => setState({ ...state, value: change(state.value) }) };
}
