/** What goes on: changes as they happen, jobs, use of the language model, the audit log. */

import {
  Facts, Table, cards, follow, get, html, moment, percent, plural, post, scopeOf, shorten, show, spaced, useEffect, useLoaded,
  usePage, usePages, useState,
} from "../ui.js";

const SHOWN = 40, REFRESH_MS = 5_000;

export default function Activity({ may }) {
  return html`<div class="columns"><${Feed} /><div>${may("memory:admin") && html`<${Jobs} /><${Budget} />`}${may("audit:read") && html`<${Audit} />`}</div></div>`;
}

function Feed() {
  const { act, link } = usePage();
  const [changes, setChanges] = useState([]);
  useEffect(() => {
    const controller = new AbortController();
    const add = (some) => setChanges((before) => [...some.reverse(), ...before].slice(0, SHOWN));
    act(() => follow(add, controller.signal).catch((error) => {
      if (!controller.signal.aborted) throw error;
      return false;
    }));
    return () => controller.abort();
  }, []);
  return html`<section><h2>Changes, live</h2>${changes.length === 0 && html`<p class="hint">No changes yet.</p>`}
    ${cards(changes, (each) => html`<span class="chip">${each.event.replace("memory.", "")}</span>
      ${" "}<a dir="auto" href=${link(`/memory/${each.memory_id}`, scopeOf(each))}>${shorten(each.memory?.memory || each.memory_id, 140)}</a>
      ${" "}<span class="hint">${each.user_id} ${moment(each.changed_at)}</span>`)}</section>`;
}

function Jobs() {
  const { act } = usePage();
  const list = usePages("/v1/jobs", { limit: SHOWN });
  useEffect(() => {
    const timer = setInterval(list.reload, REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  const retry = () => act(() => post("/v1/jobs/retry?state=dead"), "Queued again.");
  return html`<section><h2>Jobs</h2><${Table} of=${list} label="Jobs" empty="No job waits, runs or has failed." columns=${{
      Job: (job) => spaced(job.name),
      State: (job) => html`<span title=${job.reason}>${job.state}, attempt ${job.attempts} of ${job.max_attempts}</span>`,
      Progress: ({ progress }) => progress && `${percent(progress.done / progress.total)}, ${Math.ceil(progress.eta_s || 0)} s left`,
      Due: (job) => moment(job.due_at),
    }} />${list.value?.some((job) => job.state === "dead") && html`<button onClick=${retry}>Retry dead jobs</button>`}</section>`;
}

function Budget() {
  const loaded = useLoaded(() => get("/v1/stats"));
  return html`<section><h2>Language model today</h2>${show(loaded, ({ model_budget: used }) => (used
    ? html`<${Facts} facts=${{ calls: String(used.calls), tokens: String(used.prompt_tokens + used.completion_tokens), budget: used.state }} />`
    : html`<p class="hint">None is used: rules read the messages.</p>`))}</section>`;
}

const Audit = () => html`<section><h2>Audit log</h2><${Table} of=${usePages("/v1/audit", { limit: SHOWN })} label="Audit log" empty="Nothing is recorded." columns=${{
  When: (each) => moment(each.recorded_at), What: (each) => spaced(each.operation) + (each.success ? "" : " (failed)"),
  Whose: (each) => each.user_id, Touched: (each) => plural(each.affected_ids.length, "row"),
}} /></section>`;
