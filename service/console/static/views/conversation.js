/** A conversation, with the memories that each turn led to. */

import { get, html, moment, plural, show, useEffect, useLoaded, useRef } from "../ui.js";

export default function Conversation({ id, query, scope: { channel, ...owner }, link }) {
  const marked = useRef(null);
  const loaded = useLoaded(async () => {
    const filters = JSON.stringify({ field: "conversation_id", operator: "eq", value: id });
    const [conversation, { results }] = await Promise.all([get(`/v1/conversations/${id}`, { limit: 500 }), get("/v1/memories", { ...owner, filters, limit: 100 })]);
    return { conversation, memories: await Promise.all(results.map((each) => get(`/v1/memories/${each.id}/why`))) };
  });
  useEffect(() => marked.current?.scrollIntoView({ block: "center" }), [loaded.value]);
  return html`<p><a href=${link("/conversations")}>← All conversations</a></p>${show(loaded, ({ conversation, memories }) => html`
    <p class="hint">${conversation.external_id}, ${moment(conversation.started_at)}, ${plural(conversation.turn_count, "turn")}. An arrow is a memory that was read from the turn.</p>
    <ol class="cards turns">${conversation.turns.map((turn) => html`<li key=${turn.id} class=${turn.role} ref=${turn.id === query.turn && marked} aria-current=${turn.id === query.turn}>
      <p class="hint">${turn.name || turn.role}, ${moment(turn.timestamp)}</p><p class="said" dir="auto">${turn.content}</p>
      ${memories.filter(({ sources }) => sources.some((each) => each.turn_id === turn.id)).map((memory) => html`
        <p><a class="text" dir="auto" href=${link(`/memory/${memory.id}`)}>→ ${memory.memory}</a></p>`)}</li>`)}</ol>`)}`;
}
