/** The frame of all views: sign-in, navigation, messages, and which view an address shows. */

import { Page, address, endOf, get, html, key, readAddress, render, scopeOf, useEffect, useRef, useState } from "./ui.js";
import { Activity } from "./views/activity.js";
import { Ask } from "./views/ask.js";
import { Conversation, Conversations } from "./views/conversations.js";
import { Graph } from "./views/graph.js";
import { Health } from "./views/health.js";
import { Keys } from "./views/keys.js";
import { Memories } from "./views/memories.js";
import { Memory } from "./views/memory.js";
import { Reviews } from "./views/reviews.js";
import { SignIn } from "./views/sign_in.js";
import { Timeline } from "./views/timeline.js";
import { Messages, Question } from "./widgets/dialog.js";
import { ScopePicker } from "./widgets/scope.js";

const MESSAGE_MS = 8_000;

/** Address, title, view, and the right that its key needs. */
const VIEWS = /** @type {[string, string, any, string][]} */ ([
  ["/memories", "Memories", Memories, "memory:read"],
  ["/ask", "Ask", Ask, "memory:read"],
  ["/conversations", "Conversations", Conversations, "memory:read"],
  ["/timeline", "Timeline", Timeline, "memory:read"],
  ["/graph", "Graph", Graph, "memory:read"],
  ["/reviews", "Reviews", Reviews, "memory:read"],
  ["/health", "Health", Health, "memory:admin"],
  ["/activity", "Activity", Activity, "memory:read"],
  ["/keys", "Keys", Keys, "admin"],
  ["/memory/", "Memory", Memory, "memory:read"],
  ["/conversation/", "Conversation", Conversation, "memory:read"],
]);
const SCOPED = [...VIEWS.slice(0, 6), ...VIEWS.slice(-2)], DETAILS = VIEWS.slice(-2); // show somebody's memories; are not in the navigation
const PARENTS = { "/memory/": "/memories", "/conversation/": "/conversations" };

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
  /** Returns whether `work` succeeded; says the sentence, with an undo if there is one, or why it was refused. */
  const act = async (work, sentence = "", undo = undefined) => {
    try {
      await work();
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

  const current = VIEWS.find(([each]) => at.path.startsWith(each)) || VIEWS[0];
  const [path, title, View, right] = current;
  useEffect(() => {
    addEventListener("hashchange", () => (takeKey() ? location.reload() : setAt(readAddress())));
    signIn();
  }, []);
  useEffect(() => {
    document.title = `${title} · Loxodon`;
    heading.current?.focus();
  }, [at.path, caller]);

  if (caller === undefined) return null;
  const foot = html`<${Messages} messages=${messages} dismiss=${dismiss} />${question && html`<${Question} ...${question} />`}`;
  if (!caller) return html`<${SignIn} onKey=${signIn} />${foot}`;

  const isScoped = SCOPED.includes(current);
  const may = (wanted) => caller.rights.includes(wanted);
  const scope = scopeOf({ ...scopeOf(caller.defaults), ...at.query, ...scopeOf(caller) });
  const link = (to, query) => address(to, { ...scope, as_of: at.query.as_of, ...query });
  const go = (to, query) => { location.hash = link(to, query); };
  const page = {
    ...at, id: at.path.slice(path.length), caller, may, scope, as_of: endOf(at.query.as_of), ask, act, link, go,
    change: (query) => go(at.path, { ...at.query, ...query }),
  };
  const isNamed = !isScoped || scope.user_id || scope.agent_id || scope.run_id;
  const skip = (event) => { event.preventDefault(); heading.current.focus(); };
  return html`<${Page.Provider} value=${page}><a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    <header><a class="brand" href=${link("/memories")}><img src="/console/icon.svg" alt="" width="28" height="28" /> Loxodon</a>
      <nav aria-label="Views">${VIEWS.filter((each) => !DETAILS.includes(each) && may(each[3])).map(([to, name]) => html`
        <a href=${link(to)} aria-current=${[path, PARENTS[path]].includes(to) && "page"}>${name}</a>`)}</nav>
      <button class="quiet" onClick=${() => signOut()}>Sign out</button></header>
    <main id="main"><div class="title"><h1 tabindex="-1" ref=${heading}>${title}</h1>${isScoped && html`<${ScopePicker} />`}</div>
      ${!may(right) ? html`<p class="box">This key lacks the right ${right}.</p>` : isNamed ? html`<${View} key=${at.path} />`
        : html`<p class="box">Name a user, an agent or a run above, to see or to store memories.</p>`}</main>${foot}<//>`;
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
