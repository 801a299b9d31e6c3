/** Changes as they happen, jobs, use of the language model, the audit log. */

import {
  act, cards, done, follow, get, html, link, may, moment, percent, plural, post, reload, scopeOf, show, spaced, useEffect, useLoaded, usePages,
  useState,
} from "../ui.js";

const SHOWN = 40, REFRESH_MS = 5_000;

export default function Activity() {
  return html`<div class="columns"><${Feed} /><div>${may("memory:admin") && html`<${Jobs} />`}
    ${may("audit:read") && html`<${Audit} />`}</div></div>`;
}

function Feed() {
  const [changes, setChanges] = useState([]);
  useEffect(() => {
    const controller = new AbortController();
    const add = (some) => setChanges((before) => [...some.reverse(), ...before].slice(0, SHOWN));
    act(() => follow(add, controller.signal));
    return () => controller.abort();
  }, []);
  return html`<section><h2>Changes, live</h2>${show({ value: changes }, (rows) => cards(rows, (each) => html`
    <a class="text" href=${link(`/memory/${each.memory_id}`, scopeOf(each))}>${each.memory?.memory || each.memory_id}</a>
    <small>${done(each.event)} ${each.user_id}, ${moment(each.changed_at)}</small>`), "No changes yet.")}</section>`;
}

function Jobs() {
  const list = usePages("/v1/jobs"), stats = useLoaded(() => get("/v1/stats"));
  useEffect(() => {
    const timer = setInterval(reload, REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  const retry = () => act(() => post("/v1/jobs/retry?state=dead"), "Queued again.");
  return html`<section><h2>Jobs</h2>${show(list, (jobs) => html`${cards(jobs, ({ name, state, progress, ...job }) => html`${spaced(name)}
      <small>${state}, attempt ${job.attempts} of ${job.max_attempts}, due ${moment(job.due_at)}. ${job.reason}
        ${progress && ` ${percent(progress.done / progress.total)} done, ${Math.ceil(progress.eta_s || 0)} s left.`}</small>`)}
    ${jobs.some(({ state }) => state === "dead") && html`<button onClick=${retry}>Retry dead jobs</button>`}`,
  "No jobs wait, run or have failed.")}</section>
  <section><h2>Language model today</h2>${show(stats, ({ model_budget: used }) => (used
    ? html`${plural(used.calls, "call")}, ${plural(used.prompt_tokens + used.completion_tokens, "token")}. Budget: ${used.state}.`
    : "None: rules read the messages."))}</section>`;
}

const Audit = () => html`<section><h2>Audit log</h2>${show(usePages("/v1/audit"), (rows) => cards(rows, (each) => html`
  ${spaced(each.operation)} ${each.user_id}
  <small>${plural(each.affected_ids.length, "row")}, ${moment(each.recorded_at)}</small>`), "Nothing is recorded.")}</section>`;
