/** What every view uses: the address, the page's context, and loading from the API. */

import { createContext, useContext, useLayoutEffect, useState } from "./vendor/htm-preact.js";
import { get, queryString } from "./api.js";

const MORE = 200, MOST = 1_000; // rows of each page after the first; of a page
export const SCOPE = ["user_id", "agent_id", "run_id", "channel"];

/** The address after `#`: a path and its parameters. */
export function readAddress() {
  const [path, query] = location.hash.slice(1).split("?");
  return { path, query: Object.fromEntries(new URLSearchParams(query)) };
}
export const address = (path, query = {}) => `#${path}${queryString(query)}`;

/** The part of `query` that says whose memories are meant. */
export const scopeOf = (query) => Object.fromEntries(SCOPE.filter((name) => query[name]).map((name) => [name, query[name]]));

/**
 * `{path, id, query, scope, as_of, valid_at, caller}`, and what a view can do: `may(right)`, `link(path, query)` an address in this scope,
 * `go(path)`, `change(query)` of the address, `ask(question)` a dialog, `say(text)`, `act(work, sentence, {question, undo})`, `reload()`. See App.
 */
export const Page = createContext({});
export const usePage = () => useContext(Page);

/** Loads when `inputs` change, and again after each `act`: `{value, error, reload, edit}`; `load` receives what it reloads. */
export function useLoaded(load, inputs = []) {
  const { round, reload } = usePage();
  const [state, setState] = useState({});
  const asked = JSON.stringify(inputs);
  useLayoutEffect(() => {
    let isCurrent = true;
    const set = (outcome) => isCurrent && setState({ ...outcome, asked });
    load(state.asked === asked && state.value).then((value) => set({ value }), (error) => set({ error }));
    return () => { isCurrent = false; };
  }, [asked, round]);
  return { ...state, reload, edit: (change) => setState((now) => ({ ...now, value: change(now.value) })) };
}

/** Loads a list page by page: its rows are the value; `more()` loads the next page. */
export function usePages(path, query) {
  const load = (before) => get(path, { ...query, limit: before ? Math.min(MOST, Math.max(query.limit, before.results.length)) : query.limit });
  const { value = {}, edit, ...state } = useLoaded(load, [path, query]);
  const { results, next_cursor: cursor, total } = value;
  const more = async () => {
    if (!cursor || value.isLoading) return;
    value.isLoading = true;
    const page = await get(path, { ...query, count: "", limit: MORE, cursor }).finally(() => { value.isLoading = false; });
    edit((now) => (now === value ? { ...page, total, results: [...results, ...page.results] } : now));
  };
  return { ...state, value: results, cursor, total: total?.value, more };
}
