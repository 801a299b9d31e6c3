/** Cards, facts, choosing several, and a list that draws only the rows in sight. */

import { html, spaced, useEffect, useState } from "../ui.js";

/** A card for each row; the one with the id `current` is marked. */
export const cards = (rows, render, current = "") => html`<ol class="cards">${rows.map((row) => html`
  <li key=${row.id} id=${row.id} aria-current=${row.id === current}>${render(row)}</li>`)}</ol>`;

/** Values by their names, without the empty ones. */
export const facts = (values) => html`<dl>${Object.entries(values).filter(([, value]) => value).map(([name, value]) => html`
  <div><dt>${spaced(name)}</dt><dd>${value}</dd></div>`)}</dl>`;

/** The chosen ones of the rows, and `box(row, text)` to choose one. */
export function useChosen(rows = []) {
  const [ids, setIds] = useState([]);
  const toggle = (id) => setIds(ids.includes(id) ? ids.filter((each) => each !== id) : [...ids, id]);
  const box = ({ id }, text) => html`<input type="checkbox" aria-label=${`Select: ${text}`.slice(0, 60)}
    checked=${ids.includes(id)} onChange=${() => toggle(id)} />`;
  return { chosen: rows.filter(({ id }) => ids.includes(id)), box };
}

const SPARE = 8;

/** Rows of one height in pixels; `onEnd` is called when the last ones come into sight. */
export function VirtualList({ rows, total, height, render, onEnd }) {
  const [top, setTop] = useState(0);
  const first = Math.max(0, Math.floor(top / height) - SPARE);
  const last = Math.min(rows.length, Math.ceil((top + innerHeight) / height) + SPARE);
  useEffect(() => void (last > rows.length - SPARE && onEnd()), [last, rows.length]);
  return html`<div class="virtual" tabindex="0" role="region" aria-label="Rows" onScroll=${({ target }) => setTop(target.scrollTop)}>
    <ol style=${{ height: `${rows.length * height}px` }}>${rows.slice(first, last).map((row, at) => html`
      <li key=${row.id} aria-setsize=${total} aria-posinset=${first + at + 1}
        style=${{ top: `${(first + at) * height}px`, height: `${height}px` }}>${render(row)}</li>`)}</ol></div>`;
}
