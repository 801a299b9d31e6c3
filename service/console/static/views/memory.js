/** One memory: what it says, why it is there, what it was before, and how to change or end it. */

import {
  Actions, Chips, Diff, Facts, Loaded, MemoryLink, SCOPE, day, get, html, moment, percent, plural, post, spaced,
  useLoaded, usePage,
} from "../ui.js";

export default function Memory() {
  const { id, scope, as_of, link } = usePage();
  const loaded = useLoaded(async () => {
    const filters = JSON.stringify({ field: "id", operator: "eq", value: id });
    const list = (query) => get("/v1/memories", { ...scope, filters, detail: "full", ...query });
    const [{ results: [live] }, why] = await Promise.all([list({ as_of, include_archived: true }), get(`/v1/memories/${id}/why`)]);
    const memory = live || as_of ? live : (await list({ state: "deleted" })).results[0];
    return [memory, why, live && !as_of ? (await get(`/v1/memories/${id}/related`, { limit: 20 })).results : []];
  }, [id, as_of]);
  return html`<p class="actions"><a href=${link("/memories")}>← All memories</a></p>
    <${Loaded} of=${loaded}>${([memory, why, related]) => html`<article>
      ${memory ? html`<blockquote class="statement" dir="auto">${memory.memory}</blockquote><${Chips} memory=${memory} />
          <div><${Actions} memory=${memory} onChange=${loaded.reload} isWhole /></div>`
        : html`<p class="box">${as_of ? "It was not known then." : "This memory is gone."}</p>`}
      <${Why} why=${why} reload=${loaded.reload} />
      ${memory && html`<h2>When and where</h2><${Facts} facts=${{
        Said: `${moment(memory.timestamp)}${memory.speaker ? ` by ${memory.speaker}` : ""}`,
        "Holds from": day(memory.t_valid), "Holds until": day(memory.t_invalid), Expires: moment(memory.expires_at),
        Importance: percent(memory.importance), Served: plural(memory.access_count, "time") + (memory.access_count ? `, last ${moment(memory.last_accessed)}` : ""),
        "Belongs to": SCOPE.map((name) => memory[name]).filter(Boolean).join(", "), Stored: `${moment(memory.created_at)}, version ${memory.version}`,
      }} />`}
      <h2>History</h2><ol class="cards">${why.changes.map((each) => html`<li><b>${each.event}</b>, ${moment(each.timestamp)}
        ${" "}<a href=${link("/memories", { as_of: each.recorded_from })}>What was known then</a>
        <${Diff} old=${each.old_memory} fresh=${each.new_memory} /></li>`)}</ol>
      ${related.length > 0 && html`<h2>Related</h2><ul class="cards">${related.map((other) => html`<li>
        <span class="chip">${spaced(other.relation.type)}</span> <${MemoryLink} memory=${other} /></li>`)}</ul>`}</article>`}<//>`;
}

/** The sentences that it was read from, and each decision about it. */
function Why({ why, reload }) {
  const { id, as_of, may, act, go, link } = usePage();
  const undo = (decision) => act(async () => {
    const { removed } = await post(`/v1/decisions/${decision.id}/undo`);
    if (removed.includes(id)) go("/memories");
    else reload();
  }, "Undone.");
  return html`<h2>Why it is here</h2>
    ${why.sources.length === 0 && html`<p class="hint">It was stored as it is, not read from a conversation.</p>`}
    ${why.sources.map((source) => html`<figure><blockquote dir="auto">${source.quote}</blockquote><figcaption>${source.speaker || source.role},
      ${" "}${moment(source.timestamp)}, in <a href=${link(`/conversation/${source.conversation_id}`, { turn: source.turn_id })}>${source.external_id}</a></figcaption></figure>`)}
    <ol class="cards">${why.decisions.map((each) => html`<li><b>${each.verdict}</b> by ${each.model}, ${moment(each.created_at)}
      ${each.state !== "applied" && html` <span class="chip">${each.state}</span>`}<br />${each.reason}
      ${each.before && html`<${Diff} old=${each.before} fresh=${each.after} />`}
      ${each.state === "applied" && each.history_id && !as_of && may("memory:admin") && html`<p><button onClick=${() => undo(each)}>Undo this decision</button></p>`}</li>`)}</ol>`;
}
