// @ts-check
// Fetches what changed, as the server draws it, and puts it in its place. What a person types into
// or reads stays where it is.

/** @typedef {import("./positions.js").Positions} Positions */

/** The most rows that stay on a page that follows a run. */
const MOST_ROWS = 600;

let isBusy = false;
let isAskedAgain = false;
let isConnected = false;
/** The position of the bus that was told last. */
let known = 0;

/** @param {Positions} positions */
export function update({ isLive, changed, bus }) {
  const status = document.querySelector(".connection");
  if (status) {
    const words = isLive ? "live" : `reconnecting, as of ${new Date().toLocaleTimeString()}`;
    if (status.textContent !== words && (isLive || isConnected)) status.textContent = words;
    status.classList.toggle("is-live", isLive);
  }
  const isBack = isLive && !isConnected;
  isConnected = isLive;
  // The runs that the page is about; a page about none is about all.
  const about = document.querySelector("[data-run]")?.getAttribute("data-run");
  // A child's questions are counted at its root: they change its position.
  const hasEvents = bus > known && document.querySelector("[data-bus]") !== null;
  known = bus;
  const isAbout = changed.some((one) => !about || about.includes(one.run));
  if (isBack || hasEvents || isAbout) void refresh();
}

document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible" && isConnected) void refresh();
});

function rows() {
  return document.getElementById("rows");
}

async function refresh() {
  if (isBusy) {
    isAskedAgain = true;
    return;
  }
  isBusy = true;
  do {
    isAskedAgain = false;
    await fetched().catch(() => undefined);
  } while (isAskedAgain);
  isBusy = false;
}

async function fetched() {
  const here = rows();
  const after = here?.dataset.after;
  // Earlier steps do not change.
  if (here && after === undefined) return;
  const path = here ? `/runs/${here.dataset.run}/rows?after=${after}&zoom=${here.dataset.zoom}` : location.href;
  const answer = await fetch(path);
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live], #steering")) {
    const renewed = fresh.getElementById(part.id);
    if (!renewed) continue;
    if (part.id === "questions") renewCards(part, renewed);
    else renew(part, renewed);
  }
  const renewed = fresh.getElementById("rows");
  if (here && renewed) {
    renewRows(here, renewed);
    renewFilm(fresh);
    if (renewed.hasAttribute("data-more")) isAskedAgain = true;
  }
}

/** @param {Element} part @param {Element} fresh */
function renew(part, fresh) {
  if (part.isEqualNode(fresh)) return;
  const active = document.activeElement;
  const isInside = active && part.contains(active);
  if (isInside && active.matches("textarea, input, select")) return;
  const [same, at] = isInside ? place(part, active) : ["", -1];
  part.replaceWith(document.adoptNode(fresh));
  if (same) focusAgain(fresh, same, at);
}

/** @param {Element} part @param {Element} active @returns {[string, number]} */
function place(part, active) {
  const same = active.localName;
  return [same, [...part.querySelectorAll(same)].indexOf(active)];
}

/** @param {Element} part @param {string} same @param {number} at */
function focusAgain(part, same, at) {
  const element = part.querySelectorAll(same)[at];
  if (element instanceof HTMLElement) element.focus({ preventScroll: true });
}

/**
 * New cards go below, so that no button moves under a pointer.
 * @param {Element} part @param {Element} fresh
 */
function renewCards(part, fresh) {
  const cards = new Map([...fresh.children].map((card) => [card.id, card]));
  for (const card of [...part.children]) {
    const renewed = cards.get(card.id);
    cards.delete(card.id);
    if (!card.id) card.remove();
    else if (!renewed) withdraw(card);
    else if (renewed.querySelector(".answered") && !card.querySelector(".answered")) {
      card.replaceWith(document.adoptNode(renewed));
    }
  }
  const isEmpty = part.children.length === 0;
  for (const card of cards.values()) {
    if (card.id || isEmpty) part.append(document.adoptNode(card));
  }
}

/** @param {Element} card */
function withdraw(card) {
  const form = card.querySelector("form");
  if (!form) return;
  const said = document.createElement("p");
  said.className = "answered";
  said.setAttribute("role", "status");
  said.textContent = "This is not asked any more.";
  form.replaceWith(said);
}

/** @param {HTMLElement} part @param {HTMLElement} fresh */
function renewRows(part, fresh) {
  const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  for (const row of [...fresh.children]) {
    const old = document.getElementById(row.id);
    document.adoptNode(row);
    if (!old) part.append(row);
    else if (!old.isEqualNode(row)) renewRow(old, row);
  }
  part.dataset.after = fresh.dataset.after;
  if (!isAtEnd) return;
  while (part.children.length > MOST_ROWS) part.firstElementChild?.remove();
  scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
}

/** @param {Document} fresh */
function renewFilm(fresh) {
  const film = document.getElementById("film");
  for (const frame of fresh.querySelectorAll("#film > li")) {
    if (film && !document.getElementById(frame.id)) film.append(document.adoptNode(frame));
  }
}

/**
 * A step only grows, so what was opened in it is found by its order.
 * @param {Element} old @param {Element} row
 */
function renewRow(old, row) {
  const opened = [...old.querySelectorAll("details")];
  [...row.querySelectorAll("details")].forEach((details, at) => {
    if (opened[at]) details.open = opened[at].open;
  });
  const active = document.activeElement;
  const [same, at] = active && old.contains(active) ? place(old, active) : ["", -1];
  old.replaceWith(row);
  if (same) focusAgain(row, same, at);
}
