/** One memory: what it says, why, what it was before, and what can be done with it. */

import {
  Actions, act, cards, chips, day, diff, done, facts, get, go, html, link, may, memoryLink, moment, page, percent, plural, post, scopeOf, show,
  spaced, useLoaded,
} from "../ui.js";

export default function Memory({ id, scope, as_of }) {
  const loaded = useLoaded(async () => {
    const filters = JSON.stringify({ field: "id", operator: "eq", value: id });
    const find = async (query) => (await get("/v1/memories", { ...scope, filters, detail: "full", ...query })).results[0];
    const why = await get(`/v1/memories/${id}/why`), memory = await find({ as_of, include_archived: true });
    if (as_of || !memory) return { why, memory: memory || !as_of && await find({ state: "deleted" }), related: [] };
    return { why, memory, related: (await get(`/v1/memories/${id}/related`, { limit: 20 })).results };
  }, [id, as_of]);
  return html`<p><a href=${link("/memories")}>← All memories</a></p>
    ${show(loaded, ({ why, memory, related }) => html`
      ${memory ? html`<blockquote class="statement">${memory.memory}</blockquote>${chips(memory)}
          <div><${Actions} memory=${memory} isWhole /></div>`
        : html`<p class="box">${as_of ? "It was not known then." : "This memory is gone."}</p>`}
      ${explain(why)}
      ${memory && html`<h2>When and where</h2>${facts({
        Said: moment(memory.timestamp), By: memory.speaker, "Holds from": day(memory.t_valid), "Holds until": day(memory.t_invalid),
        Importance: percent(memory.importance), ...scopeOf(memory),
        Served: memory.access_count > 0 && `${plural(memory.access_count, "time")}, last ${moment(memory.last_accessed)}`,
        Stored: `${moment(memory.created_at)}, version ${memory.version}`,
      })}`}
      <h2>History</h2>${cards(why.changes, (each) => html`<b>${done(each.event)}</b>, ${moment(each.timestamp)}
        ${" "}<a href=${link("/memories", { as_of: each.recorded_from })}>What was known then</a>
        ${diff(each.old_memory, each.new_memory)}`)}
      ${related.length > 0 && html`<h2>Related</h2>`}${cards(related, (each) => html`${memoryLink(each)}
        <small>${spaced(each.relation.type)}</small>`)}`)}`;
}

function explain({ sources, decisions }) {
  const undo = (decision) => act(async () => {
    const { removed } = await post(`/v1/decisions/${decision.id}/undo`);
    if (removed.includes(page.id)) go("/memories");
  }, "Undone.");
  return html`<h2>Why it is here</h2>
    ${sources.length === 0 && html`<small>It was stored as it is.</small>`}
    ${sources.map((each) => html`<figure><blockquote>${each.quote}</blockquote>
      <figcaption>${each.speaker || each.role}, ${moment(each.timestamp)}, in${" "}
        <a href=${link(`/conversation/${each.conversation_id}`, { turn: each.turn_id })}>${each.external_id}</a></figcaption></figure>`)}
    ${cards(decisions, (each) => html`<b>${done(each.verdict)}</b> by ${each.model.replace(/^rules.*/, "the rules")}, ${moment(each.created_at)}
      ${each.state !== "applied" && html` <span class="chip">${each.state}</span>`}<br />${each.reason}
      ${each.before && diff(each.before, each.after)}
      ${each.state === "applied" && each.history_id && !page.as_of && may("memory:admin") && html`
        <p><button onClick=${() => undo(each)}>Undo this decision</button></p>`}`)}`;
}
