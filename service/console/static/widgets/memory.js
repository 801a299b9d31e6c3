/** How a memory looks in a list: its text as a link, its state, its tags; and how two texts differ. */

import { day, html, shorten, usePage } from "../ui.js";

/** @returns {string} the class and name of its state; "" for a current memory */
export function stateOf(memory) {
  if (memory.deleted_at) return "deleted";
  if (memory.version_of || Date.parse(memory.t_invalid) <= Date.now()) return "ended";
  if (memory.archived) return "archived";
  return memory.may_be_outdated_by?.length ? "doubtful" : "";
}

export function State({ memory }) {
  const state = stateOf(memory);
  const name = { doubtful: "may be outdated", ended: `held until ${day(memory.t_invalid)}` }[state] || state;
  return state && html` <span class=${`chip ${state}`}>${name}</span>`;
}

export function MemoryLink({ memory, most = 300 }) {
  const { link } = usePage();
  const path = memory.source === "turn" ? `/conversation/${memory.conversation_id}` : `/memory/${memory.id}`;
  return html`<a class="text" dir="auto" href=${link(path, { turn: memory.source && memory.id })}>${shorten(memory.memory, most)}</a>`;
}

/** Type, state, categories, and tags that lead to the memories that have them. */
export function Chips({ memory, most = 300 }) {
  const { link } = usePage();
  const { type, categories, tags } = memory;
  return html`<span class="chips"><span class="chip type">${type}</span><${State} memory=${memory} />
    ${categories.slice(0, 3).map((name) => html`<span class="chip">${name}</span>`)}
    ${tags.slice(0, most).map((tag) => html`<a class="chip" href=${link("/memories", { tag })}>#${shorten(tag, 40)}</a>`)}
    ${tags.length > most && html`<span class="chip">+${tags.length - most}</span>`}</span>`;
}

/** Two texts as one: the words that they share at both ends, and between these the old and the new ones. */
export function Diff({ old, fresh }) {
  const before = (old || "").split(/(\s+)/), after = (fresh || "").split(/(\s+)/);
  const most = Math.min(before.length, after.length);
  let head = 0, tail = 0;
  while (head < most && before[head] === after[head]) head += 1;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const part = (words) => words.slice(head, words.length - tail).join("");
  return html`<p class="diff" dir="auto">${after.slice(0, head).join("")}<del>${part(before)}</del> <ins>${part(after)}</ins>${after.slice(after.length - tail).join("")}</p>`;
}
