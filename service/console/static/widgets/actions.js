/** What can be done with memories: edit, pin, archive, restore, forget, purge. */

import { Facts, Form, html, listOf, moment, patch, post, usePage, useRef, useState } from "../ui.js";

const PINNED = 1, USUAL = 0.6;

/** The buttons of a memory, or the form that edits it; `isWhole`: on its own page. */
export function Actions({ memory, isWhole = false }) {
  const { act, as_of, may } = usePage();
  const [isEditing, setEditing] = useState(false);
  const buttons = useRef(null);
  const end = useEnding();
  const ids = [memory.id], isPinned = memory.importance === PINNED;
  const change = (values, sentence) => act(() => patch(`/v1/memories/${memory.id}`, values, memory.version), sentence);
  const stop = () => {
    setEditing(false);
    requestAnimationFrame(() => buttons.current?.querySelector("button").focus());
  };
  const save = async ({ content, tags }) => {
    if (await change({ content, tags: listOf(tags) }, "Saved. The earlier text stays in the history.")) stop();
  };
  const pin = () => change({ importance: isPinned ? USUAL : PINNED }, isPinned ? "Unpinned." : "Pinned: of the highest importance.");
  const button = (name, right, run, look = "") => may(right) && html`<button class=${look} onClick=${run}>${name}</button>`;
  if (as_of || memory.version_of) return null;
  if (isEditing) {
    return html`<${Form} action="Save" onSend=${save} onCancel=${stop} fields=${[
      { name: "content", title: "Text of the memory", rows: 3, wide: true, required: true, defaultValue: memory.memory },
      { name: "tags", title: "Tags, separated by commas", wide: true, defaultValue: memory.tags.join(", ") },
    ]} />`;
  }
  if (memory.deleted_at || memory.archived) return button("Restore", "memory:write", () => end.restore(ids));
  return html`<span class="actions" ref=${buttons}>${button("Edit", "memory:write", () => setEditing(true))}
    ${button(isPinned ? "Unpin" : "Pin", "memory:write", pin)}${button("Archive", "memory:write", () => end.archive(ids))}
    ${button("Forget …", "memory:delete", () => end.forget(ids))}${isWhole && button("Purge …", "memory:purge", () => end.purge(ids), "danger")}</span>`;
}

/** Takes memories out of sight, and brings them back. What takes away text asks first, with a preview. */
export function useEnding() {
  const { act, ask, go, scope } = usePage();
  const each = async (ids, verb) => {
    for (const id of ids) await post(`/v1/memories/${id}/${verb}`);
  };
  const undo = (ids) => () => each(ids, "restore");
  const forget = (ids, options = {}) => post("/v1/forget", { ...scope, ids, ...options });
  const preview = async (ids, question) => ({ ...question, body: html`<${Preview} ...${question} ...${await forget(ids, { dry_run: true })} />` });
  const purge = async (ids) => {
    const { receipt } = await forget(ids, { purge: true });
    go("/memories");
    ask({ title: "Purged", body: html`<${Receipt} ...${receipt} />` });
  };
  return {
    restore: (ids) => act(undo(ids), "Restored."),
    archive: (ids) => act(() => each(ids, "archive"), "Archived.", { undo: undo(ids) }),
    forget: (ids) => act(() => forget(ids), "Forgotten.", { question: preview(ids, FORGET), undo: undo(ids) }),
    purge: (ids) => act(() => purge(ids), "", { question: preview(ids, PURGE) }),
  };
}

const FORGET = { title: "Forget this?", action: "Forget", outlook: "The agent no longer gets it. Its history stays, and it can be restored." };
const PURGE = { title: "Purge this?", action: "Purge", word: "purge", outlook: "History, logs, jobs and caches lose it too. Nothing brings it back." };

const Preview = ({ memories, turns, outlook }) => html`<ul>${memories.map((each) => html`<li dir="auto"><del>${each.memory}</del></li>`)}
  ${turns.map((each) => html`<li dir="auto"><del>${each.text}</del> <span class="hint">said in a conversation</span></li>`)}</ul><p>${outlook}</p>`;

const Receipt = ({ counts, note, purged_at, subject_sha256 }) => html`
  <${Facts} facts=${counts} />
  <p class="hint">${note} ${moment(purged_at)}, subject <code>${subject_sha256.slice(0, 16)}…</code></p>`;
