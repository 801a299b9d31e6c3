/** The memories of a scope, filtered and sorted; and adding one. */

import {
  Actions, Fields, Form, VirtualList, act, change, chips, curl, day, done, endings, facts, get, html, link, may, memoryLink, page, percent,
  plural, post, show, useChosen, useLoaded, usePages, useState,
} from "../ui.js";

const TYPES = ["Decision", "Pattern", "Preference", "Style", "Habit", "Insight", "Context"];
const FILTERS = [
  { name: "text", title: "Contains", placeholder: "press Enter", size: 12 },
  { name: "state", title: "State", options: [["", "Current"], ["past", "No longer true"], ["archived", "With archived"], ["deleted", "Deleted"]] },
  { name: "types", title: "Type", options: [["", "Any"], ...TYPES.map((type) => [type, type])] },
  { name: "tag", title: "Tag", size: 9 },
  { name: "time_query", title: "Said", placeholder: "last week", size: 9 },
  { name: "sort", title: "Sort by", options: [["", "Stored"], ["timestamp", "Said"], ["updated_at", "Changed"], ["importance", "Importance"]] },
];
const ENDED = { field: "t_invalid", operator: "lt", value: new Date().toISOString() };

export default function Memories({ query, scope, owner, as_of }) {
  const { state, text, types, tag, category, time_query, sort = "created_at" } = query;
  const conditions = [text && { field: "content", operator: "icontains", value: text }, state === "past" && ENDED].filter(Boolean);
  const filters = {
    types, tags: tag, categories: category, time_query, as_of, include_archived: state === "archived", state: state === "deleted" && state,
    filters: conditions.length && JSON.stringify({ AND: conditions }),
  };
  const list = usePages("/v1/memories", { ...scope, ...filters, sort, count: true, detail: "full" });
  const categories = useLoaded(async () => list.value && !as_of && get("/v1/stats/categories", scope), [scope, as_of, !list.value]);
  const { chosen, box } = useChosen(list.value);
  const end = endings(chosen);
  const nothing = Object.values(filters).some(Boolean)
    ? html`No memory matches. <a href=${link("/memories", { as_of: "" })}>Show all that is known of ${owner} today</a>`
    : html`No memories of ${owner} yet. Add one above, or in a terminal:
      <pre>${curl("/v1/memories", { content: "Prefers tea over coffee", ...scope })}</pre>`;
  const row = (memory) => html`<div class="row">${!as_of && state !== "deleted" && may("memory:delete") && box(memory, memory.memory)}
    <div>${memoryLink(memory)}<small>${sort === "importance" ? percent(memory.importance) : day(memory[sort])} ${chips(memory)}</small></div>
    <${Actions} memory=${memory} /></div>`;
  return html`${may("memory:write") && !as_of && html`<${Add} />`}
    <${Fields} fields=${FILTERS} />
    <p role="group" aria-label="Categories">${(categories.value?.results || []).slice(0, 16).map(({ category: name, count }) => html`
      <button class="chip" aria-pressed=${name === category}
        onClick=${() => change({ category: name === category ? "" : name })}>${name} ${count}</button>`)}</p>
    <div class="actions"><b aria-live="polite">${list.value && plural(list.total, "memory", "memories")}</b>
      ${chosen.length > 0 && html`<button onClick=${end.archive}>Archive ${chosen.length} selected</button>
        <button onClick=${end.forget}>Forget ${chosen.length} selected</button>`}</div>
    ${show({ ...list, cursor: "" }, (rows) => html`<${VirtualList} rows=${rows} total=${list.total}
      height=${innerWidth < 760 ? 124 : 66} render=${row} onEnd=${list.more} />`, nothing)}`;
}

/** Stores a memory, and shows what the pipeline did with it. */
function Add() {
  const [outcome, setOutcome] = useState(null);
  const add = (values) => act(async () => {
    const { results, timings_ms } = await post("/v1/memories", { ...values, ...page.scope });
    setOutcome({ ...results[0], timings_ms });
  });
  const fields = [{ name: "content", title: "Add a memory", required: true }];
  return html`<${Form} action="Remember" onSend=${add} fields=${fields} />
    ${outcome && html`<details class="box"><summary><b>${done(outcome.event)}</b> ${outcome.decision?.reason}
        ${outcome.pii.redactions.map((each) => ` Redacted: ${plural(each.count, each.label)}.`)}</summary>
      ${outcome.old_memory && html`<p>It replaced: <del>${outcome.old_memory}</del></p>`}
      <h2>Milliseconds</h2>${facts(outcome.timings_ms)}</details>`}`;
}
