/** Messages, questions, and what stands where nothing is loaded yet. */

import { html, useEffect, useRef, useState } from "../ui.js";

/** A dialog; `page.ask` shows it. With a `word`, that has to be typed first; without an `action` it only informs. */
export function Question({ title, action = "", body, word = "", done }) {
  const dialog = useRef(null);
  const [typed, setTyped] = useState("");
  useEffect(() => dialog.current.showModal(), []);
  return html`<dialog ref=${dialog} onClose=${() => done(dialog.current.returnValue === action)} aria-labelledby="question"><form method="dialog">
    <h2 id="question">${title}</h2>${body}
    ${word && html`<label>Type ${word} to confirm <input value=${typed} onInput=${(event) => setTyped(event.target.value)} /></label>`}
    <p class="actions end"><button type="button" onClick=${() => dialog.current.close("")}>${action ? "Cancel" : "Close"}</button>
      ${action && html`<button class="danger" value=${action} disabled=${typed !== word}>${action}</button>`}</p></form></dialog>`;
}

/** A short message at the foot of the page, which screen readers read aloud. */
export const Message = ({ text, undo, isError, dismiss }) => html`<div class=${`box ${isError ? "error" : ""}`}><span>${text}</span>
  ${undo && html`<button onClick=${() => { dismiss(); undo(); }}>Undo</button>`}<button aria-label="Dismiss" onClick=${dismiss}>×</button></div>`;

/** What `render` makes of a loaded value, once it is there; `empty` is what to say of an empty list. */
export function show({ value, error, reload }, render, empty = "") {
  if (error) return html`<div class="box" role="alert"><p>${error.message}</p><button onClick=${reload}>Try again</button></div>`;
  if (value === undefined) return html`<p class="hint" aria-busy="true">Loading …</p>`;
  return empty && value.length === 0 ? html`<div class="box">${empty}</div>` : render(value);
}
