/** What could be cleaned up, with reason and size. */

import { Loaded, get, html, plural, post, spaced, useChosen, useLoaded, usePage } from "../ui.js";

export default function Health() {
  const { act } = usePage();
  const loaded = useLoaded(() => get("/v1/optimization/report", { limit: 50 }));
  const { chosen, box, clear } = useChosen();
  const apply = () => {
    let decision = "";
    const undo = async () => { await post(`/v1/decisions/${decision}/undo`); loaded.reload(); };
    act(async () => {
      decision = (await post("/v1/optimization/apply", { changes: chosen.map((each) => each.change), dry_run: false })).decision_id;
      clear();
      loaded.reload();
    }, `${plural(chosen.length, "recommendation")} applied.`, chosen.every((each) => each.is_undoable) ? undo : undefined);
  };
  const finding = (each) => html`<li class="row">${each.change && box(each, each.about)}<div><span dir="auto">${each.about}</span>
    ${each.kept && html`<p dir="auto">Kept: ${each.kept}</p>`}<p class="hint"><b>${spaced(each.remedy)}</b>: ${each.reason}
      ${" "}Gain in ${each.gain_unit}: ${each.gain.toLocaleString()}. ${each.is_undoable ? "Can" : "Cannot"} be undone.</p></div></li>`;
  return html`<p>Recommended clean-ups. Nothing happens before you apply it.</p><${Loaded} of=${loaded}>${({ sections }) => html`
    ${sections.every((each) => each.total === 0) ? html`<p class="box">Nothing to clean up.</p>`
      : html`<p class="actions"><button class="primary" disabled=${chosen.length === 0} onClick=${apply}>Apply ${chosen.length} selected</button></p>`}
    ${sections.filter((each) => each.total > 0).map((section) => html`<h2>${spaced(section.section)} (${section.total}${!section.is_exact && "+"})</h2>
      <ul class="cards">${section.findings.map(finding)}</ul>`)}`}<//>`;
}
