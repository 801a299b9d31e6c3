/** When each memory holds, as bars, by subject. */

import { day, html, memoryLink, show, stateChip, stateOf, usePages } from "../ui.js";

export default function Timeline({ scope, as_of }) {
  const list = usePages("/v1/memories", { ...scope, sort: "timestamp", order: "asc", include_archived: true, as_of });
  return show(list, drawBars, `Nothing was known ${as_of ? "then" : "yet"}.`);
}

function drawBars(rows) {
  const spans = rows.map((memory) => {
    const begin = Date.parse(memory.t_valid || memory.timestamp);
    return { memory, begin, end: Math.max(begin, Date.parse(memory.t_invalid) || Date.now()) };
  });
  const first = Math.min(...spans.map(({ begin }) => begin)), length = Math.max(...spans.map(({ end }) => end)) - first || 1;
  const bar = ({ memory, begin, end }) => html`<li key=${memory.id}><div>${memoryLink(memory)}${stateChip(memory)}</div>
    <div class="bar"><i style=${{ flexGrow: (begin - first) / length }} />
      <i class=${stateOf(memory) || "current"} style=${{ flexGrow: Math.max(0.01, (end - begin) / length) }} /></div>
    <small>${day(begin)} – ${memory.t_invalid ? day(end) : "now"}</small></li>`;
  const subjects = Map.groupBy(spans, ({ memory }) => memory.categories[0] || "other");
  return [...subjects].sort().map(([subject, some]) => html`<h2>${subject}</h2><ol class="timeline">${some.map(bar)}</ol>`);
}
