/** Whose memories a view shows, with suggestions from the service, and as of which day. */

import { Fields, SCOPE, get, html, useEffect, useLoaded, usePage } from "../ui.js";

export function ScopePicker() {
  const { caller, query, scope, change } = usePage();
  const names = (path, query, signal) => get(path, { ...query, limit: 500 }, signal)
    .then((page) => page.results.map((each) => each.id || each.channel), () => []); // suggestions only
  const known = useLoaded((signal) => Promise.all([
    ...["user", "agent", "run"].map((type) => names("/v1/scopes", { type }, signal)), names("/v1/channels", { user_id: scope.user_id }, signal),
  ]), [scope.user_id]).value || [];
  const [first] = known[0] || [];
  useEffect(() => {
    if (first && !scope.user_id && !scope.agent_id && !scope.run_id) change({ user_id: first });
  }, [first, JSON.stringify(scope)]);
  const fields = ["User", "Agent", "Run", "Channel"].map((title, at) => (
    { name: SCOPE[at], title, known: known[at] || [], disabled: Boolean(caller[SCOPE[at]]), placeholder: "any", size: 8 }));
  return html`<${Fields} values=${{ ...query, ...scope }} fields=${[...fields, { name: "as_of", title: "As known on", days: [-365, 0] }]} />`;
}
