/** People, places and things around one of them, two relations far. */

import { Fields, VALID_AT, cards, change, get, html, memoryLink, post, show, spaced, useLoaded } from "../ui.js";
import { SIZE, layOut } from "./layout.js";

export default function Graph({ scope: { run_id, ...owner }, query: { entity, type, valid_at } }) {
  const listed = useLoaded(async () => {
    const { results } = await post("/v1/entities", { ...owner, limit: 200 });
    return results.sort((one, other) => other.mentions - one.mentions);
  }, [owner]);
  const centre = entity || listed.value?.[0]?.id;
  const asked = { ...owner, ids: centre, depth: 2, limit: 150, types: type, valid_at };
  const graph = useLoaded(async () => {
    const found = centre && await get("/v1/entities/graph", asked);
    return found && { ...found, centre, places: await layOut(found, centre) };
  }, [asked]);
  const types = new Set(graph.value?.relations.map((each) => each.type));
  const fields = (entities) => [
    { name: "entity", title: "Around", options: entities.map((each) => [each.id, `${each.name} (${each.mentions})`]), start: centre },
    { name: "type", title: "Relation", options: [["", "Any"], ...[...types].sort().map((each) => [each, spaced(each)])] }, VALID_AT,
  ];
  return show(listed, (entities) => html`<${Fields} fields=${fields(entities)} />
    ${show(graph, drawGraph)}`,
  "No people, places or projects are known yet.");
}

function drawGraph({ nodes, relations, truncated, places, centre }) {
  const line = ({ source_id, target_id, t_invalid, ...each }) => {
    const from = places[source_id], to = places[target_id];
    return html`<line x1=${from.x} y1=${from.y} x2=${to.x} y2=${to.y} class=${t_invalid && "ended"}>
      <title>${each.source} ${each.label} ${each.target}</title></line>`;
  };
  const choose = (entity) => change({ entity });
  const circle = ({ id, name, mentions }) => html`<g key=${id} transform=${`translate(${places[id].x} ${places[id].y})`}
      role="button" tabindex="0" aria-label=${name} aria-pressed=${id === centre}
      onClick=${() => choose(id)} onKeyDown=${({ key }) => key === "Enter" && choose(id)}>
    <circle r=${10 + Math.min(20, 3 * Math.sqrt(mentions))} /><text y="-22">${name}</text></g>`;
  return html`<div class="columns"><svg viewBox=${`0 0 ${SIZE} ${SIZE}`} role="group" aria-label="Entities and their relations">
      ${relations.map(line)}${nodes.map(circle)}</svg>
    <section>${truncated && html`<p class="box">Only the nearest are shown.</p>`}
      <${About} ...${nodes.find(({ id }) => id === centre)}
        relations=${relations.filter((each) => [each.source_id, each.target_id].includes(centre))} /></section></div>`;
}

function About({ name, type, mentions, relations }) {
  const ids = [...new Set(relations.flatMap((each) => each.memory_ids))].slice(0, 50);
  const loaded = useLoaded(async () => (ids.length ? (await post("/v1/memories/batch/get", { ids })).results : []), ids);
  return html`<h2>${name}</h2><small>${type}, mentioned ${mentions} times</small>
    <ul>${relations.map((each) => html`<li>${each.source} <i>${spaced(each.label)}</i> ${each.target}</li>`)}</ul>
    <h2>Memories that say so</h2>${show(loaded, (rows) => cards(rows, memoryLink), "No memory states a relation of it.")}`;
}
