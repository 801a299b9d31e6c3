/** The conversations of a scope; and one of them, with the memories that each turn led to. */

import { Loaded, Table, ago, get, html, moment, plural, useEffect, useLoaded, usePage, usePages, useRef } from "../ui.js";

export function Conversations() {
  const { scope, link } = usePage();
  const list = usePages("/v1/conversations", { ...scope, limit: 100 });
  const empty = html`<p>No conversations yet. They appear when an agent stores <code>messages</code> instead of <code>content</code>.</p>`;
  return html`<${Table} of=${list} label="Conversations" empty=${empty} columns=${{
    Conversation: (each) => html`<a href=${link(`/conversation/${each.id}`)}>${each.title || each.external_id}</a>`,
    Turns: (each) => each.turn_count, Started: (each) => ago(each.started_at), Channel: (each) => each.channel,
  }} />`;
}

export function Conversation() {
  const { id, query, link } = usePage();
  const marked = useRef(null);
  const loaded = useLoaded(async (signal) => {
    const conversation = await get(`/v1/conversations/${id}`, { limit: 500 }, signal);
    const { user_id, agent_id } = conversation, run_id = user_id || agent_id ? undefined : conversation.run_id;
    const filters = JSON.stringify({ field: "conversation_id", operator: "eq", value: id });
    const page = await get("/v1/memories", { user_id, agent_id, run_id, filters, limit: 100 }, signal);
    return { conversation, found: await Promise.all(page.results.map((each) => get(`/v1/memories/${each.id}/why`, {}, signal))) };
  }, [id]);
  useEffect(() => marked.current?.scrollIntoView({ block: "center" }), [loaded.value]);
  return html`<p><a href=${link("/conversations")}>← All conversations</a></p><${Loaded} of=${loaded}>${({ conversation, found }) => html`
    <p class="hint">${conversation.external_id}, ${moment(conversation.started_at)}, ${plural(conversation.turn_count, "turn")}. An arrow is a memory that was read from the turn.</p>
    <ol class="cards turns">${conversation.turns.map((turn) => html`<li key=${turn.id} class=${turn.role} ref=${turn.id === query.turn && marked} aria-current=${turn.id === query.turn}>
      <p class="hint">${turn.name || turn.role}, ${moment(turn.timestamp)}</p><p class="said" dir="auto">${turn.content}</p>
      ${found.filter((memory) => memory.sources.some((each) => each.turn_id === turn.id)).map((memory) => html`<p><a class="text" dir="auto" href=${link(`/memory/${memory.id}`)}>→ ${memory.memory}</a></p>`)}</li>`)}</ol>`}<//>`;
}
