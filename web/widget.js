// @ts-check
// <agent-cycle-fsm-widget run="…"> shows the part of its cycle that a run is in, what may come next,
// what was before, and its open questions. Any page may use it: one script tag with this module. A
// page of another origin that the person named sets `moduleApi = cycleApi({ server, run, token })`,
// or an object of its own with `state`, `subscribe`, `approve` and `reject`.
// The server draws the first content, which is an ordinary list wherever scripts are off.

/** Milliseconds between two looks where no stream can be followed. */
const LOOKS = 3000;
/** Number of stretches of time that are listed. */
const LISTED = 8;

/**
 * @typedef {{run: string, question: string, sentence: string, reasons: string[], details: string[], asks_words: boolean, items?: string[]}} Card
 * @typedef {{phase: string, cycle: number, seq: number, from_ms: number, took_ms?: number, event?: string, text?: string}} Span
 * @typedef {{run: string, name: string, goal: string, state: string, phase: string, phases: {name: string, words: string}[], next?: {event: string, phase: string}[], history: Span[], questions: Card[]}} Cycle
 * @typedef {{state: () => Promise<Cycle>, subscribe: (changed: () => void) => () => void, approve: (card: Card, words?: string) => Promise<boolean>, reject: (card: Card, words?: string) => Promise<boolean>}} ModuleApi
 */

/**
 * The cycle of a run at a server; without `server` and `token` at that of this page.
 * @param {{run: string, server?: string, token?: string}} options
 * @returns {ModuleApi}
 */
