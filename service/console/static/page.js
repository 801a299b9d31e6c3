/** What all views share: the state, the address, loading from the API. */

import { useLayoutEffect, useState } from "./vendor/htm-preact.js";
import { get, queryString } from "./api.js";

const SCOPE = ["user_id", "agent_id", "run_id", "channel"];
const FIRST = 40, MORE = 200, MOST = 1_000; // rows of the first page, of each after it, of any

/** The state: who looks at what, and which message and question are shown. */
export const page = /** @type {any} */ ({ round: 0 });

/** Changes the state, and draws everything again. */
export function update(changes) {
  Object.assign(page, changes);
  page.draw();
}
export const reload = () => update({ round: page.round + 1 });
export const may = (right) => page.caller.rights.includes(right);

export function signOut(message = null) {
  sessionStorage.clear();
  update({ caller: null, message });
}

/** Shows a Question; true if its action is chosen. */
export const ask = (question) => new Promise((resolve) => {
  update({ question: { ...question, done: (isYes) => { update({ question: null }); resolve(isYes); } } });
});

/** Does `work` if `question` is confirmed, shows the sentence or the error, and loads again unless `work` returns false. */
export async function act(work, sentence = "", { question, undo } = /** @type {any} */ ({})) {
  const { href } = location;
  try {
    if (question && !await ask(await question)) return false;
    const outcome = await work();
    if (sentence) update({ message: { text: sentence, undo: undo && (() => act(() => undo(outcome), "Undone.")) } });
    if (outcome !== false && location.href === href) reload();
    return true;
  } catch (error) {
    const message = { text: error.message, isError: true };
    if (error.status === 401) signOut(message);
    else if (error.name !== "AbortError") update({ message });
    return false;
  }
}

/** The part of `query` that says whose memories are meant. */
export const scopeOf = (query) => Object.fromEntries(Object.entries(query).filter(([name, value]) => value && SCOPE.includes(name)));

/** The address after `#`: a path and its parameters. */
export function readAddress() {
  const [path, query] = location.hash.slice(1).split("?");
  return { path, query: Object.fromEntries(new URLSearchParams(query)) };
}

/** An address of the same scope and day as the current one. */
export const link = (path, more = {}) => `#${path}${queryString({ ...page.scope, as_of: page.as_of, ...more })}`;
export const go = (path, more) => { location.hash = link(path, more); };
export const change = (more) => go(readAddress().path, { ...page.query, ...more });

/** Loads when `inputs` change, and again after each `act`; `load` receives what it reloads. */
export function useLoaded(load, inputs = []) {
  const [state, setState] = useState({});
  const asked = JSON.stringify(inputs);
  useLayoutEffect(() => {
    let isCurrent = true;
    const set = (outcome) => isCurrent && setState({ ...outcome, asked });
    load(state.asked === asked && state.value).then((value) => set({ value }), (error) => set({ error }));
    return () => { isCurrent = false; };
  }, [asked, page.round]);
  return { ...state, setState };
}

/** Loads a list of rows; `more()` loads the next page, if there is a `cursor`. */
export function usePages(path, query = {}) {
  const load = (before) => get(path, { ...query, limit: Math.min(MOST, Math.max(FIRST, before ? before.results.length : 0)) });
  const { value = {}, error, setState } = useLoaded(load, [path, query]);
  const { results, next_cursor: cursor, total } = value;
  const more = async () => {
    if (!cursor || value.isLoading) return;
    value.isLoading = true;
    const next = await get(path, { ...query, count: "", limit: MORE, cursor }).finally(() => { value.isLoading = false; });
    const all = { ...next, total, results: [...results, ...next.results] };
    setState((now) => (now.value === value ? { ...now, value: all } : now));
  };
  return { value: results, error, cursor, total: total?.value, more };
}
