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
export function Chips({ memory }) {
  const { link } = usePage();
  return html`<span class="chip type">${memory.type}</span><${State} memory=${memory} />
    ${memory.categories.map((name) => html`<span class="chip">${name}</span>`)}
    ${memory.tags.map((tag) => html`<a class="chip" href=${link("/memories", { tag })}>#${shorten(tag, 40)}</a>`)}`;
}

/** How many items two lists have in common from their beginning. */
function common(one, other) {
  let length = 0;
  while (length < Math.min(one.length, other.length) && one[length] === other[length]) length += 1;
  return length;
}

/** Two texts as one: the words that they share at both ends, and between these the old and the new ones. */
export function Diff({ old, fresh }) {
  const [before, after] = [old, fresh].map((text) => (text || "").split(/(\s+)/));
  const head = common(before, after), tail = common(before.slice(head).reverse(), after.slice(head).reverse());
  const part = (words) => words.slice(head, words.length - tail).join("");
  return html`<p class="diff" dir="auto">${after.slice(0, head).join("")}<del>${part(before)}</del> <ins>${part(after)}</ins>${after.slice(after.length - tail).join("")}</p>`;
}