export function cycleApi({ run, server = "", token = "" }) {
  /** @type {Record<string, string>} */
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const from = `${server}/api/runs/`;
  /** @param {Card} card @param {object} body */
  const answer = async (card, body) => {
    const told = await fetch(`${from}${card.run}/questions/${card.question}/answer`, {
      method: "POST",
      headers: { ...headers, "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    return told.ok;
  };
  return {
    async state() {
      const told = await fetch(`${from}${run}/cycle`, { headers });
      if (!told.ok) throw new Error(`the cycle of ${run} is not told: ${told.status}`);
      return told.json();
    },
    subscribe(changed) {
      if (server || token) {
        const timer = setInterval(changed, LOOKS);
        return () => clearInterval(timer);
      }
      let leave = () => {};
      let isOver = false;
      void import("./positions.js").then(({ follow }) => {
        if (isOver) return;
        leave = follow(({ isLive, changed: positions }) => {
          if (isLive && (positions.length === 0 || positions.some((one) => one.run === run))) changed();
        });
      });
      return () => {
        isOver = true;
        leave();
      };
    },
    approve: (card, words) => answer(card, { approve: true, words: words || null }),
    reject: (card, words) => answer(card, { approve: false, words: words || null }),
  };
}

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
:host { display: block; --own: var(--thought, #0b62b0); color: var(--ink, CanvasText); font: 15px/1.5 var(--sans, system-ui, sans-serif); }
:host([hidden]) { display: none; }
* { box-sizing: border-box; }
p, ol { margin: 0; padding: 0; }
a { color: inherit; }
:focus-visible { outline: 2px solid var(--own); outline-offset: 2px; }
.cycle { display: grid; grid-template-columns: 10.5rem minmax(0, 1fr) minmax(13rem, 17rem); gap: .4rem 1.6rem; align-items: center; }
.ring { list-style: none; position: relative; height: 8.6rem; width: 10.5rem; }
.ring::before { content: ""; position: absolute; inset: 1.1rem 2rem; border: 1.5px solid var(--line, #bbb); border-radius: 50%; }
.ring li { position: absolute; left: 50%; top: 50%; width: 4.6rem; margin: -.72rem -2.3rem; text-align: center; font-size: .78rem; line-height: 1.44rem; color: var(--soft, GrayText); }
.ring li { background: var(--paper, Canvas); border-radius: 1rem; }
.ring li:nth-child(1) { transform: translate(0, -3.2rem); }
.ring li:nth-child(2) { transform: translate(2.95rem, -1.6rem); }
.ring li:nth-child(3) { transform: translate(2.95rem, 1.6rem); }
.ring li:nth-child(4) { transform: translate(0, 3.2rem); }
.ring li:nth-child(5) { transform: translate(-2.95rem, 1.6rem); }
.ring li:nth-child(6) { transform: translate(-2.95rem, -1.6rem); }
.ring li[aria-current] { background: var(--own); color: var(--paper, Canvas); font-weight: 650; }
[data-phase="ask"] .ring li[aria-current] { background: var(--ask, #87409c); }
.now b { font-size: 1.25rem; font-weight: 650; letter-spacing: -.01em; margin-right: .3rem; }
.cycle:has(.ring li:first-child[data-state]) { grid-template-columns: 19rem minmax(0, 1fr) minmax(13rem, 17rem); }
.ring:has([data-state]) { width: 19rem; }
.ring li[data-state] { width: 8rem; margin-left: -4rem; font-size: .6rem; line-height: 1.1; overflow-wrap: anywhere; padding: .15rem 0; }
.ring li[data-state]:nth-child(2), .ring li[data-state]:nth-child(3) { translate: 2.6rem 0; }
.ring li[data-state]:nth-child(5), .ring li[data-state]:nth-child(6) { translate: -2.6rem 0; }
.next, .history small { color: var(--soft, GrayText); font-size: .84em; overflow-wrap: anywhere; }
.now span, .since, .goal-gist { color: var(--soft, GrayText); }
.since, .history { font-size: .84em; font-variant-numeric: tabular-nums; }
.goal-gist { font-size: .9em; margin-top: .3rem; overflow-wrap: anywhere; unicode-bidi: isolate; display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical; overflow: hidden; }
.history { list-style: none; }
.history li { display: grid; grid-template-columns: 1fr auto 5rem; gap: .8rem; color: var(--soft, GrayText); line-height: 1.35; }
.history b { font-weight: 500; color: var(--ink, CanvasText); }
.history .took { text-align: right; }
.questions:empty { display: none; }
.question { border: 1px solid; border-left-width: 4px; border-radius: 8px; padding: .7rem 1rem; margin-top: .8rem; overflow-wrap: anywhere; }
.question h2 { font-size: 1.05rem; margin: .2rem 0; }
.question pre { white-space: pre-wrap; }
.question textarea { width: 100%; font: inherit; }
.question button { font: inherit; padding: .3rem .7rem; margin: .2rem .4rem .2rem 0; }
@media (max-width: 720px) {
  .cycle { grid-template-columns: minmax(0, 1fr); }
  .ring { margin: 0 auto; }
}
`);

/** @param {string} tag @param {Record<string, string>} set @param {(Node | string)[]} inside */
function element(tag, set, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(set)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}

/** @param {number} ms */
function duration(ms) {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return ms < 3_600_000 ? `${Math.floor(ms / 60_000)} min ${Math.floor(ms / 1000) % 60} s` : `${Math.floor(ms / 3_600_000)} h ${Math.floor(ms / 60_000) % 60} min`;
}

/** @type {Record<string, string>} */
const STATES = {
  over: "The run is over.",
  parked: "The run is parked.",
  cut_off: "Its process died.",
  waiting: "It waits for a person.",
};

/** @param {Cycle} now */
function drawn(now) {
  const own = (now.next ?? []).length > 0 || now.phases.some((one) => one.name === "IDLE");
  const ring = now.phases.map((one) => {
    const part = element("li", { title: one.words, ...(own ? { "data-state": "" } : {}) }, one.name);
    if (one.name === now.phase) part.setAttribute("aria-current", "true");
    return part;
  });
  const present = now.history.at(-1);
  const words = STATES[now.state] ?? now.phases.find((one) => one.name === now.phase)?.words ?? "";
  const about = [element("p", { class: "now" }, element("b", {}, now.phase), " ", element("span", {}, words))];
  const next = (now.next ?? []).map((one) => `${one.event} → ${one.phase}`).join(", ");
  if (next) about.push(element("p", { class: "next" }, `next: ${next}`));
  if (present) {
    const since = new Date(present.from_ms).toLocaleTimeString();
    const step = present.cycle > 0 ? `step ${present.cycle}, ` : "";
    about.push(element("p", { class: "since" }, `${step}since ${since}`));
  }
  about.push(element("p", { class: "goal-gist", part: "goal" }, now.goal));
  const past = now.history.slice(-LISTED).reverse().map((span) => {
    const words = [span.event, span.text].filter(Boolean).join(": ");
    const took = span.took_ms === undefined ? "now" : duration(span.took_ms);
    const step = span.cycle > 0 ? `step ${span.cycle}` : "start";
    return element("li", { title: words }, element("b", {}, span.phase), element("span", {}, step), element("span", { class: "took" }, took));
  });
  return element(
    "div",
    { class: "cycle", "data-phase": now.phase, "data-name": now.name },
    element("ol", { class: "ring", "aria-label": "Parts of the cycle" }, ...ring),
    element("div", { class: "present" }, ...about),
    element("ol", { class: "history", "aria-label": "Parts of the cycle that were last, with durations" }, ...past),
  );
}

/** @param {Card} card */
function question(card) {
  const items = (card.items ?? []).map((item) => {
    const box = element("input", { type: "checkbox", name: "item", value: item });
    /** @type {HTMLInputElement} */ (box).checked = !item.startsWith("#");
    return element("label", {}, box, ` ${item}`, element("br", {}));
  });
  const words = element("textarea", { name: "words", rows: "2", "aria-label": card.asks_words ? "Answer" : "Reason of a rejection" });
  return element(
    "form",
    { class: "question", "data-question": card.question },
    element("h2", {}, card.sentence),
    ...card.reasons.map((reason) => element("p", {}, reason)),
    ...(items.length ? items : card.details.map((text) => element("pre", {}, text))),
    words,
    element("button", { value: "approve" }, card.asks_words ? "Answer" : "Approve"),
    element("button", { value: "reject" }, "Reject"),
  );
}

class AgentCycleFSMWidget extends HTMLElement {
  static observedAttributes = ["run"];
  #internals = this.attachInternals();
  #root = this.attachShadow({ mode: "open" });
  #isBusy = false;
  #isAskedAgain = false;
  /** @type {ModuleApi | null} */
  #api = null;
  #isGiven = false;
  /** @type {Card[]} */
  #cards = [];
  #leave = () => {};

  constructor() {
    super();
    this.#root.adoptedStyleSheets = [sheet];
    this.#internals.role = "region";
    this.#internals.ariaLabel = "Cycle of a run";
    this.#root.addEventListener("submit", (event) => this.#answer(/** @type {SubmitEvent} */ (event)));
  }

  connectedCallback() {
    const first = this.querySelector(":scope > .cycle");
    if (first) this.#root.replaceChildren(first.cloneNode(true), this.#slot());
    this.#begin();
  }

  disconnectedCallback() {
    this.#leave();
  }

  attributeChangedCallback() {
    if (this.isConnected) this.#begin();
  }

  /** The source of what is shown, and the way to answer. */
  get moduleApi() {
    return this.#api;
  }

  set moduleApi(api) {
    this.#api = api;
    this.#isGiven = api !== null;
    if (this.isConnected) this.#begin();
  }

  #begin() {
    this.#leave();
    const run = this.getAttribute("run") ?? "";
    if (!this.#isGiven) this.#api = /^[\w-]{1,64}$/.test(run) ? cycleApi({ run }) : null;
    if (!this.#api) return;
    this.#leave = this.#api.subscribe(() => void this.#refresh());
    if (this.#isGiven || !this.querySelector(":scope > .cycle")) void this.#refresh();
  }

  #slot() {
    return element("slot", { name: "questions" }, element("div", { class: "questions" }));
  }

  async #refresh() {
    if (this.#isBusy) {
      this.#isAskedAgain = true;
      return;
    }
    this.#isBusy = true;
    do {
      this.#isAskedAgain = false;
      const now = await this.#api?.state().catch(() => null);
      if (now) this.#show(now);
    } while (this.#isAskedAgain && this.isConnected);
    this.#isBusy = false;
  }

  /** @param {Cycle} now */
  #show(now) {
    this.#internals.ariaLabel = `Cycle of run ${now.name}: ${now.phase}`;
    if (!this.#root.querySelector("slot")) this.#root.replaceChildren(element("div", {}), this.#slot());
    const fresh = drawn(now);
    const here = this.#root.firstElementChild;
    if (!here?.isEqualNode(fresh)) here?.replaceWith(fresh);
    const asked = this.#root.querySelector(".questions");
    const ids = (/** @type {Card[]} */ cards) => cards.map((card) => card.question).join();
    // What a person types or is about to press stays where it is.
    if (asked && ids(now.questions) !== ids(this.#cards)) asked.replaceChildren(...now.questions.map(question));
    this.#cards = now.questions;
  }

  /** @param {SubmitEvent} event */
  async #answer(event) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const card = this.#cards.find((one) => one.question === form.dataset.question);
    if (!card || !this.#api) return;
    const said = new FormData(form);
    const words = String(said.get("words") ?? "").trim();
    const isYes = /** @type {HTMLButtonElement} */ (event.submitter)?.value === "approve";
    const chosen = said.getAll("item").map((item) => String(item).replace(/^#\s*/, ""));
    const before = (card.items ?? []).filter((item) => !item.startsWith("#"));
    const isChanged = (card.items ?? []).length > 0 && chosen.join() !== before.join();
    const edited = isChanged ? chosen.join("\n") + "\n" : card.asks_words ? words : "";
    const answered = isYes ? this.#api.approve(card, edited) : this.#api.reject(card, words);
    const isTaken = await answered.catch(() => false);
    const told = isTaken ? "Answered." : "This answer was not taken: it is not asked any more, or it may not be given here.";
    form.replaceWith(element("p", { role: "status" }, told));
    void this.#refresh();
  }
}

customElements.define("agent-cycle-fsm-widget", AgentCycleFSMWidget);
