/** The frame of all views: sign-in, navigation, messages, and which view an address shows. */

import {
  Loaded, Messages, Page, Question, address, endOf, get, html, key, readAddress, render, scopeOf, useEffect,
  useLayoutEffect, useLoaded, useRef, useState,
} from "./ui.js";
import { ScopePicker } from "./widgets/scope.js";

const ICON = import.meta.resolve("./icon.svg");
const MESSAGE_MS = 8_000;

/** The views of the navigation. An address begins with the name of a view, which is a file in `views`. */
const VIEWS = ["memories", "ask", "conversations", "timeline", "graph", "reviews", "health", "activity", "keys"];
const DETAILS = { memory: "memories", conversation: "conversations" }; // a view of one thing, and where it is listed
const RIGHTS = { health: "memory:admin", keys: "admin" }; // the others need memory:read
const UNSCOPED = ["health", "activity", "keys"]; // do not ask whose memories they show

function App() {
  const [at, setAt] = useState(readAddress());
  const [caller, setCaller] = useState(/** @type {any} */ (undefined));
  const [messages, setMessages] = useState([]);
  const [question, setQuestion] = useState(null);
  const heading = useRef(null);

  const dismiss = (id) => setMessages((all) => all.filter((each) => each.id !== id));
  const say = (text, options = {}) => {
    const id = performance.now();
    setMessages((all) => [...all.slice(-2), { id, text, ...options }]);
    if (!options.isError) setTimeout(() => dismiss(id), MESSAGE_MS);
  };
  const signOut = (reason = "") => {
    key.forget();
    setCaller(null);
    setMessages([]);
    if (reason) say(reason, { isError: true });
  };
  const signIn = () => (key.get() ? get("/v1/whoami").then(setCaller, (error) => signOut(error.message)) : setCaller(null));
  /** Does `work`, then says the sentence with an undo if there is one, or why it was refused; returns whether it succeeded. */
  const act = async (work, sentence = "", undo = undefined) => {
    try {
      if (await work() === false) return false;
      if (sentence) say(sentence, { undo: undo && (() => act(undo, "Undone.")) });
      return true;
    } catch (error) {
      if (error.status === 401) signOut(error.message);
      else say(error.message + (error.requestId ? ` Request ${error.requestId}.` : ""), { isError: true });
      return false;
    }
  };
  const ask = (asked) => new Promise((resolve) => {
    setQuestion({ ...asked, done: (isYes) => { setQuestion(null); resolve(isYes); } });
  });

  useLayoutEffect(() => {
    addEventListener("hashchange", () => (takeKey() ? location.reload() : setAt(readAddress())));
    signIn();
  }, []);
  const [, given, id] = at.path.split("/");
  const name = VIEWS.includes(given) || DETAILS[given] ? given : VIEWS[0];
  useEffect(() => {
    document.title = `${titled(name)} · Loxodon`;
    heading.current?.focus();
  }, [at.path, caller]);

  if (caller === undefined) return null;
  const foot = html`<${Messages} messages=${messages} dismiss=${dismiss} />${question && html`<${Question} ...${question} />`}`;
  if (!caller) return html`<main class="sign-in"><h1><img src=${ICON} alt="" width="40" height="40" /> Loxodon</h1><${View} name="sign_in" onKey=${signIn} /></main>${foot}`;

  const isScoped = !UNSCOPED.includes(name), right = RIGHTS[name] || "memory:read";
  const may = (wanted) => caller.rights.includes(wanted);
  const scope = scopeOf({ ...scopeOf(caller.defaults), ...at.query, ...scopeOf(caller) });
  const link = (to, query) => address(to, { ...scope, as_of: at.query.as_of, ...query });
  const go = (to, query) => { location.hash = link(to, query); };
  const page = {
    ...at, id, caller, may, scope, as_of: endOf(at.query.as_of), ask, act, link, go,
    change: (query) => go(at.path, { ...at.query, ...query }),
  };
  const isNamed = !isScoped || scope.user_id || scope.agent_id || scope.run_id;
  return html`<${Page.Provider} value=${page}>
    <header><a class="brand" href=${link("/memories")}><img src=${ICON} alt="" width="28" height="28" /> Loxodon</a>
      <nav aria-label="Views">${VIEWS.filter((each) => may(RIGHTS[each] || "memory:read")).map((each) => html`
        <a href=${link(`/${each}`)} aria-current=${[name, DETAILS[name]].includes(each) && "page"}>${titled(each)}</a>`)}</nav>
      <button class="quiet" onClick=${() => signOut()}>Sign out</button></header>
    <main><div class="title"><h1 tabindex="-1" ref=${heading}>${titled(name)}</h1>${isScoped && html`<${ScopePicker} />`}</div>
      ${!may(right) ? html`<p class="box">This key lacks the right ${right}.</p>`
        : isNamed ? html`<${View} key=${at.path} name=${name} />`
          : html`<p class="box">Name a user, an agent or a run above, to see or to store memories.</p>`}</main>${foot}<//>`;
}

const titled = (name) => name[0].toUpperCase() + name.slice(1);

/** A view, whose file is loaded when it is first shown. */
function View({ name, ...properties }) {
  const loaded = useLoaded(() => import(`./views/${name}.js`));
  return html`<${Loaded} of=${loaded}>${(file) => html`<${file.default} ...${properties} />`}<//>`;
}

/** Takes the key out of an address that ends in `#key=lox_…`, and that address out of the history. */
function takeKey() {
  const given = location.hash.startsWith("#key=") && decodeURIComponent(location.hash.slice(5));
  if (given) key.set(given);
  if (given || !location.hash) history.replaceState(null, "", location.pathname + address("/memories"));
  return given;
}

takeKey();
render(html`<${App} />`, document.getElementById("app"));
