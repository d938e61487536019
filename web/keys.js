// @ts-check
// Keys for those who read many steps. The question mark lists them.

/** @type {[string, string, () => void][]} */
const KEYS = [
  ["j", "the next step", () => move(STEPS, 1)],
  ["k", "the step before", () => move(STEPS, -1)],
  ["]", "the next cycle", () => follow("a.next") || move(CYCLES, 1)],
  ["[", "the cycle before", () => follow("a.previous") || move(CYCLES, -1)],
  ["e", "the next error", error],
  ["o", "open or fold all cycles", fold],
  ["q", "the next question", question],
  ["f", "fork", () => follow("a.fork")],
  ["c", "compare", () => void follow("a.compare")],
  ["?", "this list", list],
];
const CYCLES = ".step > summary, a.sentence, .reading > h2 > a, .row.entry, ol.runs .goal";
const STEPS = `${CYCLES}, .items > .item`;
const ERRORS = ".part.bad, .item.bad, a.sentence:has(.flag.bad)";

export function listen() {
  document.addEventListener("keydown", (event) => {
    const target = /** @type {Element} */ (event.composedPath()[0]);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!(target instanceof Element) || target.matches("input, textarea, select")) return;
    const known = KEYS.find(([key]) => key === event.key);
    if (!known) return;
    event.preventDefault();
    known[2]();
  });
}

/** @param {string} selector @param {number} by */
function move(selector, by) {
  go([...document.querySelectorAll(selector)].filter((one) => one.checkVisibility()), by);
}

/** Opens what the next error is folded into. */
function error() {
  go([...document.querySelectorAll(ERRORS)], 1);
}

/** @param {Element[]} all @param {number} by */
function go(all, by) {
  const active = document.activeElement;
  let next;
  if (active && active !== document.body && active.id !== "main") {
    const after = Node.DOCUMENT_POSITION_FOLLOWING;
    const before = Node.DOCUMENT_POSITION_PRECEDING;
    const is = by > 0 ? after : before;
    const there = all.filter((one) => one !== active && active.compareDocumentPosition(one) & is);
    next = by > 0 ? there[0] : there.at(-1);
  } else next = by > 0 ? all[0] : all.at(-1);
  if (!(next instanceof HTMLElement)) return;
  const fold = next.closest("details:not([open])");
  if (fold && !next.matches("summary")) fold.setAttribute("open", "");
  if (next.tabIndex < 0) next.tabIndex = -1;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

/** @param {string} selector */
function follow(selector) {
  const link = document.querySelector(selector);
  if (link instanceof HTMLAnchorElement) link.click();
  return Boolean(link);
}

function question() {
  const button = document.querySelector(".answers textarea, .answers button");
  if (button instanceof HTMLElement) button.focus();
  else location.assign("/waiting");
}

function fold() {
  const folds = document.querySelectorAll("details.step");
  const isOpening = [...folds].some((one) => !one.hasAttribute("open"));
  folds.forEach((one) => one.toggleAttribute("open", isOpening));
}

function list() {
  const open = document.querySelector("dialog.keys-list");
  if (open) return open.remove();
  const dialog = document.createElement("dialog");
  dialog.className = "keys-list";
  dialog.setAttribute("aria-label", "Keys");
  const rows = document.createElement("dl");
  for (const [key, words] of KEYS) {
    const [name, what, shown] = ["dt", "dd", "kbd"].map((one) => document.createElement(one));
    shown.textContent = key;
    name.append(shown);
    what.textContent = words;
    rows.append(name, what);
  }
  const close = document.createElement("button");
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  dialog.append(rows, close);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
