/** The conversations of a scope. */

import { cards, html, link, moment, plural, show, usePages } from "../ui.js";

export default function Conversations({ scope }) {
  return show(usePages("/v1/conversations", scope), (rows) => cards(rows, (each) => html`
    <a href=${link(`/conversation/${each.id}`)}>${each.title || each.external_id}</a>
    <small>${plural(each.turn_count, "turn")}, ${moment(each.started_at)}, ${each.channel}</small>`),
  html`No conversations yet. Agents store them as <code>messages</code>.`);
}
