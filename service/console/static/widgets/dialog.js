/** Questions, and what stands where nothing is loaded yet. */

import { html, useEffect, useRef, useState } from "../ui.js";

/** A dialog. A `word` has to be typed first; without an `action` it only informs. */
export function Question({ title, action = "", body, word = "", done }) {
  const dialog = useRef(null);
  const [typed, setTyped] = useState("");
  useEffect(() => dialog.current.showModal(), []);
  return html`<dialog ref=${dialog} onClose=${() => done(dialog.current.returnValue === action)} aria-label=${title}>
    <form method="dialog"><h2>${title}</h2>${body}
      ${word && html`<label>Type ${word} to confirm <input value=${typed} onInput=${({ target }) => setTyped(target.value)} /></label>`}
      <p class="actions"><button type="button" onClick=${() => dialog.current.close("")}>${action ? "Cancel" : "Close"}</button>
        ${action && html`<button class="danger" value=${action} disabled=${typed !== word}>${action}</button>`}</p></form></dialog>`;
}

/** A loaded value as `render` draws it; `empty` stands for a list without rows. */
export function show({ value, error, cursor, more } = /** @type {any} */ ({}), render, empty = "") {
  if (error) return html`<div class="box" role="alert">${error.message}</div>`;
  if (value === undefined) return html`<small aria-busy="true">Loading …</small>`;
  if (empty && value.length === 0) return html`<div class="box">${empty}</div>`;
  return html`${render(value)}${cursor && html`<button onClick=${more}>Show more</button>`}`;
}
