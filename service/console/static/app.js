/** The frame of all views: sign-in, navigation, messages, and which view an address shows. */

import {
  Form, KEY, Message, Page, Question, ScopePicker, address, endOf, get, html, readAddress, render, scopeOf, show, useEffect,
  useLayoutEffect, useLoaded, useRef, useState,
} from "./ui.js";

const ICON = import.meta.resolve("./icon.svg");

/** The views of the navigation. An address begins with the name of a view, which is a file in `views`. */
const VIEWS = ["memories", "ask", "conversations", "timeline", "graph", "reviews", "health", "activity", "keys"];
const DETAILS = { memory: "memories", conversation: "conversations" }; // a view of one thing, and where it is listed
const RIGHTS = { health: "memory:admin", keys: "admin" }; // the others need memory:read
const UNSCOPED = ["health", "activity", "keys"]; // do not ask whose memories they show

function App() {
  const [at, setAt] = useState(readAddress());
  const [caller, setCaller] = useState(); // null: signed out
  const [message, setMessage] = useState(null);
  const [question, setQuestion] = useState(null);
  const [round, setRound] = useState(0); // whatever is shown is loaded again when it changes
  const heading = useRef(null);
  const reload = () => setRound((now) => now + 1);

  const signOut = (reason = null) => {
    sessionStorage.clear();
    setCaller(null);
    setMessage(reason);
  };
  const ask = (asked) => new Promise((resolve) => {
    setQuestion({ ...asked, done: (isYes) => { setQuestion(null); resolve(isYes); } });
  });
  const say = (text, undo = undefined) => setMessage({ text, undo });
  /** Does `work` once `question` is answered, and loads what is shown again unless it returns false; says the sentence, or why it was refused. */
  const act = async (work, sentence = "", { question: asked, undo } = /** @type {any} */ ({})) => {
    const { href } = location;
    try {
      if (asked && !await ask(await asked)) return false;
      if (await work() === false) return false;
      if (sentence) say(sentence, undo && (() => act(undo, "Undone.")));
      if (location.href === href) reload();
      return true;
    } catch (error) {
      (error.status === 401 ? signOut : setMessage)({ text: error.message, isError: true });
      return false;
    }
  };

  useLayoutEffect(() => {
    addEventListener("hashchange", () => {
      if (takeKey()) location.reload();
      setAt(readAddress());
      setMessage(null);
    });
    act(async () => setCaller(sessionStorage.getItem(KEY) ? await get("/v1/whoami") : null));
  }, []);
  const [, given, id] = at.path.split("/");
  const name = VIEWS.includes(given) || DETAILS[given] ? given : VIEWS[0];
  useEffect(() => {
    document.title = `${titled(name)} · Loxodon`;
    heading.current?.focus();
  }, [at.path, caller]);

  const foot = html`<div class="messages" role="status">${message && html`<${Message} ...${message} dismiss=${() => setMessage(null)} />`}</div>
    ${question && html`<${Question} ...${question} />`}`;
  if (caller === undefined) return foot;
  if (!caller) return html`<main class="sign-in"><h1><img src=${ICON} alt="" width="40" height="40" /> Loxodon</h1><${SignIn} /></main>${foot}`;

  const may = (right) => caller.rights.includes(right);
  const scope = scopeOf({ ...scopeOf(caller.defaults), ...at.query, ...scopeOf(caller) });
  const link = (to, query) => address(to, { ...scope, as_of: at.query.as_of, ...query });
  const go = (to, query) => { location.hash = link(to, query); };
  const change = (query) => go(at.path, { ...at.query, ...query });
  const as_of = endOf(at.query.as_of), valid_at = at.query.valid_at && `${at.query.valid_at}T12:00:00Z`;
  const page = { ...at, id, caller, may, scope, as_of, valid_at, round, reload, ask, say, act, link, go, change };
  const isScoped = !UNSCOPED.includes(name);
  const isNamed = !isScoped || scope.user_id || scope.agent_id || scope.run_id;
  return html`<${Page.Provider} value=${page}>
    <header><b class="brand"><img src=${ICON} alt="" width="28" height="28" /> Loxodon</b>
      <nav aria-label="Views">${VIEWS.filter((view) => may(RIGHTS[view] || "memory:read")).map((view) => html`
        <a href=${link(`/${view}`)} aria-current=${[name, DETAILS[name]].includes(view) && "page"}>${titled(view)}</a>`)}</nav>
      <button class="quiet" onClick=${() => signOut()}>Sign out</button></header>
    <main><div class="title"><h1 tabindex="-1" ref=${heading}>${titled(name)}</h1>${isScoped && html`<${ScopePicker} />`}</div>
      ${isNamed ? html`<${View} key=${at.path} name=${name} ...${page} />`
        : html`<p class="box">Name a user, an agent or a run above, to see or to store memories.</p>`}</main>${foot}<//>`;
}

const titled = (name) => name[0].toUpperCase() + name.slice(1);

/** A view, which receives the page. Its file is loaded when it is first shown. */
function View({ name, ...page }) {
  const file = useLoaded(() => import(`./views/${name}.js`));
  return show(file, ({ default: Shown }) => html`<${Shown} ...${page} />`);
}

const SignIn = () => html`<p>See what your agents remember, why they believe it, and what they believed before.</p>
  <${Form} fields=${[{ name: "given", title: "API key or token", type: "password", required: true, wide: true }]} action="Sign in"
    onSend=${({ given }) => { location.hash = `key=${encodeURIComponent(given)}`; }} />
  <p class="hint">The key stays in this tab. <code>make run</code> prints an address that signs you in.</p>`;

/** Takes the key out of an address that ends in `#key=lox_…`, and that address out of the history. */
function takeKey() {
  const given = location.hash.startsWith("#key=") && decodeURIComponent(location.hash.slice(5));
  if (given) sessionStorage.setItem(KEY, given);
  if (given || !location.hash) history.replaceState(null, "", location.pathname + address("/memories"));
  return given;
}

takeKey();
render(html`<${App} />`, document.getElementById("app"));
