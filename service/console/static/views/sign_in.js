/** Asks for a key. */

import { Form, html, key } from "../ui.js";

export default ({ onKey }) => html`<p>See what your agents remember, why they believe it, and what they believed before.</p>
  <${Form} fields=${[{ name: "key", title: "API key or token", type: "password", required: true, wide: true }]} action="Sign in"
    onSend=${(values) => { key.set(values.key); return onKey(); }} />
  <p class="hint">The key stays in this tab. <code>make run</code> prints an address that signs you in.</p>`;
