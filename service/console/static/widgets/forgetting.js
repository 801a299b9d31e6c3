/** Ending memories: the question with what would go, then the receipt of a purge. */

import { Facts, html, moment, post, spaced, usePage } from "../ui.js";

const struck = (text, rest) => html`<li dir="auto"><del>${text}</del> ${rest}</li>`;
const Preview = ({ plan }) => html`<p>${plan.explanation}</p><ul>
  ${plan.memories.map((each) => struck(each.memory, each.remaining && `stays: ${each.remaining}`))}
  ${plan.turns.map((each) => struck(each.text, html`<span class="hint">said in a conversation</span>`))}</ul>
  ${plan.near_misses.length > 0 && html`<p class="hint">Similar, and stays:</p><ul>${plan.near_misses.map((each) => html`<li dir="auto">${each.memory}</li>`)}</ul>`}`;

/** `forget(ids, isPurge)` asks, and calls `onDone` when they are gone. */
export function useForgetting(onDone) {
  const { act, ask, scope } = usePage();
  return (ids, isPurge = false) => act(async () => {
    const request = { ...scope, ids }, plan = await post("/v1/forget", { ...request, dry_run: true });
    const question = isPurge ? { title: "Purge this?", action: "Purge", word: "purge" } : { title: "Forget this?", action: "Forget" };
    const outlook = isPurge ? "History, logs, jobs and caches lose it too. Nothing brings it back." : "It cannot be undone, but its history keeps the text.";
    if (!(await ask({ ...question, body: html`<${Preview} plan=${plan} /><p>${outlook}</p>` }))) return;
    const { receipt } = await post("/v1/forget", { ...request, purge: isPurge });
    onDone();
    if (receipt) ask({ title: "Purged", body: html`<${Receipt} receipt=${receipt} />` });
  });
}

/** What a purge counted. */
const Receipt = ({ receipt }) => html`<${Facts} facts=${Object.fromEntries(Object.entries(receipt.counts).map(([name, number]) => [spaced(name), number || ""]))} />
  <p class="hint">${receipt.note} ${moment(receipt.purged_at)}, subject <code>${receipt.subject_sha256.slice(0, 16)}…</code></p>`;
