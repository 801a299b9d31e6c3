/** What was true when: a bar for each memory, from when it began to hold until it ended, by subject. */

import { MemoryLink, More, day, html, show, stateOf, usePages } from "../ui.js";

export default function Timeline({ scope, as_of }) {
  const list = usePages("/v1/memories", { ...scope, limit: 200, sort: "timestamp", order: "asc", include_archived: true, as_of });
  return html`<p><span class="chip current">holds</span> <span class="chip doubtful">may be outdated</span> <span class="chip ended">ended</span></p>
    ${show(list, (rows) => html`${drawBars(rows)}<${More} of=${list} />`, `Nothing was known ${as_of ? "then" : "yet"}.`)}`;
}

function drawBars(rows) {
  const now = Date.now(), beginOf = (memory) => Date.parse(memory.t_valid || memory.timestamp);
  const endOf = (memory) => Math.max(beginOf(memory), memory.t_invalid ? Date.parse(memory.t_invalid) : now);
  const first = Math.min(...rows.map(beginOf)), length = Math.max(...rows.map(endOf)) - first || 1;
  const bar = (memory) => {
    const begin = (beginOf(memory) - first) / length, end = (endOf(memory) - first) / length;
    const period = `${day(beginOf(memory))} – ${memory.t_invalid ? day(endOf(memory)) : "now"}`;
    return html`<li key=${memory.id}><${MemoryLink} memory=${memory} most=${120} /><div class="bar" role="img" aria-label=${period}><i style=${{ flexGrow: begin }} />
      <i class=${stateOf(memory) || "current"} style=${{ flexGrow: Math.max(end - begin, 0.01) }} /><i style=${{ flexGrow: 1 - end }} /></div><span class="hint">${period}</span></li>`;
  };
  const subjects = Map.groupBy(rows, ({ categories }) => categories[0] || "other");
  return [...subjects].sort().map(([subject, some]) => html`<h2>${subject}</h2><ol class="timeline">${some.map(bar)}</ol>`);
}
