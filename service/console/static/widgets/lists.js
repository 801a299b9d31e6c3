/** Tables, facts, choosing several, and a list that draws only the rows in sight. */

import { html, show, spaced, useEffect, useState } from "../ui.js";

/** The rows of `of` as a table; `columns` has for each title a function from a row to its cell. */
export const Table = ({ of, label, columns, empty }) => show(of, (rows) => html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table>
    <thead><tr>${Object.keys(columns).map((title) => html`<th scope="col">${title}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.id}>${Object.values(columns).map((cell) => html`<td>${cell(row)}</td>`)}</tr>`)}</tbody></table></div>
  <${More} of=${of} />`, empty);

export const cards = (rows, render) => html`<ol class="cards">${rows.map((row) => html`<li key=${row.id}>${render(row)}</li>`)}</ol>`;

export const More = ({ of }) => of.cursor && html`<button onClick=${of.more}>Show more</button>`;

/** Values by their names; those that are empty or 0 are left out. */
export const Facts = ({ facts }) => html`<dl>${Object.entries(facts).filter(([, value]) => value).map(([name, value]) => html`
  <div><dt>${spaced(name)}</dt><dd dir="auto">${value}</dd></div>`)}</dl>`;

/** The chosen ones of the rows, and `box(row, label)` to choose one. */
export function useChosen(rows = []) {
  const [ids, setIds] = useState([]);
  const toggle = ({ target }) => setIds(target.checked ? [...ids, target.value] : ids.filter((each) => each !== target.value));
  const box = ({ id }, label) => html`<input type="checkbox" value=${id} aria-label=${`Select: ${label}`} checked=${ids.includes(id)} onChange=${toggle} />`;
  return { chosen: rows.filter(({ id }) => ids.includes(id)), box };
}

const SPARE = 8;

/** Rows of one height, in pixels; `onEnd` is called when the last ones come into sight. */
export function VirtualList({ rows, total, height, render, onEnd, label }) {
  const [top, setTop] = useState(0);
  const first = Math.max(0, Math.floor(top / height) - SPARE);
  const last = Math.min(rows.length, Math.ceil((top + innerHeight) / height) + SPARE);
  useEffect(() => void (last > rows.length - SPARE && onEnd()), [last, rows.length]);
  return html`<div class="virtual" tabindex="0" role="region" aria-label=${label} onScroll=${(event) => setTop(event.target.scrollTop)}>
    <ol style=${{ height: `${rows.length * height}px` }}>${rows.slice(first, last).map((row, at) => html`
      <li key=${row.id} aria-setsize=${total} aria-posinset=${first + at + 1}
        style=${{ top: `${(first + at) * height}px`, height: `${height}px` }}>${render(row)}</li>`)}</ol></div>`;
}
