/** Inputs: fields that are bound to the address, and a form that is sent. */

import { html, useRef, usePage } from "../ui.js";

const DAY_MS = 86_400_000;
const TODAY = Math.floor(Date.now() / DAY_MS);
const dateOf = (day) => new Date(day * DAY_MS).toISOString().slice(0, 10);

/**
 * A labelled input. `options` makes it a list to choose from, `rows` a text area, `days` a slider over that range of days
 * from today, whose value is a date; `known` suggests values while one types. The rest goes to the input itself.
 */
function Field({ title, options, rows, days, known, wide, onChange, ...input }) {
  const { name, value } = input;
  const change = ({ target }) => onChange?.(target.value.trim());
  const slide = ({ target }) => onChange(Number(target.value) === TODAY ? "" : dateOf(target.value));
  const range = days && { min: TODAY + days[0], max: TODAY + days[1], value: value ? Math.floor(Date.parse(value) / DAY_MS) : TODAY };
  return html`<label class=${(wide || rows) && "wide"}>${title} ${(days || input.type === "range") && html`<b>${value?.slice(0, 10) || "today"}</b>`}
    ${options ? html`<select ...${input} onChange=${change}>${options.map(([each, text]) => html`<option value=${each}>${text}</option>`)}</select>`
      : rows ? html`<textarea ...${input} rows=${rows} />`
        : days ? html`<input type="range" ...${range} onChange=${slide} />`
          : html`<input ...${input} list=${known && `known-${name}`} onChange=${change} autocomplete="off" />`}
    ${known && html`<datalist id=${`known-${name}`}>${known.map((each) => html`<option value=${each} />`)}</datalist>`}</label>`;
}

/** Fields whose values are parameters of the address, so that every state of a view is a link. */
export function Fields({ fields, values }) {
  const { query, change } = usePage();
  return html`<div class="fields">${fields.map(({ start = "", ...field }) => html`<${Field} key=${field.name} ...${field}
    value=${(values || query)[field.name] || start} onChange=${(value) => change({ [field.name]: value })} />`)}</div>`;
}

/** A form: `onSend` receives the values by name; the fields are emptied when it returns true. */
export function Form({ fields, action, onSend, label, children }) {
  const form = useRef(null);
  const send = async (event) => {
    event.preventDefault();
    const data = new FormData(form.current);
    const values = Object.fromEntries([...data].map(([name, value]) => [name, String(value).trim() || undefined]));
    if (await onSend(values, data)) form.current?.reset();
  };
  return html`<form ref=${form} class="fields" aria-label=${label || action} onSubmit=${send}>
    ${fields.map((field) => html`<${Field} key=${field.name} ...${field} />`)}${children}<button class="primary">${action}</button></form>`;
}

/** The day for which a view shows what was true. */
export const VALID_AT = { name: "valid_at", title: "What held on", days: [-365, 365] };
