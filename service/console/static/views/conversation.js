/** A conversation, with the memories that each turn led to. */

import { Loaded, get, html, moment, plural, useEffect, useLoaded, usePage, useRef } from "../ui.js";

export default function Conversation() {
  const { id, query, link } = usePage();
  const marked = useRef(null);
  const loaded = useLoaded(async () => {
    const conversation = await get(`/v1/conversations/${id}`, { limit: 500 });
    const { user_id, agent_id } = conversation, run_id = user_id || agent_id ? undefined : conversation.run_id;
    const filters = JSON.stringify({ field: "conversation_id", operator: "eq", value: id });
    const { results } = await get("/v1/memories", { user_id, agent_id, run_id, filters, limit: 100 });
    return { conversation, found: await Promise.all(results.map((each) => get(`/v1/memories/${each.id}/why`))) };
  });
  useEffect(() => marked.current?.scrollIntoView({ block: "center" }), [loaded.value]);
  const memories = (turn, found) => found.filter((memory) => memory.sources.some((each) => each.turn_id === turn.id));
  return html`<p><a href=${link("/conversations")}>← All conversations</a></p><${Loaded} of=${loaded}>${({ conversation, found }) => html`
    <p class="hint">${conversation.external_id}, ${moment(conversation.started_at)}, ${plural(conversation.turn_count, "turn")}. An arrow is a memory that was read from the turn.</p>
    <ol class="cards turns">${conversation.turns.map((turn) => html`<li key=${turn.id} class=${turn.role} ref=${turn.id === query.turn && marked} aria-current=${turn.id === query.turn}>
      <p class="hint">${turn.name || turn.role}, ${moment(turn.timestamp)}</p><p class="said" dir="auto">${turn.content}</p>
      ${memories(turn, found).map((memory) => html`<p><a class="text" dir="auto" href=${link(`/memory/${memory.id}`)}>→ ${memory.memory}</a></p>`)}</li>`)}</ol>`}<//>`;
}
