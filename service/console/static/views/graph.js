/** People, places and things around one of them, two relations far. */

import { Fields, Loaded, MemoryLink, VALID_AT, get, html, post, spaced, useEffect, useLoaded, usePage, useState } from "../ui.js";
import { layOut } from "./layout.js";

const MOST_NODES = 150, SIZE = 1000;

export default function Graph() {
  const { scope: { run_id, ...owner }, query: { entity, type, valid_at } } = usePage();
  const listed = useLoaded(async () => (await post("/v1/entities", { ...owner, limit: 200 })).results.sort((one, other) => other.mentions - one.mentions), [owner]);
  const centre = entity || listed.value?.[0]?.id;
  const asked = { ...owner, ids: centre, depth: 2, limit: MOST_NODES, types: type, valid_at: valid_at && `${valid_at}T12:00:00Z` };
  const graph = useLoaded(async () => centre && get("/v1/entities/graph", asked), [asked]);
  const types = [...new Set([type, ...(graph.value?.relations || []).map((each) => each.type)])].filter(Boolean).sort();
  return html`<${Loaded} of=${listed} empty="No people, places or projects are known yet. They are read from memories within seconds.">${(entities) => html`
    <${Fields} fields=${[
      { name: "entity", title: "Around", options: entities.map((each) => [each.id, `${each.name} (${each.mentions})`]), start: centre },
      { name: "type", title: "Relation", options: [["", "Any"], ...types.map((each) => [each, spaced(each)])] }, VALID_AT]} />
    <${Loaded} of=${graph}>${(found) => html`<${Drawing} ...${found} centre=${centre} />`}<//>`}<//>`;
}

function Drawing({ nodes, relations, truncated, centre }) {
  const { change } = usePage();
  const [places, setPlaces] = useState(/** @type {any} */ ({}));
  const [chosen, setChosen] = useState(centre);
  useEffect(() => layOut({ ids: nodes.map((each) => each.id), edges: relations.map((each) => [each.source_id, each.target_id]), centre, size: SIZE }, setPlaces), [nodes]);
  const node = nodes.find((each) => each.id === chosen) || nodes[0];
  const line = (each) => {
    const [x1, y1] = places[each.source_id], [x2, y2] = places[each.target_id];
    return html`<line x1=${x1} y1=${y1} x2=${x2} y2=${y2} class=${each.t_invalid && "ended"}><title>${each.source} ${each.label} ${each.target}</title></line>`;
  };
  const circle = (each) => html`<g key=${each.id} transform=${`translate(${places[each.id].join(" ")})`} role="button" tabindex="0" aria-label=${each.name}
      aria-pressed=${each === node} onClick=${() => setChosen(each.id)} onKeyDown=${(event) => event.key === "Enter" && setChosen(each.id)}>
    <circle r=${10 + Math.min(20, 3 * Math.sqrt(each.mentions))} /><text y="-22">${each.name}</text></g>`;
  const isDrawn = nodes.every((each) => places[each.id]);
  return html`<div class="columns"><svg viewBox=${`0 0 ${SIZE} ${SIZE}`} role="group" aria-label="Entities and their relations">
      ${isDrawn && [...relations.map(line), ...nodes.map(circle)]}</svg>
    <section>${truncated && html`<p class="box">Only the ${MOST_NODES} nearest are shown.</p>`}
      <${About} key=${node.id} node=${node} relations=${relations.filter((each) => [each.source_id, each.target_id].includes(node.id))} />
      ${node.id !== centre && html`<button onClick=${() => change({ entity: node.id })}>Put it in the centre</button>`}</section></div>`;
}

/** The relations of an entity, and the memories that state them. */
function About({ node, relations }) {
  const ids = [...new Set(relations.flatMap((each) => each.memory_ids))].slice(0, 50);
  const loaded = useLoaded(async () => (ids.length ? (await post("/v1/memories/batch/get", { ids })).results : []), ids);
  return html`<h2>${node.name}</h2><p class="hint">${node.type}, mentioned ${node.mentions} times</p>
    <ul>${relations.map((each) => html`<li>${each.source} <i>${spaced(each.label)}</i> ${each.target}</li>`)}</ul>
    <${Loaded} of=${loaded} empty="No memory states a relation of it.">${(found) => html`<h2>Memories that say so</h2>
      <ul class="cards">${found.map((each) => html`<li><${MemoryLink} memory=${each} /></li>`)}</ul>`}<//>`;
}
