/** Inputs: fields bound to the address, the scope among them, and a form. */

import { change, day, get, html, page, useEffect, useLayoutEffect, useRef, useState } from "../ui.js";

const DAY_MS = 86_400_000;
const daysUntil = (time) => (time ? Math.round((Date.parse(time) - Date.now()) / DAY_MS) : 0);
const timeIn = (days) => (days ? new Date(Date.now() + days * DAY_MS).toISOString() : "");
const namesOf = (path) => get(path).then(({ results }) => results.map((each) => each.id || each.channel), () => []);

/** A labelled input: `options` make it a list, `rows` a text area, `isTime` a slider of days. `suggestions`: a path of the API. */
function Field({ title, options, isTime, suggestions, value, onChange, ...rest }) {
  const ref = useRef(null);
  const [known, setKnown] = useState([]);
  const [draft, setDraft] = useState(value);
  const suggest = () => suggestions && namesOf(suggestions).then(setKnown);
  const set = isTime ? daysUntil(value) : value;
  useLayoutEffect(() => { // keeps what somebody types
    if (set !== undefined) ref.current.value = set;
    setDraft(value);
  }, [set]);
  const shown = isTime ? day(draft) || "today" : rest.type === "range" && draft;
  const report = (then) => ({ target }) => then?.(isTime ? timeIn(Number(target.value)) : target.value.trim());
  return html`<label>${title} ${shown && html`<b>${shown}</b>`}
    <${options ? "select" : rest.rows ? "textarea" : "input"} autocomplete="off" ...${rest}
      ref=${ref} onInput=${report(setDraft)} onChange=${report(onChange)} onFocus=${suggest} list=${suggestions}>
      ${options?.map(([each, text]) => html`<option value=${each}>${text}</option>`)}<//>
    <datalist id=${suggestions}>${known.map((each) => html`<option value=${each} />`)}</datalist></label>`;
}

/** Fields whose values are in the address, so that every state of a view is a link. */
export function Fields({ fields, children }) {
  return html`<div class="fields">${fields.map(({ start = "", ...field }) => html`<${Field} ...${field}
    value=${page.query[field.name] || start} onChange=${(value) => change({ [field.name]: value })} />`)}${children}</div>`;
}

/** A form: `onSend` receives the values by name; if it returns true, they are emptied. */
export function Form({ fields, action, onSend, onCancel, children }) {
  const form = useRef(null);
  useEffect(() => onCancel && form.current.elements[0].focus(), []);
  const send = async (event) => {
    event.preventDefault();
    const data = new FormData(form.current);
    const values = Object.fromEntries([...data].map(([name, value]) => [name, String(value).trim() || undefined]));
    if (await onSend(values, data)) form.current?.reset();
  };
  return html`<form ref=${form} class="fields" onSubmit=${send}>
    ${fields.map((field) => html`<${Field} ...${field} />`)}${children}
    <button class="primary">${action}</button>${onCancel && html`<button type="button" onClick=${onCancel}>Cancel</button>`}</form>`;
}

const TIME = { isTime: true, type: "range", max: 0, min: -365 };
export const VALID_AT = { ...TIME, name: "valid_at", title: "What held on", max: 365 };

const NAMES = { user_id: "/v1/scopes?type=user", agent_id: "/v1/scopes?type=agent", run_id: "/v1/scopes?type=run", channel: "/v1/channels" };

/** Whose memories a view shows, and as of which day. */
export function ScopePicker() {
  const { caller, owner, as_of } = page;
  useEffect(() => {
    if (!owner) namesOf(NAMES.user_id).then(([user_id]) => user_id && change({ user_id }));
  }, [owner]);
  const fields = Object.entries(NAMES).map(([name, suggestions]) => (
    { name, suggestions, title: name.replace("_id", ""), disabled: caller[name], placeholder: "any", size: 8 }));
  return html`<${Fields} fields=${[...fields, { ...TIME, name: "as_of", title: "As known on" }]}>
    <button disabled=${!as_of} onClick=${() => change({ as_of: "" })}>Back to today</button><//>`;
}
