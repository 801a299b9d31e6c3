/** What was true when: a bar for each memory, from when it began to hold until it ended, by subject. */

import { Loaded, MemoryLink, More, day, html, stateOf, usePage, usePages } from "../ui.js";

export default function Timeline() {
  const { scope, as_of } = usePage();
  const list = usePages("/v1/memories", { ...scope, limit: 200, sort: "timestamp", order: "asc", include_archived: true, as_of });
  return html`<p class="chips"><span class="chip current">holds</span> <span class="chip doubtful">may be outdated</span> <span class="chip ended">ended</span></p>
    <${Loaded} of=${list} empty=${`Nothing was known ${as_of ? "then" : "yet"}.`}>${(rows) => html`<${Bars} rows=${rows} /><${More} of=${list} />`}<//>`;
}

function Bars({ rows }) {
  const bars = rows.map((memory) => {
    const begin = Date.parse(memory.t_valid || memory.timestamp), end = memory.t_invalid ? Date.parse(memory.t_invalid) : Date.now();
    return { memory, begin, end: Math.max(begin, end), period: `${day(begin)} – ${memory.t_invalid ? day(end) : "now"}` };
  });
  const first = Math.min(...bars.map((each) => each.begin)), last = Math.max(...bars.map((each) => each.end));
  const share = (from, to) => (to - from) / (last - first || 1);
  const bar = ({ memory, begin, end, period }) => html`<li key=${memory.id}><${MemoryLink} memory=${memory} most=${120} />
    <div class="bar" role="img" aria-label=${period}><i style=${{ flexGrow: share(first, begin) }} /><i class=${stateOf(memory) || "current"} style=${{ flexGrow: Math.max(share(begin, end), 0.01) }} />
      <i style=${{ flexGrow: share(end, last) }} /></div><span class="hint">${period}</span></li>`;
  const subjects = Map.groupBy(bars, ({ memory }) => memory.categories[0] || "other");
  return [...subjects].sort().map(([subject, some]) => html`<h2>${subject}</h2><ol class="timeline">${some.map(bar)}</ol>`);
}
