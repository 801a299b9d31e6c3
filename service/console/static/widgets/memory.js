/** A memory in a list: its link, state and tags; and how two texts differ. */

import { day, html, link } from "../ui.js";

/** The name of its state, which is also a class; "" for a current memory. */
export function stateOf(memory) {
  if (memory.deleted_at) return "deleted";
  if (memory.version_of || Date.parse(memory.t_invalid) <= Date.now()) return "ended";
  if (memory.archived) return "archived";
  return memory.may_be_outdated_by?.length ? "doubtful" : "";
}

export function stateChip(memory) {
  const state = stateOf(memory);
  const name = { doubtful: "may be outdated", ended: `held until ${day(memory.t_invalid)}` }[state] || state;
  return state && html` <span class=${`chip ${state}`}>${name}</span>`;
}

export function memoryLink(memory) {
  const path = memory.source === "turn" ? `/conversation/${memory.conversation_id}` : `/memory/${memory.id}`;
  return html`<a class="text" href=${link(path, { turn: memory.source && memory.id })}>${memory.memory}</a>`;
}

export const chips = (memory) => html`<span class="chip type">${memory.type}</span>${stateChip(memory)}
  ${memory.categories.map((name) => html`<span class="chip">${name}</span>`)}
  ${memory.tags.map((tag) => html`<a class="chip" href=${link("/memories", { tag })}>#${tag}</a>`)}`;

/** Two texts as one: the old and the new words, between those that both begin and end with. */
export function diff(...texts) {
  const [before, after] = texts.map((text) => (text || "").split(/(\s+)/));
  const most = Math.min(before.length, after.length);
  let head = 0, tail = 0;
  while (head < most && before[head] === after[head]) head += 1;
  while (head + tail < most && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const part = (words, from, to) => words.slice(from, words.length - to).join("");
  return html`<p class="diff">${part(after, 0, after.length - head)}<del>${part(before, head, tail)}</del>
    ${" "}<ins>${part(after, head, tail)}</ins>${part(after, after.length - tail, 0)}</p>`;
}
