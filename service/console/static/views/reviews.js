/** Contradictions that wait for a person. */

import { Diff, html, moment, post, show, useChosen, useEffect, usePages, useState } from "../ui.js";

const VERBS = { a: "accept", r: "reject" }, STEPS = { j: 1, k: -1 };

export default function Reviews({ scope, may, act }) {
  const list = usePages("/v1/reviews", { ...scope, limit: 100 });
  const [at, setAt] = useState(0);
  const { chosen, box } = useChosen(list.value);
  const answer = (verb, some) => may("memory:write") && act(async () => {
    for (const review of some) await post(`/v1/reviews/${review.id}/${verb}`);
  }, verb === "accept" ? "The new statement holds now." : "The earlier statement stays.");
  useEffect(() => {
    const press = ({ key, target, ctrlKey, metaKey }) => {
      const rows = list.value || [];
      if (target.matches("input:not([type=checkbox]), select, dialog *") || ctrlKey || metaKey || !rows[at]) return;
      if (STEPS[key]) setAt(Math.max(0, Math.min(at + STEPS[key], rows.length - 1)));
      if (VERBS[key]) answer(VERBS[key], [rows[at]]);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
  const buttons = (some, suffix = "") => may("memory:write") && html`<p class="actions"><button class="primary" onClick=${() => answer("accept", some)}>Accept${suffix}</button>
    <button onClick=${() => answer("reject", some)}>Reject${suffix}</button></p>`;
  return show(list, (rows) => html`<p class="hint">Accept: the new statement replaces the old one. Keys: j next, k previous, a accept, r reject.</p>
    ${chosen.length > 0 && buttons(chosen, ` ${chosen.length} selected`)}
    <ol class="cards">${rows.map((review, index) => html`<li key=${review.id} aria-current=${index === at} onClick=${() => setAt(index)}>
      <p class="hint">${box(review, review.memory?.memory)} ${moment(review.created_at)}</p>
      ${review.contradicts.map((old) => html`<${Diff} old=${old.memory} fresh=${review.memory?.memory} />`)}${buttons([review])}</li>`)}</ol>`,
  html`<p>Nothing waits for review.</p><p class="hint">With the policy <code>flag_review</code>, a workspace asks here before a new statement replaces an old one.</p>`);
}
