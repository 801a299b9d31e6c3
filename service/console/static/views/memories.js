/** The memories of a scope: filtered, sorted, added, edited, forgotten and restored. */

import {
  Chips, Facts, Fields, Form, Loaded, MemoryLink, Restore, VirtualList, ago, get, html, memories, patch, plural,
  post, shorten, spaced, useChosen, useEffect, useForgetting, useLoaded, usePage, usePages, useRef, useState,
} from "../ui.js";

const TYPES = ["Decision", "Pattern", "Preference", "Style", "Habit", "Insight", "Context"];
const FILTERS = [
  { name: "state", title: "State", options: [["", "Current"], ["past", "No longer true"], ["archived", "With archived"], ["deleted", "Deleted"]] },
  { name: "types", title: "Type", options: [["", "Any"], ...TYPES.map((type) => [type, type])] },
  { name: "tag", title: "Tag", size: 9 },
  { name: "time_query", title: "Said", placeholder: "last week", size: 9 },
  { name: "sort", title: "Sort by", options: [["", "Stored"], ["timestamp", "Said"], ["updated_at", "Changed"], ["importance", "Importance"]] },
];
const ENDED = JSON.stringify({ field: "t_invalid", operator: "lt", value: new Date().toISOString() });
const STATES = { past: { filters: ENDED }, archived: { include_archived: true }, deleted: { state: "deleted" } };

export function Memories() {
  const { query, scope, as_of, may, change, link } = usePage();
  const { state = "", types, tag, category, time_query, sort } = query;
  const filters = { types, tags: tag, categories: category, time_query, as_of, ...STATES[state] };
  const list = usePages("/v1/memories", { ...scope, ...filters, sort, limit: 100, count: true, detail: "full" });
  const categories = useLoaded(async (signal) => list.value && get("/v1/stats/categories", scope, signal), [scope, list.total]);
  const { chosen, box, clear } = useChosen();
  const forget = useForgetting(() => { clear(); list.reload(); });
  useEffect(clear, [JSON.stringify(query)]);
  const name = scope.user_id || scope.agent_id || scope.run_id;
  const ids = chosen.map((each) => each.id);
  const curl = `curl -sS ${location.origin}/v1/memories -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '${
    JSON.stringify({ content: "Prefers tea over coffee", ...scope })}'`;
  const nothing = Object.values(filters).some(Boolean) ? html`<p>No memory matches. <a href=${link("/memories")}>Show all of ${name}</a></p>`
    : html`<p>No memories of ${name} yet. Add one above, or paste this line into a terminal:</p><pre>${curl}</pre>`;
  const row = (memory) => html`<${Row} memory=${memory} box=${box} forget=${forget} onRestored=${list.reload}
    onChange=${(fresh) => list.edit((rows) => rows.map((each) => (each.id === fresh.id ? fresh : each)))} />`;
  return html`${may("memory:write") && !as_of && html`<${Add} onAdded=${list.reload} />`}
    <${Fields} fields=${FILTERS} />
    <p class="chips" role="group" aria-label="Categories">${(categories.value?.results || []).slice(0, 16).map((each) => html`
      <button class="chip" aria-pressed=${each.category === category} onClick=${() => change({ category: each.category === category ? "" : each.category })}>
        ${each.category} ${each.count}</button>`)}</p>
    <div class="actions"><b aria-live="polite">${list.total !== undefined && memories(list.total)}</b>
      ${ids.length > 0 && html`<button class="danger" onClick=${() => forget(ids)}>Forget ${ids.length} selected …</button>`}</div>
    <${Loaded} of=${list} empty=${nothing}>${(rows) => html`<${VirtualList} label="List of memories" rows=${rows} total=${list.total}
      height=${innerWidth < 760 ? 108 : 66} render=${row} onEnd=${list.more} />`}<//>`;
}

/** Stores a memory, and shows what the pipeline did with it. */
function Add({ onAdded }) {
  const { act, scope } = usePage();
  const [outcome, setOutcome] = useState(null);
  const add = (values) => act(async () => {
    const { results, timings_ms } = await post("/v1/memories", { ...values, ...scope });
    setOutcome({ ...results[0], timings_ms });
    onAdded();
  });
  const fields = [{ name: "content", title: "Add a memory", placeholder: "She prefers tea over coffee", required: true, wide: true }];
  return html`<${Form} label="Add a memory" action="Remember" onSend=${add} fields=${fields} />
    ${outcome && html`<details class="box"><summary><b>${outcome.event}</b> ${outcome.decision?.reason}
        ${outcome.pii.redactions.map((each) => ` Redacted: ${plural(each.count, each.label)}.`)}</summary>
      ${outcome.old_memory && html`<p>It replaced: <del>${outcome.old_memory}</del></p>`}
      <${Facts} facts=${Object.fromEntries(Object.entries(outcome.timings_ms).map(([stage, ms]) => [spaced(stage), `${ms} ms`]))} /></details>`}`;
}

function Row({ memory, box, forget, onChange, onRestored }) {
  const { may, act, as_of } = usePage();
  const [isEditing, setEditing] = useState(false);
  const input = useRef(null);
  useEffect(() => input.current?.focus(), [isEditing]);
  const save = (event) => {
    event.preventDefault();
    act(async () => {
      onChange(await patch(`/v1/memories/${memory.id}`, { content: input.current.value }, memory.version));
      setEditing(false);
    }, "Saved. The earlier text stays in the history.");
  };
  if (isEditing) {
    return html`<form class="row" onSubmit=${save} onKeyDown=${(event) => event.key === "Escape" && setEditing(false)}>
      <textarea ref=${input} required aria-label="Text of the memory">${memory.memory}</textarea>
      <button class="primary">Save</button><button type="button" onClick=${() => setEditing(false)}>Cancel</button></form>`;
  }
  const isNow = !memory.version_of && !memory.deleted_at && !as_of, mayForget = isNow && may("memory:delete");
  return html`<div class="row">${mayForget && box(memory, shorten(memory.memory, 60))}
    <div><${MemoryLink} memory=${memory} /><p><span class="hint" title=${memory.timestamp}>${ago(memory.timestamp)}</span> <${Chips} memory=${memory} most=${4} /></p></div>
    ${may("memory:write") && html`<${Restore} memory=${memory} onDone=${onRestored} />
      ${isNow && html`<button class="quiet" onClick=${() => setEditing(true)}>Edit</button>`}`}
    ${mayForget && html`<button class="quiet" onClick=${() => forget([memory.id])}>Forget</button>`}</div>`;
}
