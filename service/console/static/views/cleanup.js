/** What could be cleaned up, with reason and size. */

import { act, cards, get, go, html, plural, post, scopeOf, show, spaced, useChosen, useLoaded } from "../ui.js";

export default function Cleanup() {
  const loaded = useLoaded(async () => (await get("/v1/optimization/report", { limit: 50 })).sections.filter((each) => each.total > 0));
  const withId = (finding) => ({ ...finding, id: finding.ids.join() });
  const { chosen, box } = useChosen(loaded.value?.flatMap((each) => each.findings.map(withId)));
  const changes = chosen.map((each) => each.change), isUndoable = chosen.every((each) => each.is_undoable);
  const apply = () => act(
    () => post("/v1/optimization/apply", { changes, dry_run: false }), `${plural(chosen.length, "recommendation")} applied.`,
    { undo: isUndoable && (({ decision_id }) => post(`/v1/decisions/${decision_id}/undo`)) },
  );
  const review = ({ ids }) => act(async () => go("/reviews", scopeOf(await get(`/v1/memories/${ids[0]}`))));
  const finding = (each) => html`<div class="row">${each.change && box(withId(each), each.about)}<div>
    <b>${spaced(each.remedy)}</b>: <span>${each.about}</span>${each.kept && html`<p>Kept: ${each.kept}</p>`}
    <small>${each.reason} Gain in ${each.gain_unit}: ${each.gain.toLocaleString()}.
      ${each.is_undoable ? " Can" : " Cannot"} be undone.</small></div>
    ${each.review_id && html`<button onClick=${() => review(each)}>Review</button>`}</div>`;
  return html`<p>Nothing happens before you apply it.</p>
    <p class="actions"><button class="primary" disabled=${chosen.length === 0} onClick=${apply}>Apply ${chosen.length} selected</button></p>
    ${show(loaded, (sections) => sections.map(({ section, total, is_exact, findings }) => html`
      <h2>${spaced(section)} (${total}${!is_exact && "+"})</h2>${cards(findings, finding)}`), "Nothing to clean up.")}`;
}
