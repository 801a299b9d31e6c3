/** Asks for a key. */

import { Form, html, key } from "../ui.js";

export function SignIn({ onKey }) {
  const fields = [{ name: "key", title: "API key or token", type: "password", required: true, wide: true }];
  return html`<main class="sign-in"><h1><img src="/console/icon.svg" alt="" width="40" height="40" /> Loxodon</h1>
    <p>See what your agents remember, why they believe it, and what they believed before.</p>
    <${Form} fields=${fields} action="Sign in" onSend=${(values) => { key.set(values.key); return onKey(); }} />
    <p class="hint">The key stays in this tab. <code>make run</code> prints an address that signs you in.</p></main>`;
}
