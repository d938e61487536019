// @ts-check
// <agent-cycle-fsm-widget run="…"> shows the part of its cycle that a run is in, what was before,
// and its open questions. Any page of this origin may use it: one script tag with this module.
// The server draws the content, which is an ordinary list wherever scripts are off.
import { follow } from "./positions.js";

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

class AgentCycleFsmWidget extends HTMLElement {
  static observedAttributes = ["run"];
  #internals = this.attachInternals();
  #root = this.attachShadow({ mode: "open" });
  #isBusy = false;
  #isAskedAgain = false;
  /** @type {() => void} */
  #leave = () => undefined;

  constructor() {
    super();
    this.#root.adoptedStyleSheets = [sheet];
    this.#internals.role = "region";
    this.#internals.ariaLabel = "Cycle of a run";
    this.#root.addEventListener("submit", (event) => this.#answer(/** @type {SubmitEvent} */ (event)));
  }

  connectedCallback() {
    const drawn = this.querySelector(":scope > .cycle");
    if (drawn) this.#show([/** @type {Element} */ (drawn.cloneNode(true))]);
    this.#leave = follow(({ isLive, changed }) => {
      // What the page drew is there already; anything after it is told.
      if (isLive && (changed.length === 0 || changed.some((one) => one.run === this.#run))) void this.#refresh();
    });
  }

  disconnectedCallback() {
    this.#leave();
  }

  attributeChangedCallback() {
    if (this.isConnected) void this.#refresh();
  }

  get #run() {
    const run = this.getAttribute("run") ?? "";
    return /^[\w-]{1,64}$/.test(run) ? run : "";
  }

  /** @param {Element[]} parts */
  #show(parts) {
    const slot = document.createElement("slot");
    slot.name = "questions";
    for (const part of parts.slice(1)) slot.append(part);
    const cycle = parts[0];
    if (cycle instanceof HTMLElement) {
      const { name, phase } = cycle.dataset;
      this.#internals.ariaLabel = `Cycle of run ${name}: ${phase}`;
    }
    this.#root.replaceChildren(...parts.slice(0, 1), slot);
  }

  async #refresh() {
    if (!this.#run) return;
    if (this.#isBusy) {
      this.#isAskedAgain = true;
      return;
    }
    this.#isBusy = true;
    do {
      this.#isAskedAgain = false;
      await this.#fetched().catch(() => undefined);
    } while (this.#isAskedAgain && this.isConnected);
    this.#isBusy = false;
  }

  async #fetched() {
    const answer = await fetch(`/runs/${this.#run}/widget`);
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const parts = [...fresh.body.children].map((part) => document.adoptNode(part));
    const here = this.#root.querySelector(".cycle");
    const questions = this.#root.querySelector(".questions");
    const active = this.#root.activeElement;
    // What a person types or is about to press stays where it is.
    if (questions && active && questions.contains(active)) parts[1] = questions;
    if (here && questions && parts[0]?.isEqualNode(here) && parts[1]?.isEqualNode(questions)) return;
    this.#show(parts);
  }

  /** @param {SubmitEvent} event */
  async #answer(event) {
    const form = /** @type {HTMLFormElement} */ (event.target);
    event.preventDefault();
    const body = new URLSearchParams();
    new FormData(form, event.submitter).forEach((value, name) => body.append(name, String(value)));
    const answer = await fetch(form.action, { method: "POST", body }).catch(() => null);
    const said = document.createElement("p");
    said.setAttribute("role", "status");
    said.textContent = answer?.ok ? "Answered." : "This answer was not taken: it is not asked any more, or it may not be given here.";
    form.replaceWith(said);
    void this.#refresh();
  }
}

customElements.define("agent-cycle-fsm-widget", AgentCycleFsmWidget);
