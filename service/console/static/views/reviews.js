/** Contradictions that wait for a person. */

import { act, cards, diff, html, may, moment, post, show, useChosen, useEffect, usePages } from "../ui.js";

const VERBS = { a: "accept", r: "reject" };

export default function Reviews({ scope }) {
  const list = usePages("/v1/reviews", scope);
  const { chosen, box } = useChosen(list.value);
  const answer = (verb, some) => may("memory:write") && act(async () => {
    for (const review of some) await post(`/v1/reviews/${review.id}/${verb}`);
  }, verb === "accept" ? "The new statement holds now." : "The earlier statement stays.");
  useEffect(() => {
    const press = ({ key, target, ctrlKey, metaKey }) => {
      const focused = target.closest("li")?.id, review = list.value?.find(({ id }) => !focused || id === focused);
      const isTyping = ctrlKey || metaKey || target.matches("input:not([type=checkbox]), select, dialog *");
      if (VERBS[key] && review && !isTyping) answer(VERBS[key], [review]);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
  const buttons = (some, suffix = "") => may("memory:write") && html`<p class="actions">
    <button class="primary" onClick=${() => answer("accept", some)}>Accept${suffix}</button>
    <button onClick=${() => answer("reject", some)}>Reject${suffix}</button></p>`;
  return show(list, (rows) => html`<small>Keys: a accepts, r rejects the first, or the one with the focus.</small>
    ${chosen.length > 0 && buttons(chosen, ` ${chosen.length} selected`)}
    ${cards(rows, (review) => html`<small>${box(review, review.memory?.memory)} ${moment(review.created_at)}</small>
      ${review.contradicts.map((old) => diff(old.memory, review.memory?.memory))}${buttons([review])}`)}`,
  html`Nothing waits for review. The policy <code>flag_review</code> asks here before a statement replaces another.`);
}
