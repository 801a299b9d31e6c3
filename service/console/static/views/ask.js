/** Search and recall side by side, with why each hit ranks where it does, and how to send the same from a program. */

import { Fields, Form, MemoryLink, State, VALID_AT, cards, curl, day, html, percent, plural, post, show, spaced, useLoaded, usePage } from "../ui.js";

const WEIGHTS = { turns: 0.3, facts: 0.25, entities: 0.2, strategies: 0.15, recency: 0.1 };
const SLIDERS = [
  { name: "limit", title: "Hits", min: 1, max: 50, start: 10 },
  { name: "max_tokens", title: "Tokens", min: 100, max: 4000, step: 100, start: 1000 },
  ...Object.entries(WEIGHTS).map(([name, start]) => ({ name, title: `Weight of ${name}`, min: 0, max: 1, step: 0.05, start })),
].map((slider) => ({ type: "range", ...slider }));

export default function Ask({ query, scope, as_of, valid_at, change }) {
  const { limit, max_tokens, ...weights } = Object.fromEntries(SLIDERS.map(({ name, start }) => [name, Number(query[name] || start)]));
  const common = { query: query.q, ...scope, limit, as_of, valid_at };
  const search = { ...common, explain: true }, recall = { ...common, max_tokens, weights, format: "markdown" };
  const loaded = useLoaded(async () => (query.q ? Promise.all([post("/v1/memories/search", search), post("/v1/recall", recall)]) : []), [search, recall]);
  const question = { name: "q", title: "Question", placeholder: "Where does she live?", required: true, wide: true, defaultValue: query.q };
  return html`<${Form} key=${query.q} action="Ask" fields=${[question]} onSend=${({ q }) => change({ q })} />
    <details><summary>Limits, weights and dates</summary><${Fields} fields=${[...SLIDERS, VALID_AT]} /></details>
    ${show(loaded, ([found, block]) => html`<div class="columns">
      <section><h2>Search</h2><p class="hint">${plural(found.results.length, "hit")}</p>
        ${cards(found.results, (hit) => html`<${MemoryLink} memory=${hit} /><${State} memory=${hit} />
          <p class="hint">${hit.source}, ${day(hit.timestamp)}, answers with ${percent(hit.answer_probability)}</p><${Score} ...${hit} />`)}
        <${Copy} path="/v1/memories/search" body=${search} /></section>
      <section><h2>What the agent gets</h2><p class="hint">${block.metrics.tokens} of ${max_tokens} tokens;
          ${block.answerable === false ? " nothing seems to answer this" : ` holds an answer with ${percent(block.answer_probability)}`}</p>
        <pre tabindex="0" role="region" aria-label="Block that recall returns" dir="auto">${block.markdown}</pre>
        <${Copy} path="/v1/recall" body=${recall} /></section></div>`, "Ask what an agent would ask before it answers.")}`;
}

const colour = (at) => ({ background: `hsl(${160 + at * 53} 45% 42%)` });

/** A score as a bar of what each signal adds, and as a sum that factors multiply. */
function Score({ score, explain }) {
  const parts = Object.entries(explain.terms).map(([name, { value, weight }]) => ({ name: spaced(name), part: value * weight }))
    .filter(({ part }) => part > 0).sort((one, other) => other.part - one.part);
  const factors = Object.entries(explain.factors).filter(([, factor]) => factor !== 1);
  return html`<figure class="score"><div class="bar" role="img" aria-label=${`Score ${score.toFixed(3)}`}>${parts.map(({ part }, at) => html`<i style=${{ ...colour(at), flexGrow: part }} />`)}</div>
    <figcaption><b data-score=${score}>${score.toFixed(2)}</b> = (${parts.map(({ name, part }, at) => html`${at > 0 && " + "}<span data-part=${part}><i style=${colour(at)} /> ${name} ${part.toFixed(2)}</span>`)})
      ${factors.map(([name, factor]) => html` × <span data-factor=${factor}>${spaced(name)} ${factor.toFixed(2)}</span>`)}</figcaption></figure>`;
}

function Copy({ path, body }) {
  const { act, say } = usePage();
  const copy = (name, text) => act(async () => {
    await navigator.clipboard.writeText(text);
    say(`Copied as ${name}.`);
    return false;
  });
  const url = location.origin + path, text = JSON.stringify(JSON.stringify(body)); // these two lines are Python and TypeScript
  const headers = `{"Authorization": "Bearer " + key, "Content-Type": "application/json"}`;
  const texts = {
    curl: curl(path, body),
    Python: `import httpx\n\nprint(httpx.post("${url}", headers=${headers}, content=${text}).json())`,
    TypeScript: `console.log(await (await fetch("${url}", { method: "POST", headers: ${headers}, body: ${text} })).json());`,
  };
  return html`<p class="actions hint">Copy as ${Object.entries(texts).map(([name, each]) => html`
    <button class="quiet" onClick=${() => copy(name, each)}>${name}</button>`)}</p>`;
}
