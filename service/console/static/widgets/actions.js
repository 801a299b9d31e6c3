/** What can be done with memories: edit, pin, archive, restore, forget, purge. */

import { Facts, Form, html, listOf, moment, patch, post, spaced, useEffect, usePage, useRef, useState } from "../ui.js";

const PINNED = 1, USUAL = 0.6;

/** The buttons of a memory, or the form that edits it. `onChange` receives the memory where it stays; `isWhole`: on its own page. */
export function Actions({ memory, onChange, isWhole = false }) {
  const { act, as_of, may } = usePage();
  const [isEditing, setEditing] = useState(false);
  const buttons = useRef(null);
  const end = useEnding(onChange);
  const change = (values, sentence) => act(async () => {
    onChange(await patch(`/v1/memories/${memory.id}`, values, memory.version));
    if (isEditing) stop();
  }, sentence);
  const stop = () => {
    setEditing(false);
    requestAnimationFrame(() => buttons.current?.querySelector("button").focus());
  };
  const button = (name, right, run, look = isWhole ? "" : "quiet") => may(right) && html`<button class=${look} onClick=${run}>${name}</button>`;
  if (as_of || memory.version_of) return null;
  if (isEditing) return html`<${Edit} memory=${memory} onSave=${change} onCancel=${stop} />`;
  if (memory.deleted_at || memory.archived) return button("Restore", "memory:write", () => act(() => end.restore([memory.id]), "Restored."));
  const isPinned = memory.importance === PINNED;
  const pin = () => change({ importance: isPinned ? USUAL : PINNED }, isPinned ? "Unpinned." : "Pinned: of the highest importance.");
  return html`<span class="actions" ref=${buttons}>${button("Edit", "memory:write", () => setEditing(true))}${button(isPinned ? "Unpin" : "Pin", "memory:write", pin)}
    ${button("Archive", "memory:write", () => end.archive([memory.id]))}${button("Forget …", "memory:delete", () => end.forget([memory.id]))}
    ${isWhole && button("Purge …", "memory:purge", () => end.purge([memory.id]), "danger")}</span>`;
}

function Edit({ memory, onSave, onCancel }) {
  const box = useRef(null);
  useEffect(() => box.current.querySelector("textarea").focus(), []);
  const save = ({ content, tags }) => onSave({ content, tags: listOf(tags) }, "Saved. The earlier text stays in the history.");
  const fields = [
    { name: "content", title: "Text of the memory", rows: 3, required: true, defaultValue: memory.memory },
    { name: "tags", title: "Tags, separated by commas", wide: true, defaultValue: memory.tags.join(", ") },
  ];
  return html`<div class="edit" ref=${box} onKeyDown=${(event) => event.key === "Escape" && onCancel()}>
    <${Form} label="Edit" action="Save" onSend=${save} fields=${fields}><button type="button" onClick=${onCancel}>Cancel</button><//></div>`;
}

/** Takes memories out of sight, and brings them back; calls `onDone` after each. What takes away text asks first, with a preview. */
export function useEnding(onDone) {
  const { act, ask, go, scope } = usePage();
  const each = async (ids, verb) => {
    for (const id of ids) await post(`/v1/memories/${id}/${verb}`);
    onDone();
  };
  const restore = (ids) => each(ids, "restore");
  const forget = async (ids, question, purge) => {
    const request = { ...scope, ids }, plan = await post("/v1/forget", { ...request, dry_run: true });
    if (!await ask({ ...question, body: html`<${Preview} plan=${plan} /><p>${question.outlook}</p>` })) return false;
    const { receipt } = await post("/v1/forget", { ...request, purge });
    if (purge) go("/memories");
    else onDone();
    if (receipt) ask({ title: "Purged", body: html`<${Receipt} receipt=${receipt} />` });
    return !purge;
  };
  return {
    restore,
    archive: (ids) => act(() => each(ids, "archive"), "Archived.", () => restore(ids)),
    forget: (ids) => act(() => forget(ids, FORGET, false), "Forgotten.", () => restore(ids)),
    purge: (ids) => act(() => forget(ids, PURGE, true)),
  };
}

const FORGET = { title: "Forget this?", action: "Forget", outlook: "The agent no longer gets it. Its history stays, and it can be restored." };
const PURGE = { title: "Purge this?", action: "Purge", word: "purge", outlook: "History, logs, jobs and caches lose it too. Nothing brings it back." };

const Preview = ({ plan }) => html`<p>${plan.explanation}</p><ul>
  ${plan.memories.map((each) => html`<li dir="auto"><del>${each.memory}</del></li>`)}
  ${plan.turns.map((each) => html`<li dir="auto"><del>${each.text}</del> <span class="hint">said in a conversation</span></li>`)}</ul>`;

/** What a purge counted. */
const Receipt = ({ receipt }) => html`<${Facts} facts=${Object.fromEntries(Object.entries(receipt.counts).map(([name, number]) => [spaced(name), number || ""]))} />
  <p class="hint">${receipt.note} ${moment(receipt.purged_at)}, subject <code>${receipt.subject_sha256.slice(0, 16)}…</code></p>`;
