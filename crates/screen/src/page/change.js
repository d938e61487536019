// What an input changed: the element, its form or list, the keyboard, scrolling, and whatever else
// is different and was quiet before.

// What changed by itself within this time before an input, in milliseconds, is noise.
const RECENTLY = 3000;
// What an input changes for longer than this, and at least so often, goes on by itself.
const GOES_ON = 250;
const OFTEN = 4;
// Until an input begins, pointing and giving the keyboard change things for so long.
const PREPARES = 2000;
// Changed elements that are remembered.
const MOST_CHANGED = 2000;

// When elements last changed without an input of ours.
const byItself = new Map();
// Since an input began: when elements changed first and last, and what came into the page.
let changed = null;
let fresh = new WeakSet();
let noisy = new Set();
let marked = null;
// Until then, what changes is our own doing.
let prepared = 0;
const watched = new WeakSet();
const listeners = new Set();
const observer = new MutationObserver((records) => note(records));

function note(records) {
  const now = performance.now();
  for (const record of records) {
    const element = record.target instanceof Element ? record.target : around(record.target) || document.documentElement;
    const seen = changed?.get(element);
    if (seen) Object.assign(seen, { last: now, times: seen.times + (seen.last < now ? 1 : 0) });
    else if (changed && changed.size < MOST_CHANGED) changed.set(element, { first: now, last: now, times: 1 });
    else if (!changed && now > prepared && (byItself.size < MOST_CHANGED || byItself.has(element))) byItself.set(element, now);
    if (changed) for (const added of record.addedNodes) fresh.add(added);
  }
  if (records.length) for (const listener of [...listeners]) listener();
}

// What the parser added to a document that was looked at meanwhile is no change by itself.
function isReadNow() {
  note(observer.takeRecords());
  byItself.clear();
}

// From the first look on, so that there is a history when an input comes.
function watch() {
  if (document.readyState === "loading" && !watched.has(document)) {
    document.addEventListener("readystatechange", isReadNow, { once: true });
  }
  for (const root of [document, ...roots()]) {
    if (watched.has(root)) continue;
    watched.add(root);
    observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
  }
}

function hashOf(text) {
  let hash = 2166136261;
  for (let at = 0; at < text.length && at < 50000; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 16777619);
  return hash + ":" + text.length;
}

function stateOf(field) {
  if (field instanceof HTMLCanvasElement) return pixelsOf(field);
  const files = field instanceof HTMLInputElement && field.type === "file" ? field.files.length : "";
  const chosen = field instanceof HTMLSelectElement ? [...field.options].map((one) => +one.selected).join("") : "";
  const value = typeof field.value === "string" ? hashOf(field.value) : "";
  return [value, field.checked, field.indeterminate, field.disabled, field.open, field.paused, field.muted, chosen, files].join();
}

// Of a canvas that may be read, shrunk.
function pixelsOf(canvas) {
  try {
    const small = new OffscreenCanvas(64, 64);
    const context = small.getContext("2d");
    context.drawImage(canvas, 0, 0, 64, 64);
    return hashOf(String.fromCharCode(...context.getImageData(0, 0, 64, 64).data));
  } catch {
    return "";
  }
}

// Canvases in view that are compared.
const MOST_CANVASES = 4;

function canvasesInView() {
  return [...document.getElementsByTagName("canvas")].filter((one) => isInView(one) && one.checkVisibility()).slice(0, MOST_CANVASES);
}

// What stands on each canvas in view.
const drawn = () => new Map(canvasesInView().map((one) => [one, pixelsOf(one)]));

// What stood on a canvas when an input ended, and when it was different before the next one.
const drawnAtEnd = new WeakMap();
const redrawn = new WeakMap();

function noteDrawn() {
  for (const [one, pixels] of drawn()) {
    if (drawnAtEnd.has(one) && drawnAtEnd.get(one) !== pixels) redrawn.set(one, performance.now());
  }
}

// The canvases that stand still for two frames, and did before: others are drawn by themselves.
async function stillDrawn() {
  const was = drawn();
  if (!was.size) return was;
  await frame();
  await frame();
  const isQuiet = (one) => !(performance.now() - redrawn.get(one) < RECENTLY);
  return new Map([...drawn()].filter(([one, pixels]) => was.get(one) === pixels && isQuiet(one)));
}

const GROUP = "form, fieldset, ul, ol, dl, table, select, [role=listbox], [role=list], [role=grid], [role=tree], " +
  "[role=menu], [role=radiogroup], [role=tablist], [role=table], [role=group]";

function groupOf(element) {
  if (element.form instanceof HTMLFormElement) return element.form;
  return nearest(element, GROUP) || element;
}

// What is selected, or where the caret stands in what takes text.
function selected() {
  const field = keyboard();
  if (typeof field.selectionStart === "number") return [numberOf(field), field.selectionStart, field.selectionEnd].join();
  const selection = getSelection();
  const { anchorNode, anchorOffset, focusOffset, isCollapsed } = selection;
  if (!isCollapsed) return hashOf(String(selection));
  const box = field.isContentEditable && anchorNode && (anchorNode instanceof Element ? anchorNode : around(anchorNode));
  return box ? [numberOf(box), anchorOffset, focusOffset].join() : "";
}

