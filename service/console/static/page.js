/** What every view uses: the address, the page's context, and loading from the API. */

import { createContext, useContext, useLayoutEffect, useState } from "./vendor/htm-preact.js";
import { get, queryString } from "./api.js";

const MORE = 200; // rows of each page after the first
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

/** Loads whenever `inputs` change: `{value, error, reload}`; `edit(value => value)` changes what was loaded. */
export function useLoaded(load, inputs = []) {
  const [state, setState] = useState(/** @type {any} */ ({}));
  const [round, setRound] = useState(0);
  useLayoutEffect(() => {
    let isCurrent = true;
    const set = (outcome) => isCurrent && setState(outcome);
    load().then((value) => set({ value }), (error) => set({ error }));
    return () => { isCurrent = false; };
  }, [JSON.stringify(inputs), round]);
  const edit = (change) => setState((now) => ({ ...now, value: change(now.value) }));
  return { ...state, edit, reload: () => setRound((before) => before + 1) };
}

/** Loads a list page by page: its rows are the value; `more()` loads the next page, `edit(rows => rows)` changes them. */
export function usePages(path, query) {
  const { value, error, reload, edit } = useLoaded(() => get(path, query), [path, query]);
  const more = async () => {
    if (!value.next_cursor || value.isLoading) return;
    value.isLoading = true;
    const page = await get(path, { ...query, count: "", limit: MORE, cursor: value.next_cursor }).finally(() => { value.isLoading = false; });
    edit((now) => (now === value ? { ...page, total: value.total, results: [...value.results, ...page.results] } : now));
  };
  const editRows = (change) => edit((now) => ({ ...now, results: change(now.results) }));
  return { value: value?.results, cursor: value?.next_cursor, total: value?.total?.value, error, reload, more, edit: editRows };
}
