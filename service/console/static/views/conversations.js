/** The conversations of a scope. */

import { Table, html, moment, usePages } from "../ui.js";

export default function Conversations({ scope, link }) {
  const empty = html`<p>No conversations yet. They appear when an agent stores <code>messages</code> instead of <code>content</code>.</p>`;
  return html`<${Table} of=${usePages("/v1/conversations", { ...scope, limit: 100 })} label="Conversations" empty=${empty} columns=${{
    Conversation: (each) => html`<a href=${link(`/conversation/${each.id}`)}>${each.title || each.external_id}</a>`,
    Turns: (each) => each.turn_count, Started: (each) => moment(each.started_at), Channel: (each) => each.channel,
  }} />`;
}
