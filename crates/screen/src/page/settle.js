// Whether this document has come to rest: it is read, its fonts and the images in view are there or
// hang, nothing is being animated, and what a person could use stands still for two frames.

// Elements whose boxes are compared.
const MOST_MEASURED = 400;
// Animations that end within so many milliseconds are waited for.
const LONGEST = 2000;
// A frame that is not painted gets no animation frames; then this many milliseconds count as one.
const UNPAINTED = 250;
// Milliseconds for which fonts and an image in view are waited for, once.
const MOST_HANGING = 1500;
// The same for what a document loads beside, once it is read.
const MOST_BESIDE = 500;

const frame = () => new Promise((resolve) => {
  const timer = globalThis.top === globalThis ? 0 : setTimeout(resolve, UNPAINTED);
  requestAnimationFrame(() => {
    clearTimeout(timer);
    resolve();
  });
});

const isInView = (element) => {
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.height > 0 && box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
};

// Points of a frame at which it is looked for: across and down.
const THIRDS = [1 / 6, 1 / 2, 5 / 6];

// The ids of the frames in this document of which something can be seen.
function framesInView() {
  const isSeen = (owner) => {
    if (!owner?.isConnected || !isInView(owner)) return false;
    const [left, top, right, bottom] = overlap(edges(owner.getBoundingClientRect()), [0, 0, innerWidth, innerHeight]);
    const at = (from, to, part) => from + (to - from) * part;
    return THIRDS.some((across) => THIRDS.some((down) => hitAt(at(left, right, across), at(top, bottom, down)) === owner));
  };
  return JSON.stringify([...frameOwners].filter(([, owner]) => isSeen(owner.deref())).map(([id]) => id));
}

// Since when each thing is waited for, with the address that it loads.
const waited = new WeakMap();

// Whether a thing that is being loaded is waited for still.
function isWaitedFor(thing, limit, address = "") {
  let since = waited.get(thing);
  if (since?.address !== address) waited.set(thing, since = { address, at: performance.now() });
  return performance.now() - since.at < limit;
}

// Whether the scripts that belong to the document's text have run.
function isRead() {
  if (document.readyState !== "interactive") return document.readyState === "complete";
  const [timing] = performance.getEntriesByType("navigation");
  return !timing || timing.domContentLoadedEventEnd > 0;
}

// `isNew`: the document is an effect of the last input.
function goesOn(isNew) {
  if (isNew && !isRead()) return "the document is still being read";
  if (document.readyState === "interactive" && isWaitedFor(document, MOST_BESIDE)) return "the document is still being loaded";
  if (document.fonts.status !== "loading") waited.delete(document.fonts);
  else if (isWaitedFor(document.fonts, MOST_HANGING)) return "fonts are being loaded";
  const image = [...document.images].slice(0, 2000)
    .find((one) => !one.complete && isInView(one) && isWaitedFor(one, MOST_HANGING, one.currentSrc || one.src));
  if (image) return "an image in view is being loaded";
  for (const animation of document.getAnimations().slice(0, 500)) {
    const target = animation.effect?.target;
    if (!target || animation.playState !== "running" || !animation.timeline || !(animation.timeline instanceof DocumentTimeline)) continue;
    const timing = animation.effect.getComputedTiming();
    // What goes on for long, or for ever, is a part of the page.
    if (timing.iterations === Infinity || timing.endTime - (animation.currentTime ?? 0) > LONGEST) continue;
    const box = target;
    const moves = nearest(box, USABLE) || box.querySelector(USABLE);
    if (moves && isInView(box)) return "an animation of " + words(moves) + " is running";
  }
  return drawing();
}

function boxes(scopes) {
  const found = [[scrollX, scrollY].join()];
  const elements = [];
  for (const scope of scopes) {
    for (const element of scope.querySelectorAll(USABLE)) {
      const box = element.getBoundingClientRect();
      if (box.bottom <= 0 || box.top >= innerHeight || box.width === 0) continue;
      found.push([box.x, box.y, box.width, box.height].map((side) => Math.round(side * 2)).join());
      elements.push(element);
      if (found.length > MOST_MEASURED) return { found, elements };
    }
  }
  return { found, elements };
}

function moved(was, now) {
  const at = now.found.findIndex((box, index) => box !== was.found[index]);
  if (at < 0 && now.found.length === was.found.length) return "";
  if (at === 0) return "the page is scrolling";
  return (now.elements[at - 1] ? words(now.elements[at - 1]) : "an element") + " is moving";
}

// Answers with what it still waits for after `limit` milliseconds, or with nothing.
let looks = 0;

async function settled(limit, isNew) {
  watch();
  looks += 1;
  const look = looks;
  const scopes = [document, ...roots()];
  const end = performance.now() + limit;
  let was = boxes(scopes);
  let still = 0;
  let waiting = "";
  while (still < 2) {
    if (look !== looks) return JSON.stringify("another look");
    if (performance.now() > end) {
      staysBlank ||= waiting === DRAWING;
      return JSON.stringify(waiting || "the page does not stand still");
    }
    await frame();
    waiting = goesOn(isNew);
    const now = boxes(scopes);
    const motion = moved(was, now);
    was = now;
    still = waiting || motion ? 0 : still + 1;
    waiting ||= motion;
  }
  return JSON.stringify("");
}
