/** One memory: what it says, why it is there, what it was before, and how to change or end it. */

import {
  Chips, Diff, Facts, Form, Loaded, MemoryLink, Restore, SCOPE, day, get, html, moment, patch, percent, plural,
  post, spaced, useForgetting, useLoaded, usePage, useState,
} from "../ui.js";

export function Memory() {
  const { id, scope, as_of, link } = usePage();
  const path = `/v1/memories/${id}`;
  const loaded = useLoaded(async (signal) => {
    const filters = JSON.stringify({ field: "id", operator: "eq", value: id });
    const [list, why] = await Promise.all([ // a list, because a memory that is deleted or was not yet known would be an error
      get("/v1/memories", { ...scope, filters, as_of, detail: "full", include_archived: true }, signal), get(`${path}/why`, {}, signal),
    ]);
    const [memory] = list.results;
    return [memory, why, memory && !as_of ? (await get(`${path}/related`, { limit: 20 }, signal)).results : []];
  }, [id, as_of]);
  return html`<p class="actions"><a href=${link("/memories")}>← All memories</a></p>
    <${Loaded} of=${loaded}>${([memory, why, related]) => html`
      <article>${memory ? html`<${Text} memory=${memory} path=${path} reload=${loaded.reload} />`
          : html`<p class="box">${as_of ? "It was not known then." : "This memory was deleted. Its history keeps what it said."}</p>`}
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

function Text({ memory, path, reload }) {
  const { as_of, may, act, go } = usePage();
  const [isEditing, setEditing] = useState(false);
  const forget = useForgetting(() => go("/memories"));
  const change = (values, sentence) => act(async () => {
    await patch(path, values, memory.version);
    setEditing(false);
    reload();
  }, sentence);
  const save = ({ content, tags = "" }) => change(
    { content, tags: tags.split(",").map((tag) => tag.trim()).filter(Boolean) }, "Saved. The earlier text stays in the history.");
  const fields = [
    { name: "content", title: "Text", rows: 4, required: true, defaultValue: memory.memory },
    { name: "tags", title: "Tags, separated by commas", wide: true, defaultValue: memory.tags.join(", ") },
  ];
  const isPinned = memory.importance === 1;
  return html`${isEditing ? html`<${Form} label="Edit" action="Save" onSend=${save} fields=${fields} />`
      : html`<blockquote class="statement" dir="auto">${memory.memory}</blockquote><${Chips} memory=${memory} />`}
    ${!as_of && !memory.version_of && html`<p class="actions">
      ${may("memory:write") && html`<${Restore} memory=${memory} onDone=${reload} /><button onClick=${() => setEditing(!isEditing)}>${isEditing ? "Cancel" : "Edit"}</button>
        <button onClick=${() => change({ importance: isPinned ? 0.6 : 1 }, isPinned ? "Unpinned." : "Pinned: of the highest importance.")}>${isPinned ? "Unpin" : "Pin"}</button>`}
      ${may("memory:delete") && html`<button class="danger" onClick=${() => forget([memory.id])}>Forget …</button>`}
      ${may("memory:purge") && html`<button class="danger" onClick=${() => forget([memory.id], true)}>Purge …</button>`}</p>`}`;
}

/** The sentences that it was read from, and each decision about it. */
function Why({ why, reload }) {
  const { id, may, act, go, link } = usePage();
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
      ${each.state === "applied" && each.history_id && may("memory:admin") && html`<p><button onClick=${() => undo(each)}>Undo this decision</button></p>`}</li>`)}</ol>`;
}
