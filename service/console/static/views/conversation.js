/** A conversation, with the memories that were read from each turn. */

import { cards, get, html, link, moment, show, useEffect, useLoaded } from "../ui.js";

export default function Conversation({ id, query: { turn }, scope: { channel, ...owner } }) {
  const loaded = useLoaded(async () => {
    const filters = JSON.stringify({ field: "conversation_id", operator: "eq", value: id });
    const conversation = await get(`/v1/conversations/${id}`, { limit: 500 });
    const { results } = await get("/v1/memories", { ...owner, filters, limit: 100 });
    return { ...conversation, memories: await Promise.all(results.map((each) => get(`/v1/memories/${each.id}/why`))) };
  });
  useEffect(() => document.querySelector("li[aria-current=true]")?.scrollIntoView({ block: "center" }), [loaded.value]);
  return html`<p><a href=${link("/conversations")}>← All conversations</a></p>
    ${show(loaded, ({ external_id, turns, memories }) => html`
      <small>${external_id}</small>
      ${cards(turns, (each) => html`<small class=${each.role}>${each.name || each.role}, ${moment(each.timestamp)}</small>
        <p class="said">${each.content || "(forgotten)"}</p>
        ${memories.filter(({ sources }) => sources.some(({ turn_id }) => turn_id === each.id)).map((memory) => html`
          <p><a class="text" href=${link(`/memory/${memory.id}`)}>→ ${memory.memory}</a></p>`)}`, turn)}`)}`;
}
