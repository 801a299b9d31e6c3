/** The frame of all views: sign-in, navigation, messages. */

import {
  Form, KEY, Question, ScopePicker, act, get, html, link, may, page, readAddress, render, scopeOf, show, signOut, update, useEffect,
  useLoaded, useRef,
} from "./ui.js";

/** Addresses begin with one of them; each is a file in `views`. */
const VIEWS = ["memories", "ask", "conversations", "timeline", "graph", "reviews", "cleanup", "activity", "keys"];
const DETAILS = { memory: "memories", conversation: "conversations" }; // and where they are listed
const WHOLE = { cleanup: "memory:admin", activity: "memory:read", keys: "admin" }; // of the whole workspace, and the right they need
const KEY_FIELD = { name: "given", title: "API key or token", type: "password", required: true };

function App() {
  const { caller, message, question } = page;
  const { path, query: asked } = readAddress();
  const [, given, id] = path.split("/");
  const name = VIEWS.includes(given) || DETAILS[given] ? given : VIEWS[0];
  const heading = useRef(null);
  useEffect(() => {
    document.title = `${titled(name)} · Loxodon`;
    heading.current?.focus();
  }, [path, caller]);

  const foot = html`<div class="messages" role="status">
    ${message && html`<div class=${`box ${message.isError ? "error" : ""}`}>${message.text}
      ${message.undo && html`<button onClick=${message.undo}>Undo</button>`}
      <button aria-label="Dismiss" onClick=${() => update({ message: null })}>×</button></div>`}</div>
    ${question && html`<${Question} ...${question} />`}`;
  if (caller === undefined) return foot;
  if (!caller) return html`<main class="sign-in"><h1 class="brand">Loxodon</h1>
    <p>What your agents remember, why, and what they believed before.</p>
    <${Form} fields=${[KEY_FIELD]} action="Sign in" onSend=${({ given }) => { location.hash = `key=${encodeURIComponent(given)}`; }} />
    <small>It stays in this tab. <code>make run</code> prints an address that signs you in.</small></main>${foot}`;

  const query = { ...scopeOf(caller.defaults), ...asked, ...scopeOf(caller) }, scope = scopeOf(query);
  const owner = scope.user_id || scope.agent_id || scope.run_id;
  Object.assign(page, { id, query, scope, owner, as_of: query.as_of });
  return html`
    <header><b class="brand">Loxodon</b>
      <nav>${VIEWS.filter((view) => may(WHOLE[view] || "memory:read")).map((view) => html`
        <a href=${link(`/${view}`)} aria-current=${[name, DETAILS[name]].includes(view) && "page"}>${titled(view)}</a>`)}</nav>
      <button class="quiet" onClick=${() => signOut()}>Sign out</button></header>
    <main><div class="title"><h1 tabindex="-1" ref=${heading}>${titled(name)}</h1>${!WHOLE[name] && html`<${ScopePicker} />`}</div>
      ${owner || WHOLE[name] ? html`<${View} key=${path} name=${name} />` : html`<p class="box">Name a user, an agent or a run above.</p>`}
    </main>${foot}`;
}

const titled = (name) => name[0].toUpperCase() + name.slice(1);

/** A view, which receives the page; loaded when first shown. */
function View({ name }) {
  return show(useLoaded(() => import(`./views/${name}.js`)), ({ default: Shown }) => html`<${Shown} ...${page} />`);
}

/** Takes the key out of an address that ends in `#key=lox_…`, and out of the history. */
function takeKey() {
  const given = location.hash.startsWith("#key=") && decodeURIComponent(location.hash.slice(5));
  if (given) sessionStorage.setItem(KEY, given);
  if (given || !location.hash) history.replaceState(null, "", `${location.pathname}#/memories`);
  return given;
}

takeKey();
addEventListener("hashchange", () => {
  if (takeKey()) location.reload();
  update({ message: null });
});
page.draw = () => render(html`<${App} />`, document.getElementById("app"));
act(async () => update({ caller: sessionStorage.getItem(KEY) ? await get("/v1/whoami") : null }));
