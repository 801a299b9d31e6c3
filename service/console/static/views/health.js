/** What could be cleaned up, with reason and size. */

import { cards, get, html, plural, post, show, spaced, useChosen, useLoaded } from "../ui.js";

export default function Health({ act }) {
  const loaded = useLoaded(() => get("/v1/optimization/report", { limit: 50 }));
  const sections = (loaded.value?.sections || []).filter((each) => each.total > 0);
  const findings = sections.flatMap((each) => each.findings);
  const { chosen, box } = useChosen(findings.map((each) => ({ ...each, id: each.ids.join() })));
  const apply = () => {
    let decision = "";
    act(async () => {
      decision = (await post("/v1/optimization/apply", { changes: chosen.map((each) => each.change), dry_run: false })).decision_id;
    }, `${plural(chosen.length, "recommendation")} applied.`, { undo: chosen.every((each) => each.is_undoable) && (() => post(`/v1/decisions/${decision}/undo`)) });
  };
  const finding = (each) => html`<div class="row">${each.change && box({ id: each.ids.join() }, each.about)}<div><b>${spaced(each.remedy)}</b>: <span dir="auto">${each.about}</span>
    ${each.kept && html`<p dir="auto">Kept: ${each.kept}</p>`}<p class="hint">${each.reason} Gain in ${each.gain_unit}: ${each.gain.toLocaleString()}.
      ${each.is_undoable ? " Can" : " Cannot"} be undone.</p></div></div>`;
  return html`<p>Recommended clean-ups. Nothing happens before you apply it.</p>
    <p class="actions"><button class="primary" disabled=${chosen.length === 0} onClick=${apply}>Apply ${chosen.length} selected</button></p>
    ${show(loaded, () => (sections.length === 0 ? html`<p class="box">Nothing to clean up.</p>` : sections.map((section) => html`
      <h2>${spaced(section.section)} (${section.total}${!section.is_exact && "+"})</h2>${cards(section.findings, finding)}`)))}`;
}
