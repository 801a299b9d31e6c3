/** What was true when: a bar for each memory, from when it began to hold until it ended, by subject. */

import { Loaded, MemoryLink, day, html, stateOf, usePage, usePages } from "../ui.js";

export function Timeline() {
  const { scope, as_of } = usePage();
  const list = usePages("/v1/memories", { ...scope, limit: 200, sort: "timestamp", order: "asc", include_archived: true, as_of });
  return html`<p class="chips hint"><span class="chip current">holds</span> <span class="chip doubtful">may be outdated</span>
      <span class="chip ended">ended</span></p>
    <${Loaded} of=${list} empty=${`Nothing was known ${as_of ? "then" : "yet"}.`}>${(rows) => html`<${Bars} rows=${rows} />
      ${list.cursor && html`<button onClick=${list.more}>Show more</button>`}`}<//>`;
}

function Bars({ rows }) {
  const begin = (memory) => memory.t_valid || memory.timestamp;
  const end = (memory) => Math.max(Date.parse(begin(memory)), memory.t_invalid ? Date.parse(memory.t_invalid) : Date.now());
  const first = Math.min(...rows.map((each) => Date.parse(begin(each)))), length = Math.max(...rows.map(end)) - first || 1;
  const bar = (memory) => {
    const x = ((Date.parse(begin(memory)) - first) / length) * 100, width = Math.max(1, ((end(memory) - first) / length) * 100 - x);
    const period = `${day(begin(memory))} – ${memory.t_invalid ? day(memory.t_invalid) : "now"}`;
    return html`<li key=${memory.id}><${MemoryLink} memory=${memory} most=${120} /><svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label=${period}>
      <rect class=${stateOf(memory) || "current"} x=${Math.min(x, 99)} width=${width} height="10" /></svg><span class="hint">${period}</span></li>`;
  };
  const subjects = [...new Set(rows.map((each) => each.categories[0]))].sort();
  return subjects.map((subject) => html`<h2>${subject || "other"}</h2><ol class="timeline">${rows.filter((each) => each.categories[0] === subject).map(bar)}</ol>`);
}
