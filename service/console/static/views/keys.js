/** API keys: listed, made, rotated and revoked. */

import { Form, Table, day, html, listOf, post, remove, usePage, usePages } from "../ui.js";

const FIELDS = [
  { name: "name", title: "Name", required: true }, { name: "user_id", title: "Only user" }, { name: "agent_id", title: "Only agent" },
  { name: "channels", title: "Only channels", placeholder: "work, home" }, { name: "expires", title: "Expires", type: "date" },
];
const USUAL = ["memory:read", "memory:write"];

export default function Keys() {
  const { caller, act, ask } = usePage();
  const list = usePages("/v1/api-keys", {});
  const show = ({ api_key }) => ask({ title: "The new secret", body: html`<p>Copy it now; it is not shown again.</p><p><code>${api_key}</code></p>
    <button type="button" onClick=${() => act(() => navigator.clipboard.writeText(api_key), "Copied.")}>Copy</button>` });
  const make = ({ expires, channels, right, ...values }, data) => act(async () => {
    const expires_at = expires && `${expires}T00:00:00Z`, confined = listOf(channels);
    show(await post("/v1/api-keys", { ...values, expires_at, rights: data.getAll("right"), channels: confined.length ? confined : undefined }));
    list.reload();
  });
  const confirm = (action, word, body, work) => act(async () => {
    if (!await ask({ title: `${action}?`, action: action.split(" ")[0], word, body: html`<p>${body}</p>` })) return;
    await work();
    list.reload();
  });
  const rotate = ({ id, name }) => confirm(`Rotate ${name}`, "", "It gets a new secret; the old one is refused.", async () => show(await post(`/v1/api-keys/${id}/rotate`)));
  const revoke = ({ id, name }) => confirm(`Revoke ${name}`, name, "Whoever uses it is refused. This cannot be undone.", () => remove(`/v1/api-keys/${id}`));
  return html`<${Table} of=${list} label="Keys" columns=${{
      Key: (each) => html`${each.name} <code>…${each.hint}</code>`,
      Confined: (each) => [each.user_id, each.agent_id, each.run_id, ...(each.channels || [])].filter(Boolean).join(", ") || "nothing",
      Rights: (each) => html`<span class="hint">${each.rights.join(", ")}</span>`, Used: (each) => day(each.last_used_at) || "never", Expires: (each) => day(each.expires_at) || "never",
      Actions: (each) => (each.revoked_at ? html`<span class="chip ended">revoked</span>` : html`<span class="actions">
        <button onClick=${() => rotate(each)}>Rotate</button><button class="danger" onClick=${() => revoke(each)}>Revoke</button></span>`),
    }} />
    <h2>Make a key</h2><${Form} label="Make a key" fields=${FIELDS} action="Make" onSend=${make}><fieldset class="wide"><legend>Rights</legend>${caller.rights.map((right) => html`
      <label><input type="checkbox" name="right" value=${right} defaultChecked=${USUAL.includes(right)} /> ${right}</label>`)}</fieldset><//>`;
}