// Whether some text is selected now, beyond a caret.
function hasSelection() {
  const field = keyboard();
  return typeof field.selectionStart === "number" ? field.selectionStart !== field.selectionEnd : !getSelection().isCollapsed;
}

const controlAt = (element) => (element instanceof HTMLLabelElement ? element.control || element : element);

// `value` and `fields` cannot change without it being seen; `target` and `group` may by themselves.
function signature(element) {
  const scrolls = [scrollX, scrollY];
  for (let at = element; at; at = around(at)) if (at.scrollTop || at.scrollLeft) scrolls.push(at.scrollTop, at.scrollLeft);
  const whole = { focus: numberOf(keyboard()), scroll: scrolls.join(), selection: selected() };
  if (!element) return whole;
  const control = controlAt(element);
  const attributes = [...control.attributes].map((one) => one.name + "=" + one.value).join("\n");
  const group = groupOf(control);
  const fields = group instanceof HTMLFormElement ? [...formFields(group)] : [...group.querySelectorAll(FIELD)];
  return {
    ...whole, value: stateOf(control), fields: fields.slice(0, 500).map(stateOf).join("\n"),
    target: [element.isConnected, attributes, hashOf(control.textContent)].join("\n"),
    group: [hashOf(group.textContent), group.childElementCount].join("\n"),
  };
}

// An input is on its way: what pointing at its target does is no noise.
function prepare() {
  note(observer.takeRecords());
  // Later, pointing at things has changed what is drawn.
  if (performance.now() > prepared) noteDrawn();
  prepared = performance.now() + PREPARES;
  return "true";
}

// Remembers how things stand, and arms the guard.
async function begin(number, kind, isShown) {
  watch();
  const canvases = isShown ? await stillDrawn() : new Map();
  note(observer.takeRecords());
  const now = performance.now();
  for (const [element, at] of byItself) if (now - at >= RECENTLY) byItself.delete(element);
  noisy = new Set(byItself.keys());
  changed = new Map();
  fresh = new WeakSet();
  prepared = 0;
  const element = number ? elementOf(number) : null;
  marked = { element, signature: signature(element), canvases };
  if (kind) arm(number, kind);
  return "true";
}

// It changed by itself before, or came just now into what did. What only stands in it is quiet.
const isNoise = (element) => {
  let isNew = false;
  for (let at = element; at; at = around(at)) {
    if (noisy.has(at) && (at === element || isNew && at !== document.body)) return true;
    isNew ||= fresh.has(at);
  }
  return false;
};

// Something in it changed by itself before.
const isNoisyWithin = (outer) => [...noisy].some((element) => isWithin(element, outer));

// What is different since. Disarms the guard.
function end() {
  note(observer.takeRecords());
  // A root that an element got since is no change of the document, and shows other things.
  const first = performance.now();
  for (const { host } of roots().filter((root) => !watched.has(root))) changed?.set(host, { first, last: first, times: 1 });
  const element = marked?.element;
  const now = signature(element);
  const was = marked?.signature || now;
  const elements = [...changed?.keys() || []];
  const quiet = elements.filter((one) => !isNoise(one));
  const differs = (part) => was[part] !== now[part];
  const control = element && controlAt(element);
  const ended = {
    target: differs("value") || differs("target") && !isNoisyWithin(control),
    group: differs("fields") || differs("group") && !isNoisyWithin(groupOf(control)),
    focus: differs("focus"), scroll: differs("scroll"), // A caret comes and goes with the keyboard.
    selection: differs("selection") && (hasSelection() || now.selection !== "" && !differs("focus")),
    drawn: [...marked?.canvases || []].some(([one, pixels]) => one.isConnected && isInView(one) && pixelsOf(one) !== pixels),
    quiet: quiet.length, noise: elements.length - quiet.length,
    first: quiet.length ? words(quiet[0]).slice(0, 80) : "",
    focused: words(keyboard()).slice(0, 100), guard: disarm(),
  };
  forget(control);
  for (const [one, pixels] of drawn()) drawnAtEnd.set(one, pixels);
  return JSON.stringify(ended);
}

// What an input did is no noise for the next one, unless it goes on.
function forget(control) {
  for (const [element, { first, last, times }] of changed || []) {
    const goesOn = last - first >= GOES_ON && times >= OFTEN && !(control && isWithin(element, control));
    if (goesOn || isNoise(element)) byItself.set(element, last);
  }
  changed = null;
}

// Until something that was quiet changes.
function change(limit) {
  return new Promise((resolve) => {
    const over = (happened) => {
      listeners.delete(look);
      clearTimeout(timer);
      resolve(JSON.stringify(happened));
    };
    const look = () => [...changed?.keys() || []].some((element) => !isNoise(element)) && over(true);
    const timer = setTimeout(() => over(false), limit);
    listeners.add(look);
    look();
  });
}
