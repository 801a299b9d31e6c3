/** One memory: what it says, why it is there, what it was before, and how to change or end it. */

import {
  Actions, Chips, Diff, Facts, MemoryLink, SCOPE, cards, day, get, html, moment, percent, plural, post, show, spaced, useLoaded,
  usePage,
} from "../ui.js";

export default function Memory({ id, scope, as_of, link }) {
  const loaded = useLoaded(async () => {
    const filters = JSON.stringify({ field: "id", operator: "eq", value: id });
    const find = async (query) => (await get("/v1/memories", { ...scope, filters, detail: "full", ...query })).results[0];
    const why = await get(`/v1/memories/${id}/why`), memory = await find({ as_of, include_archived: true });
    if (as_of) return [why, memory];
    return memory ? [why, memory, await get(`/v1/memories/${id}/related`, { limit: 20 })] : [why, await find({ state: "deleted" })];
  }, [id, as_of]);
  return html`<p><a href=${link("/memories")}>← All memories</a></p>
    ${show(loaded, ([why, memory, related]) => html`
      ${memory ? html`<blockquote class="statement" dir="auto">${memory.memory}</blockquote><${Chips} memory=${memory} />
          <div><${Actions} memory=${memory} isWhole /></div>`
        : html`<p class="box">${as_of ? "It was not known then." : "This memory is gone."}</p>`}
      <${Why} ...${why} />
      ${memory && html`<h2>When and where</h2><${Facts} facts=${{
        Said: moment(memory.timestamp), By: memory.speaker, "Holds from": day(memory.t_valid), "Holds until": day(memory.t_invalid),
        Importance: percent(memory.importance), Served: plural(memory.access_count, "time"), "Last served": memory.access_count > 0 && moment(memory.last_accessed),
        "Belongs to": SCOPE.map((name) => memory[name]).filter(Boolean).join(", "), Stored: `${moment(memory.created_at)}, version ${memory.version}`,
      }} />`}
      <h2>History</h2>${cards(why.changes, (each) => html`<b>${each.event}</b>, ${moment(each.timestamp)}
        ${" "}<a href=${link("/memories", { as_of: each.recorded_from })}>What was known then</a>
        <${Diff} old=${each.old_memory} fresh=${each.new_memory} />`)}
      ${related?.results.length > 0 && html`<h2>Related</h2>${cards(related.results, (other) => html`
        <span class="chip">${spaced(other.relation.type)}</span> <${MemoryLink} memory=${other} />`)}`}`)}`;
}

function Why({ sources, decisions }) {
  const { id, as_of, may, act, go, link } = usePage();
  const undo = (decision) => act(async () => {
    const { removed } = await post(`/v1/decisions/${decision.id}/undo`);
    if (removed.includes(id)) go("/memories");
  }, "Undone.");
  return html`<h2>Why it is here</h2>
    ${sources.length === 0 && html`<p class="hint">It was stored as it is, not read from a conversation.</p>`}
    ${sources.map((source) => html`<figure><blockquote dir="auto">${source.quote}</blockquote><figcaption>${source.speaker || source.role},
      ${" "}${moment(source.timestamp)}, in <a href=${link(`/conversation/${source.conversation_id}`, { turn: source.turn_id })}>${source.external_id}</a></figcaption></figure>`)}
    ${cards(decisions, (each) => html`<b>${each.verdict}</b> by ${each.model}, ${moment(each.created_at)}
      ${each.state !== "applied" && html` <span class="chip">${each.state}</span>`}<br />${each.reason}
      ${each.before && html`<${Diff} old=${each.before} fresh=${each.after} />`}
      ${each.state === "applied" && each.history_id && !as_of && may("memory:admin") && html`<p><button onClick=${() => undo(each)}>Undo this decision</button></p>`}`)}`;
}
