/** People, places and things around one of them, two relations far. */

import { Fields, MemoryLink, VALID_AT, cards, get, html, post, show, spaced, useLoaded } from "../ui.js";
import { layOut } from "./layout.js";

const MOST_NODES = 150, SIZE = 1000;

export default function Graph({ scope: { run_id, ...owner }, query: { entity, type }, valid_at, change }) {
  const listed = useLoaded(async () => (await post("/v1/entities", { ...owner, limit: 200 })).results.sort((one, other) => other.mentions - one.mentions), [owner]);
  const centre = entity || listed.value?.[0]?.id;
  const asked = { ...owner, ids: centre, depth: 2, limit: MOST_NODES, types: type, valid_at };
  const graph = useLoaded(async () => {
    if (!centre) return undefined;
    const { nodes, relations, truncated } = await get("/v1/entities/graph", asked);
    const edges = relations.map((each) => [each.source_id, each.target_id]);
    return { nodes, relations, truncated, centre, places: await layOut({ ids: nodes.map((each) => each.id), edges, centre, size: SIZE }) };
  }, [asked]);
  const types = [...new Set([type, ...(graph.value?.relations || []).map((each) => each.type)])].filter(Boolean).sort();
  const fields = (entities) => [
    { name: "entity", title: "Around", options: entities.map((each) => [each.id, `${each.name} (${each.mentions})`]), start: centre },
    { name: "type", title: "Relation", options: [["", "Any"], ...types.map((each) => [each, spaced(each)])] }, VALID_AT,
  ];
  return show(listed, (entities) => html`<${Fields} fields=${fields(entities)} />
    ${show(graph, (found) => html`<${Drawing} ...${found} onChoose=${(id) => change({ entity: id })} />`)}`,
  "No people, places or projects are known yet. They are read from memories within seconds.");
}

function Drawing({ nodes, relations, truncated, places, centre, onChoose }) {
  const node = nodes.find((each) => each.id === centre);
  const line = ({ source_id, target_id, ...each }) => {
    const from = places[source_id], to = places[target_id];
    return html`<line x1=${from.x} y1=${from.y} x2=${to.x} y2=${to.y} class=${each.t_invalid && "ended"}><title>${each.source} ${each.label} ${each.target}</title></line>`;
  };
  const circle = ({ id, name, mentions }) => html`<g key=${id} transform=${`translate(${places[id].x} ${places[id].y})`} role="button" tabindex="0" aria-label=${name}
      aria-pressed=${id === centre} onClick=${() => onChoose(id)} onKeyDown=${(event) => event.key === "Enter" && onChoose(id)}>
    <circle r=${10 + Math.min(20, 3 * Math.sqrt(mentions))} /><text y="-22">${name}</text></g>`;
  return html`<div class="columns"><svg viewBox=${`0 0 ${SIZE} ${SIZE}`} role="group" aria-label="Entities and their relations">
      ${relations.map(line)}${nodes.map(circle)}</svg>
    <section>${truncated && html`<p class="box">Only the ${MOST_NODES} nearest are shown.</p>`}
      <${About} node=${node} relations=${relations.filter((each) => [each.source_id, each.target_id].includes(centre))} /></section></div>`;
}

function About({ node, relations }) {
  const ids = [...new Set(relations.flatMap((each) => each.memory_ids))].slice(0, 50);
  const loaded = useLoaded(async () => (ids.length ? (await post("/v1/memories/batch/get", { ids })).results : []), ids);
  return html`<h2>${node.name}</h2><p class="hint">${node.type}, mentioned ${node.mentions} times</p>
    <ul>${relations.map((each) => html`<li>${each.source} <i>${spaced(each.label)}</i> ${each.target}</li>`)}</ul>
    <h2>Memories that say so</h2>${show(loaded, (found) => cards(found, (each) => html`<${MemoryLink} memory=${each} />`), "No memory states a relation of it.")}`;
}
