// Whether a page that is read to its end shows nothing yet: what its scripts fetch and draw comes
// later, without any event.

// Nodes that are looked at for the first content.
const MOST_SEARCHED = 3000;
const DRAWING = "the page, which is still drawing: nothing is on it yet";
// So long is waited for the main part of a page while other parts stand there, in milliseconds.
const MAIN_PART = 2000;
// What is content without any words.
const DRAWN = new Set(["img", "canvas", "video", "audio", "iframe", "frame", "object", "embed", "input", "textarea", "select", "button", "progress", "meter"]);

let blankSince = 0;
// Waited for in vain: this document may have nothing to show.
let staysBlank = false;

function isBlank() {
  // Nothing draws where there are no scripts; a frame may be empty for good.
  if (staysBlank || globalThis.top !== globalThis || !document.scripts.length) return false;
  const main = document.querySelector("main, [role=main]");
  const isMain = main?.checkVisibility();
  if (holdsContent(isMain ? main : document.body, { left: MOST_SEARCHED })) return false;
  blankSince ||= performance.now();
  staysBlank = isMain && performance.now() - blankSince > MAIN_PART && holdsContent(document.body, { left: MOST_SEARCHED });
  return !staysBlank;
}

// What stands in for a part until it is drawn: it says that it is busy, or has the usual name and no words.
const STANDS_IN = "[aria-busy=true], [class*=skeleton i], [data-testid*=skeleton i]";
// So long is waited for one part, in milliseconds.
const PART = 2000;
const MOST_PARTS = 100;
const partsSince = new WeakMap();

function isPartBlank() {
  const now = performance.now();
  return [...document.querySelectorAll(STANDS_IN)].slice(0, MOST_PARTS).some((part) => {
    if (part.textContent.trim() && part.ariaBusy !== "true" || !isInView(part) || !part.checkVisibility(VISIBLE)) return false;
    if (!partsSince.has(part)) partsSince.set(part, now);
    return now - partsSince.get(part) < PART;
  });
}

// What of the page is still being drawn, in words.
const drawing = () => (isBlank() ? DRAWING : isPartBlank() ? "a part of the page that is still being drawn" : "");

// Words that are painted, or something to see or to use.
function holdsContent(element, budget) {
  if (!element || --budget.left < 0) return !!element;
  const name = element.localName;
  if (DRAWN.has(name)) return element.checkVisibility(VISIBLE);
  if (name === "svg") return element.getBoundingClientRect().width >= SMALLEST_IMAGE && element.checkVisibility(VISIBLE);
  if (SILENT.has(name)) return false;
  for (const child of childrenOf(element)) {
    if (child.nodeType === Node.TEXT_NODE ? /\S/.test(child.data) && around(child)?.checkVisibility(VISIBLE)
      : child.nodeType === Node.ELEMENT_NODE && holdsContent(child, budget)) return true;
  }
  return false;
}
