/** Tables, facts, choosing several, and a list that draws only the rows in sight. */

import { Loaded, html, useEffect, useRef, useState } from "../ui.js";

/** The rows of `of` as a table; `columns` has for each title a function from a row to its cell. */
export function Table({ of, label, columns, empty }) {
  return html`<${Loaded} of=${of} empty=${empty}>${(rows) => html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table>
      <thead><tr>${Object.keys(columns).map((title) => html`<th scope="col">${title}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${row.id}>${Object.values(columns).map((cell) => html`<td>${cell(row)}</td>`)}</tr>`)}</tbody></table></div>
    <${More} of=${of} />`}<//>`;
}

export const More = ({ of }) => of.cursor && html`<button onClick=${of.more}>Show more</button>`;

/** Values by their names; those without a value are left out. */
export function Facts({ facts }) {
  return html`<dl>${Object.entries(facts).filter(([, value]) => value || value === 0).map(([name, value]) => html`
    <div><dt>${name}</dt><dd dir="auto">${value}</dd></div>`)}</dl>`;
}

/** Several chosen items, and `box(item, label)` to choose one. */
export function useChosen() {
  const [chosen, setChosen] = useState([]);
  const toggle = (item) => setChosen(chosen.includes(item) ? chosen.filter((each) => each !== item) : [...chosen, item]);
  const box = (item, label) => html`<input type="checkbox" aria-label=${`Select: ${label}`} checked=${chosen.includes(item)} onChange=${() => toggle(item)} />`;
  return { chosen, box, clear: () => setChosen([]) };
}

const SPARE = 8;

/** Rows of one height, in pixels; `onEnd` is called when the last ones come into sight. */
export function VirtualList({ rows, total, height, render, onEnd, label }) {
  const box = useRef(null);
  const [[top, room], setView] = useState([0, innerHeight]);
  useEffect(() => {
    const measure = () => requestAnimationFrame(() => box.current && setView([box.current.scrollTop, box.current.clientHeight]));
    box.current.addEventListener("scroll", measure, { passive: true });
    new ResizeObserver(measure).observe(box.current);
  }, []);
  const first = Math.max(0, Math.floor(top / height) - SPARE);
  const last = Math.min(rows.length, Math.ceil((top + room) / height) + SPARE);
  useEffect(() => void (last > rows.length - SPARE && onEnd()), [last, rows.length]);
  return html`<div class="virtual" ref=${box} tabindex="0" role="region" aria-label=${label}><ol style=${{ height: `${rows.length * height}px` }}>
    ${rows.slice(first, last).map((row, at) => html`<li key=${row.id} aria-setsize=${total} aria-posinset=${first + at + 1}
      style=${{ top: `${(first + at) * height}px`, height: `${height}px` }}>${render(row)}</li>`)}</ol></div>`;
}
