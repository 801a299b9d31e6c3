/** Search and recall side by side: why each hit ranks where it does, and the request to copy. */

import {
  Fields, Form, VALID_AT, act, cards, change, curl, day, html, memoryLink, percent, plural, post, show, spaced, stateChip, useLoaded,
} from "../ui.js";

const WEIGHTS = { turns: 0.3, facts: 0.25, entities: 0.2, strategies: 0.15, recency: 0.1 };
const SLIDERS = [
  { name: "limit", title: "Hits", min: 1, max: 50, start: 10 },
  ...Object.entries(WEIGHTS).map(([name, start]) => ({ name, title: `Weight of ${name}`, max: 1, step: 0.05, start })),
].map((slider) => ({ type: "range", ...slider }));

export default function Ask({ query, scope, as_of }) {
  const { limit, ...weights } = Object.fromEntries(SLIDERS.map(({ name, start }) => [name, Number(query[name] || start)]));
  const search = { query: query.q, ...scope, limit, as_of, valid_at: query.valid_at, explain: true };
  const { explain, ...recall } = { ...search, weights, format: "markdown" };
  const loaded = useLoaded(async () => (query.q ? Promise.all([post("/v1/memories/search", search), post("/v1/recall", recall)]) : []), [recall]);
  const question = { name: "q", title: "Question", required: true, defaultValue: query.q };
  return html`<${Form} key=${query.q} action="Ask" fields=${[question]} onSend=${({ q }) => change({ q })} />
    <details><summary>Limits, weights and dates</summary><${Fields} fields=${[...SLIDERS, VALID_AT]} /></details>
    ${show(loaded, ([found, block]) => html`<div class="columns">
      <section><h2>Search</h2>
        ${cards(found.results, (hit) => html`${memoryLink(hit)}${stateChip(hit)}
          <small>${hit.source}, ${day(hit.timestamp)}, answers with ${percent(hit.answer_probability)}</small>${drawScore(hit)}`)}
        ${copyButtons("/v1/memories/search", search)}</section>
      <section><h2>What the agent gets</h2><small>${plural(block.metrics.tokens, "token")}, answers with ${percent(block.answer_probability)}</small>
        <pre tabindex="0" role="region" aria-label="Block that recall returns">${block.markdown}</pre>
        ${copyButtons("/v1/recall", recall)}</section></div>`, "Ask what an agent would ask before it answers.")}`;
}

/** A score as a bar of what each signal adds, and as a sum. */
function drawScore({ score, explain }) {
  const parts = Object.entries(explain.terms)
    .map(([name, { value, weight }], at) => ({ name: spaced(name), part: value * weight, background: `hsl(${160 + at * 53} 45% 42%)` }))
    .filter(({ part }) => part > 0);
  const factors = Object.entries(explain.factors).filter(([, factor]) => factor !== 1);
  return html`<figure class="score">
    <div class="bar">${parts.map(({ part, background }) => html`<i style=${{ background, flexGrow: part }} />`)}</div>
    <figcaption><b data-score=${score}>${score.toFixed(2)}</b> = (${parts.map(({ name, part, background }, at) => html`
        ${at > 0 && " + "}<span data-part=${part}><i style=${{ background }} /> ${name} ${part.toFixed(2)}</span>`)})
      ${factors.map(([name, factor]) => html` × <span data-factor=${factor}>${spaced(name)} ${factor.toFixed(2)}</span>`)}
    </figcaption></figure>`;
}

function copyButtons(path, body) {
  const url = location.origin + path, text = JSON.stringify(JSON.stringify(body)); // of Python and TypeScript
  const headers = `{"Authorization": "Bearer " + key, "Content-Type": "application/json"}`;
  const texts = {
    curl: curl(path, body),
    Python: `import httpx\n\nprint(httpx.post("${url}", headers=${headers}, content=${text}).json())`,
    TypeScript: `console.log(await (await fetch("${url}", { method: "POST", headers: ${headers}, body: ${text} })).json());`,
  };
  const copy = (name) => act(() => navigator.clipboard.writeText(texts[name]).then(() => false), `Copied as ${name}.`);
  return html`<p class="actions">Copy as ${Object.keys(texts).map((name) => html`
    <button class="quiet" onClick=${() => copy(name)}>${name}</button>`)}</p>`;
}
