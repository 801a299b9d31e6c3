/** Whose memories a view shows, with suggestions from the service, and as of which day. */

import { Fields, SCOPE, get, html, useEffect, useLoaded, usePage, useState } from "../ui.js";

const NAMES = { User: "/v1/scopes?type=user", Agent: "/v1/scopes?type=agent", Run: "/v1/scopes?type=run", Channel: "/v1/channels?" };
const AS_OF = { name: "as_of", title: "As known on", days: [-365, 0] };

export function ScopePicker() {
  const { caller, query, scope, change } = usePage();
  const isNamed = scope.user_id || scope.agent_id || scope.run_id;
  const [isUsed, setUsed] = useState(false);
  const isAsked = isUsed || !isNamed; // nothing is suggested before somebody looks for it
  const names = (path) => get(`${path}&limit=500`).then(({ results }) => results.map((each) => each.id || each.channel), () => []);
  const { value: known = [] } = useLoaded(async () => (isAsked ? Promise.all(Object.values(NAMES).map(names)) : []), [isAsked]);
  const [[first] = []] = known;
  useEffect(() => {
    if (first && !isNamed) change({ user_id: first });
  }, [first, isNamed]);
  const fields = Object.keys(NAMES).map((title, at) => (
    { name: SCOPE[at], title, known: known[at] || [], disabled: caller[SCOPE[at]], placeholder: "any", size: 8, onFocus: () => setUsed(true) }));
  return html`<${Fields} values=${{ ...query, ...scope }} fields=${[...fields, AS_OF]}>
    <button disabled=${!query.as_of} onClick=${() => change({ as_of: "" })}>Back to today</button><//>`;
}
