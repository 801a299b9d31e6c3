/** Inputs: fields that are bound to the address, and a form that is sent. */

import { day, html, useEffect, useLayoutEffect, usePage, useRef } from "../ui.js";

const DAY_MS = 86_400_000;
const TODAY = Math.floor(Date.now() / DAY_MS);
const dayOf = (date) => (date ? Math.floor(Date.parse(date) / DAY_MS) : TODAY);
const dateOf = (number) => (Number(number) === TODAY ? "" : new Date(number * DAY_MS).toISOString().slice(0, 10));

/**
 * A labelled input. `options` makes it a list to choose from, `rows` a text area, `days` a slider over that range of days
 * from today, whose value is a date; `known` suggests values while one types. The rest goes to the input itself.
 */
function Field({ title, options, rows, days, known, wide, value, onChange, ...rest }) {
  const ref = useRef(null);
  const set = days ? dayOf(value) : value;
  useLayoutEffect(() => { if (set !== undefined) ref.current.value = set; }, [set]); // no other render undoes what somebody types
  const range = days && { type: "range", min: TODAY + days[0], max: TODAY + days[1] };
  const shown = days ? day(value) || "today" : rest.type === "range" && value;
  const input = { ...rest, ...range, ref, onChange: ({ target }) => onChange?.(days ? dateOf(target.value) : target.value.trim()) };
  return html`<label class=${wide && "wide"}>${title} ${shown && html`<b>${shown}</b>`}
    ${options ? html`<select ...${input}>${options.map(([each, text]) => html`<option value=${each}>${text}</option>`)}</select>`
      : rows ? html`<textarea ...${input} rows=${rows} />` : html`<input list=${`known-${rest.name}`} autocomplete="off" ...${input} />`}
    ${known && html`<datalist id=${`known-${rest.name}`}>${known.map((each) => html`<option value=${each} />`)}</datalist>`}</label>`;
}

/** Fields whose values are parameters of the address, so that every state of a view is a link. */
export function Fields({ fields, values, children }) {
  const { query, change } = usePage();
  return html`<div class="fields">${fields.map(({ start = "", ...field }) => html`<${Field} ...${field}
    value=${(values || query)[field.name] || start} onChange=${(value) => change({ [field.name]: value })} />`)}${children}</div>`;
}

/** A form: `onSend` receives the values by name; the fields are emptied when it returns true. With `onCancel`, Escape leaves it. */
export function Form({ fields, action, onSend, onCancel, children }) {
  const form = useRef(null);
  useEffect(() => onCancel && form.current.elements[0].focus(), []);
  const send = async (event) => {
    event.preventDefault();
    const data = new FormData(form.current);
    const values = Object.fromEntries([...data].map(([name, value]) => [name, String(value).trim() || undefined]));
    if (await onSend(values, data)) form.current?.reset();
  };
  return html`<form ref=${form} class="fields" aria-label=${action} onSubmit=${send} onKeyDown=${(event) => event.key === "Escape" && onCancel?.()}>
    ${fields.map((field) => html`<${Field} ...${field} />`)}${children}
    <button class="primary">${action}</button>${onCancel && html`<button type="button" onClick=${onCancel}>Cancel</button>`}</form>`;
}

export const VALID_AT = { name: "valid_at", title: "What held on", days: [-365, 365] };
