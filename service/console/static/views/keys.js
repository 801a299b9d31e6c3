/** API keys: a list, and a form for new ones. */

import { Form, act, ask, cards, day, get, html, listOf, post, remove, scopeOf, show, useLoaded } from "../ui.js";

const FIELDS = [
  { name: "name", title: "Name", required: true }, { name: "user_id", title: "Only user" }, { name: "agent_id", title: "Only agent" },
  { name: "channels", title: "Only channels", placeholder: "work, home" }, { name: "expires", title: "Expires", type: "date" },
];
const USUAL = ["memory:read", "memory:write"];

export default function Keys({ caller }) {
  const list = useLoaded(async () => (await get("/v1/api-keys")).results);
  const tell = ({ api_key }) => void ask({ title: "The new secret", body: html`It is shown only once.<p><code>${api_key}</code></p>` });
  const make = ({ expires, channels, right, ...values }, data) => act(async () => tell(await post("/v1/api-keys", {
    ...values, rights: data.getAll("right"), expires_at: expires && `${expires}T00:00:00Z`, channels: channels && listOf(channels),
  })));
  const rotate = ({ id, name }) => act(async () => tell(await post(`/v1/api-keys/${id}/rotate`)), "", {
    question: { title: `Rotate ${name}?`, action: "Rotate", body: "The old secret is refused from now on." },
  });
  const revoke = ({ id, name }) => act(() => remove(`/v1/api-keys/${id}`), "Revoked.", {
    question: { title: `Revoke ${name}?`, action: "Revoke", word: name, body: "This cannot be undone." },
  });
  return html`${show(list, (keys) => cards(keys, (key) => html`<div class="row"><div><b>${key.name}</b> <code>…${key.hint}</code>
      <small>${[...Object.values(scopeOf(key)), ...(key.channels || [])].map((each) => `Only ${each}. `)}
        Used: ${day(key.last_used_at) || "never"}. Expires: ${day(key.expires_at) || "never"}. Rights: ${key.rights.join(", ")}</small></div>
      ${key.revoked_at ? html`<span class="chip ended">revoked</span>` : html`<span class="actions">
        <button onClick=${() => rotate(key)}>Rotate …</button>
        <button class="danger" onClick=${() => revoke(key)}>Revoke …</button></span>`}</div>`))}
    <h2>Make a key</h2><${Form} fields=${FIELDS} action="Make" onSend=${make}><fieldset><legend>Rights</legend>
      ${caller.rights.map((right) => html`<label>
        <input type="checkbox" name="right" value=${right} defaultChecked=${USUAL.includes(right)} /> ${right}</label>`)}
    </fieldset><//>`;
}
