/** API keys: listed, made, rotated and revoked. */

import { Form, Table, day, get, html, listOf, post, remove, useLoaded } from "../ui.js";

const FIELDS = [
  { name: "name", title: "Name", required: true }, { name: "user_id", title: "Only user" }, { name: "agent_id", title: "Only agent" },
  { name: "channels", title: "Only channels", placeholder: "work, home" }, { name: "expires", title: "Expires", type: "date" },
];
const USUAL = ["memory:read", "memory:write"];

export default function Keys({ caller, act, ask }) {
  const list = useLoaded(async () => (await get("/v1/api-keys")).results);
  const show = ({ api_key }) => void ask({ title: "The new secret", body: html`Copy it now; it is not shown again.<p><code>${api_key}</code></p>` });
  const make = ({ expires, channels, right, ...values }, data) => act(async () => {
    const expires_at = expires && `${expires}T00:00:00Z`, confined = channels && listOf(channels);
    show(await post("/v1/api-keys", { ...values, expires_at, rights: data.getAll("right"), channels: confined }));
  });
  const rotate = ({ id, name }) => act(async () => show(await post(`/v1/api-keys/${id}/rotate`)), "", {
    question: { title: `Rotate ${name}?`, action: "Rotate", body: "It gets a new secret; the old one is refused." },
  });
  const revoke = ({ id, name }) => act(() => remove(`/v1/api-keys/${id}`), "Revoked.", {
    question: { title: `Revoke ${name}?`, action: "Revoke", word: name, body: "Whoever uses it is refused. This cannot be undone." },
  });
  return html`<${Table} of=${list} label="Keys" columns=${{
      Key: (each) => html`${each.name} <code>…${each.hint}</code>`,
      Confined: (each) => [each.user_id, each.agent_id, each.run_id, ...(each.channels || [])].filter(Boolean).join(", ") || "nothing",
      Rights: (each) => html`<span class="hint">${each.rights.join(", ")}</span>`, Used: (each) => day(each.last_used_at) || "never", Expires: (each) => day(each.expires_at) || "never",
      Actions: (each) => (each.revoked_at ? html`<span class="chip ended">revoked</span>` : html`<span class="actions">
        <button onClick=${() => rotate(each)}>Rotate</button><button class="danger" onClick=${() => revoke(each)}>Revoke</button></span>`),
    }} />
    <h2>Make a key</h2><${Form} fields=${FIELDS} action="Make" onSend=${make}><fieldset class="wide"><legend>Rights</legend>${caller.rights.map((right) => html`
      <label><input type="checkbox" name="right" value=${right} defaultChecked=${USUAL.includes(right)} /> ${right}</label>`)}</fieldset><//>`;
}
