// @ts-check
// Keys for those who read many steps: j and k move, e folds, q goes to the next question.

export function listen() {
  document.addEventListener("keydown", (event) => {
    const target = /** @type {Element} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.matches("input, textarea, select")) return;
    if (event.key === "j") move(".step > summary, ol.runs .goal", 1);
    else if (event.key === "k") move(".step > summary, ol.runs .goal", -1);
    else if (event.key === "q") question();
    else if (event.key === "e") fold();
    else return;
    event.preventDefault();
  });
}

/** @param {string} selector @param {number} by */
function move(selector, by) {
  const all = [...document.querySelectorAll(selector)];
  const at = document.activeElement ? all.indexOf(document.activeElement) : -1;
  const next = at < 0 ? all.at(by > 0 ? 0 : -1) : all[at + by];
  if (!(next instanceof HTMLElement)) return;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function question() {
  const button = document.querySelector(".answers textarea, .answers button");
  if (button instanceof HTMLElement) button.focus();
  else location.assign("/waiting");
}

function fold() {
  const folds = document.querySelectorAll(".step");
  const isOpening = [...folds].some((one) => !one.hasAttribute("open"));
  folds.forEach((one) => one.toggleAttribute("open", isOpening));
}
