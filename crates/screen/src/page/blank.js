// Whether a page that is read to its end shows nothing yet: what its scripts fetch and draw comes
// later, without any event.

// Nodes that are looked at for the first content.
const MOST_SEARCHED = 3000;
const DRAWING = "the page, which is still drawing: nothing is on it yet";
const BLANK_PART = "a part of the page that is still being drawn";
// So long is waited for the main part of a page while other parts stand there, in milliseconds.
const MAIN_PART = 2000;
// What is content without any words.
const DRAWN = new Set(["img", "canvas", "video", "audio", "iframe", "frame", "object", "embed", "input", "textarea", "select", "button", "progress", "meter"]);

// What holds the main part, by its role or by the name that scripts look for to draw it there.
const MAIN = "main, [role=main], #root, #app, #__next, #__nuxt, #___gatsby, #main, #content, app-root";

let blankSince = 0;
// Waited for in vain: this document may have nothing to show.
let staysBlank = false;

function isBlank() {
  // Nothing draws where there are no scripts; a frame may be empty for good.
  if (staysBlank || globalThis.top !== globalThis || !document.scripts.length) return false;
  const main = document.querySelector(MAIN);
  const isMain = main?.checkVisibility();
  if (holdsContent(isMain ? main : document.body, { left: MOST_SEARCHED })) return false;
  blankSince ||= performance.now();
  staysBlank = isMain && performance.now() - blankSince > MAIN_PART && holdsContent(document.body, { left: MOST_SEARCHED });
  return !staysBlank;
}

// What stands in for a part until it is drawn: it says that it is busy, or has the usual name and no
// words but such as “Loading…”.
const STANDS_IN = "[aria-busy=true], [class*=skeleton i], [data-testid*=skeleton i], [class*=spinner i], [class*=loader i], [class*=loading i]";
const LONGEST_WAITING = 30;
// So long is waited for one part, in milliseconds.
const PART = 2000;
const MOST_PARTS = 100;
const FOR_GOOD = 10_000;
const partsSince = new WeakMap();

// Whether an element stands in for a part. Others may be called so for good, as a part with things to use.
function standsIn(part) {
  const said = part.textContent.trim();
  const isWaiting = !said || said.length <= LONGEST_WAITING && /(\.\.\.|…)$/.test(said);
  return (isWaiting && !part.querySelector(USED) || part.ariaBusy === "true") && isInView(part) && part.checkVisibility(PAINTED);
}

const standIns = () => [...document.querySelectorAll(STANDS_IN)].slice(0, MOST_PARTS).filter(standsIn);

function isPartBlank() {
  const now = performance.now();
  return standIns().some((part) => {
    if (!partsSince.has(part)) partsSince.set(part, now);
    return now - partsSince.get(part) < PART;
  });
}

// What is not drawn though it was waited for, in words; empty if there is no such thing.
function stillBlank() {
  const main = staysBlank && document.querySelector(MAIN);
  if (staysBlank && !holdsContent(main?.checkVisibility() ? main : document.body, { left: MOST_SEARCHED })) return DRAWING;
  // What is there for longer is there for good.
  return standIns().some((part) => performance.now() - partsSince.get(part) < FOR_GOOD) ? BLANK_PART : "";
}

// What of the page is still being drawn, in words.
const drawing = () => (isBlank() ? DRAWING : isPartBlank() ? BLANK_PART : "");

// Words that are painted, or something to see or to use.
function holdsContent(element, budget) {
  if (!element || --budget.left < 0) return !!element;
  const name = element.localName;
  if (DRAWN.has(name) || element.hasAttribute("tabindex") && element.offsetHeight) return element.checkVisibility(VISIBLE);
  if (name === "svg") return element.getBoundingClientRect().width >= SMALLEST_IMAGE && element.checkVisibility(VISIBLE);
  if (SILENT.has(name)) return false;
  for (const child of childrenOf(element)) {
    if (child.nodeType === Node.TEXT_NODE ? /\S/.test(child.data) && around(child)?.checkVisibility(VISIBLE)
      : child.nodeType === Node.ELEMENT_NODE && holdsContent(child, budget)) return true;
  }
  return false;
}
