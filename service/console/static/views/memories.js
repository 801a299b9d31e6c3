/** The memories of a scope: filtered, sorted, added, edited, forgotten and restored. */

import {
  Actions, Chips, Facts, Fields, Form, MemoryLink, VirtualList, curl, day, get, html, plural, post, shorten, show,
  useChosen, useEnding, useLoaded, usePage, usePages, useState,
} from "../ui.js";

const TYPES = ["Decision", "Pattern", "Preference", "Style", "Habit", "Insight", "Context"];
const FILTERS = [
  { name: "text", title: "Contains", size: 12 },
  { name: "state", title: "State", options: [["", "Current"], ["past", "No longer true"], ["archived", "With archived"], ["deleted", "Deleted"]] },
  { name: "types", title: "Type", options: [["", "Any"], ...TYPES.map((type) => [type, type])] },
  { name: "tag", title: "Tag", size: 9 },
  { name: "time_query", title: "Said", placeholder: "last week", size: 9 },
  { name: "sort", title: "Sort by", options: [["", "Stored"], ["timestamp", "Said"], ["updated_at", "Changed"], ["importance", "Importance"]] },
];
const ENDED = { field: "t_invalid", operator: "lt", value: new Date().toISOString() };

export default function Memories({ query, scope, as_of, may, change, link }) {
  const { state, text, types, tag, category, time_query, sort } = query;
  const conditions = [text && { field: "content", operator: "icontains", value: text }, state === "past" && ENDED].filter(Boolean);
  const filters = {
    types, tags: tag, categories: category, time_query, as_of, filters: conditions.length && JSON.stringify({ AND: conditions }) || "",
    include_archived: state === "archived" || "", state: state === "deleted" ? state : "",
  };
  const list = usePages("/v1/memories", { ...scope, ...filters, sort, limit: 40, count: true, detail: "full" });
  const categories = useLoaded(async () => list.value && !as_of && get("/v1/stats/categories", scope), [scope, as_of, !list.value]);
  const { chosen, box } = useChosen(list.value);
  const end = useEnding();
  const name = scope.user_id || scope.agent_id || scope.run_id, isNow = !as_of && state !== "deleted";
  const nothing = Object.values(filters).some(Boolean)
    ? html`<p>No memory matches. <a href=${link("/memories", { as_of: "" })}>Show all that is known of ${name} today</a></p>`
    : html`<p>No memories of ${name} yet. Add one above, or paste this line into a terminal:</p>
      <pre>${curl("/v1/memories", { content: "Prefers tea over coffee", ...scope })}</pre>`;
  const row = (memory) => html`<div class="row">${isNow && may("memory:delete") && box(memory, shorten(memory.memory, 60))}
    <div><${MemoryLink} memory=${memory} /><p><span class="hint">${day(memory.timestamp)}</span> <${Chips} memory=${memory} /></p></div>
    <${Actions} memory=${memory} /></div>`;
  const all = (action, verb) => html`<button onClick=${() => verb(chosen.map((each) => each.id))}>${action} ${chosen.length} selected</button>`;
  return html`${may("memory:write") && !as_of && html`<${Add} />`}
    <${Fields} fields=${FILTERS} />
    <p role="group" aria-label="Categories">${(categories.value?.results || []).slice(0, 16).map((each) => html`
      <button class="chip" aria-pressed=${each.category === category} onClick=${() => change({ category: each.category === category ? "" : each.category })}>
        ${each.category} ${each.count}</button>`)}</p>
    <div class="actions"><b aria-live="polite">${list.value && plural(list.total, "memory", "memories")}</b>
      ${chosen.length > 0 && html`${all("Archive", end.archive)} ${all("Forget", end.forget)}`}</div>
    ${show(list, (rows) => html`<${VirtualList} label="List of memories" rows=${rows} total=${list.total}
      height=${innerWidth < 760 ? 124 : 66} render=${row} onEnd=${list.more} />`, nothing)}`;
}

/** Stores a memory, and shows what the pipeline did with it. */
function Add() {
  const { act, scope } = usePage();
  const [outcome, setOutcome] = useState(null);
  const add = (values) => act(async () => {
    const { results, timings_ms } = await post("/v1/memories", { ...values, ...scope });
    setOutcome({ ...results[0], timings_ms });
  });
  const fields = [{ name: "content", title: "Add a memory", placeholder: "She prefers tea over coffee", required: true, wide: true }];
  return html`<${Form} action="Remember" onSend=${add} fields=${fields} />
    ${outcome && html`<details class="box"><summary><b>${outcome.event}</b> ${outcome.decision?.reason}
        ${outcome.pii.redactions.map((each) => ` Redacted: ${plural(each.count, each.label)}.`)}</summary>
      ${outcome.old_memory && html`<p>It replaced: <del>${outcome.old_memory}</del></p>`}
      <${Facts} facts=${Object.fromEntries(Object.entries(outcome.timings_ms).map(([stage, ms]) => [stage, `${ms} ms`]))} /></details>`}`;
}
