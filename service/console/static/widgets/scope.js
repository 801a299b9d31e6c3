/** Whose memories a view shows, with suggestions from the service, and as of which day. */

import { Fields, SCOPE, get, html, useEffect, useLoaded, usePage, useState } from "../ui.js";

const LISTS = ["/v1/scopes?type=user", "/v1/scopes?type=agent", "/v1/scopes?type=run"];

export function ScopePicker() {
  const { caller, query, scope, change } = usePage();
  const isNamed = Boolean(scope.user_id || scope.agent_id || scope.run_id);
  const [isUsed, setUsed] = useState(!isNamed); // nothing is suggested before somebody looks for it
  const names = (path) => get(`${path}&limit=500`).then(({ results }) => results.map((each) => each.id || each.channel), () => []);
  const ofUser = scope.user_id ? [`/v1/channels?user_id=${encodeURIComponent(scope.user_id)}`] : [];
  const lists = isUsed ? [...LISTS, ...ofUser] : [];
  const known = useLoaded(() => Promise.all(lists.map(names)), lists).value || [];
  const [first] = known[0] || [];
  useEffect(() => {
    if (first && !isNamed) change({ user_id: first });
  }, [first, isNamed]);
  const fields = ["User", "Agent", "Run", "Channel"].map((title, at) => (
    { name: SCOPE[at], title, known: known[at] || [], disabled: Boolean(caller[SCOPE[at]]), placeholder: "any", size: 8, onFocus: () => setUsed(true) }));
  return html`<${Fields} values=${{ ...query, ...scope }} fields=${[...fields, { name: "as_of", title: "As known on", days: [-365, 0] }]} />`;
}
