/** Messages, questions, and what stands where nothing is loaded yet. */

import { html, useEffect, useRef, useState } from "../ui.js";

/** A dialog; `page.ask` shows it. With a `word`, that has to be typed first; without an `action` it only informs. */
export function Question({ title, action = "", body, word = "", done }) {
  const dialog = useRef(null);
  const [typed, setTyped] = useState("");
  useEffect(() => dialog.current.showModal(), []);
  const send = (event) => {
    event.preventDefault();
    done(true);
  };
  return html`<dialog ref=${dialog} onClose=${() => done(false)} aria-labelledby="question"><form onSubmit=${send}>
    <h2 id="question">${title}</h2>${body}
    ${word && html`<label>Type ${word} to confirm <input value=${typed} onInput=${(event) => setTyped(event.target.value)} /></label>`}
    <p class="actions end"><button type="button" onClick=${() => done(false)}>${action ? "Cancel" : "Close"}</button>
      ${action && html`<button class="danger" disabled=${typed !== word}>${action}</button>`}</p></form></dialog>`;
}

/** Short messages at the foot of the page, which screen readers read aloud. */
export function Messages({ messages, dismiss }) {
  const run = ({ id, undo }) => () => { dismiss(id); undo(); };
  return html`<div class="messages" role="status">${messages.map((each) => html`<div key=${each.id} class=${each.isError && "error"}>
    <span>${each.text}</span>${each.undo && html`<button onClick=${run(each)}>Undo</button>`}
    <button aria-label="Dismiss" onClick=${() => dismiss(each.id)}>×</button></div>`)}</div>`;
}

/** `children` as a function of what was loaded, once it is there; `empty` is what to say of an empty list. */
export function Loaded({ of, empty = "", children }) {
  if (of.error) {
    return html`<div class="box error" role="alert"><p>${of.error.message}</p><p class="hint">Request ${of.error.requestId}</p>
      <button onClick=${of.reload}>Try again</button></div>`;
  }
  if (of.value === undefined) return html`<p class="hint" aria-busy="true">Loading …</p>`;
  return empty && of.value.length === 0 ? html`<div class="box">${empty}</div>` : children(of.value);
}
