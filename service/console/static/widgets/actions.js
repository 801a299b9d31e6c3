/** What can be done with memories. */

import { Form, act, ask, facts, go, html, listOf, may, moment, page, patch, post, useRef, useState } from "../ui.js";

/** The buttons of a memory, or the form that edits it. */
export function Actions({ memory, isWhole }) {
  const [isEditing, setEditing] = useState(false);
  const buttons = useRef(null);
  const end = endings([memory]);
  const [pin, importance] = memory.importance === 1 ? ["Unpin", 0.6] : ["Pin", 1];
  const change = (values, sentence = "") => act(() => patch(`/v1/memories/${memory.id}`, values, memory.version), sentence);
  const stop = () => {
    setEditing(false);
    requestAnimationFrame(() => buttons.current?.querySelector("button").focus());
  };
  const save = async ({ content, tags }) => {
    if (await change({ content, tags: listOf(tags) }, "Saved.")) stop();
  };
  const button = (name, right, run, look = "") => may(`memory:${right}`) && html`<button class=${look} onClick=${run}>${name}</button>`;
  if (page.as_of || memory.version_of) return null;
  if (isEditing) {
    return html`<${Form} action="Save" onSend=${save} onCancel=${stop} fields=${[
      { name: "content", title: "Text of the memory", rows: 3, required: true, defaultValue: memory.memory },
      { name: "tags", title: "Tags, separated by commas", defaultValue: memory.tags.join(", ") },
    ]} />`;
  }
  if (memory.deleted_at || memory.archived) return button("Restore", "write", end.restore);
  return html`<span class="actions" ref=${buttons}>${button("Edit", "write", () => setEditing(true))}
    ${button(pin, "write", () => change({ importance }))}${button("Archive", "write", end.archive)}${button("Forget …", "delete", end.forget)}
    ${isWhole && button("Purge …", "purge", end.purge, "danger")}</span>`;
}

/** Takes memories away, and brings them back. Shows first which texts go. */
export function endings(memories) {
  const ids = memories.map(({ id }) => id);
  const each = (verb) => async () => {
    for (const id of ids) await post(`/v1/memories/${id}/${verb}`);
  };
  const undo = each("restore");
  const forget = (options = {}) => post("/v1/forget", { ...page.scope, ids, ...options });
  const preview = async (action, outlook, word = "") => {
    const gone = await forget({ dry_run: true });
    return { title: `${action} this?`, action, word, body: html`<ul>${gone.memories.map(({ memory }) => html`<li><del>${memory}</del></li>`)}
      ${gone.turns.map(({ text }) => html`<li><del>${text}</del> (said in a conversation)</li>`)}</ul><p>${outlook}</p>` };
  };
  const purge = async () => {
    const { receipt } = await forget({ purge: true });
    go("/memories");
    ask({ title: "Purged", body: html`${facts(receipt.counts)}
      <small>${receipt.note} ${moment(receipt.purged_at)}, subject <code>${receipt.subject_sha256.slice(0, 16)}…</code></small>` });
  };
  return {
    restore: () => act(undo, "Restored."),
    archive: () => act(each("archive"), "Archived.", { undo }),
    forget: () => act(forget, "Forgotten.", {
      question: preview("Forget", "Agents no longer get it. Restore it under State: Deleted. Purge, on its page, erases it."), undo,
    }),
    purge: () => act(purge, "", {
      question: preview("Purge", "History, logs and caches lose it too. Nothing brings it back.", "purge"),
    }),
  };
}
