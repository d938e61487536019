// What an input changed: the element, its form or list, the keyboard, scrolling, and whatever else
// is different and was quiet before.

// What changed within this time before an input, in milliseconds, is noise.
const RECENTLY = 3000;
// Changed elements that are remembered.
const MOST_CHANGED = 2000;

let changed = new Map();
let noisy = new Set();
let marked = null;
const watched = new WeakSet();
const listeners = new Set();
const observer = new MutationObserver((records) => note(records));

function note(records) {
  const now = performance.now();
  for (const record of records) {
    const element = record.target instanceof Element ? record.target : around(record.target) || document.documentElement;
    if (changed.size < MOST_CHANGED || changed.has(element)) changed.set(element, now);
  }
  if (records.length) for (const listener of [...listeners]) listener();
}

// From the first look on, so that there is a history when an input comes.
function watch() {
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

const GROUP = "form, fieldset, ul, ol, dl, table, select, [role=listbox], [role=list], [role=grid], [role=tree], " +
  "[role=menu], [role=radiogroup], [role=tablist], [role=table], [role=group]";

function groupOf(element) {
  if (element.form instanceof HTMLFormElement) return element.form;
  return nearest(element, GROUP) || element;
}

function signature(element) {
  const scrolls = [scrollX, scrollY];
  for (let at = element; at; at = around(at)) if (at.scrollTop || at.scrollLeft) scrolls.push(at.scrollTop, at.scrollLeft);
  const focus = numberOf(keyboard());
  if (!element) return { focus, scroll: scrolls.join(), target: "", group: "" };
  const control = element instanceof HTMLLabelElement ? element.control || element : element;
  const attributes = [...control.attributes].map((one) => one.name + "=" + one.value).join("\n");
  const group = groupOf(control);
  const fields = group instanceof HTMLFormElement ? [...formFields(group)] : [...group.querySelectorAll(FIELD)];
  return {
    focus, scroll: scrolls.join(),
    target: [element.isConnected, attributes, hashOf(control.textContent), stateOf(control)].join("\n"),
    group: [hashOf(group.textContent), group.childElementCount, ...fields.slice(0, 500).map(stateOf)].join("\n"),
  };
}

// Remembers how things stand, and arms the guard.
function begin(number, kind) {
  watch();
  note(observer.takeRecords());
  const now = performance.now();
  noisy = new Set([...changed].filter(([, at]) => now - at < RECENTLY).map(([element]) => element));
  changed = new Map();
  const element = number ? elementOf(number) : null;
  marked = { element, signature: signature(element) };
  if (kind) arm(number, kind);
  return "true";
}

const isNoise = (element) => {
  for (let at = element; at && at !== document.body; at = around(at)) if (noisy.has(at)) return true;
  return noisy.has(element);
};

// What is different since. Disarms the guard.
function end() {
  note(observer.takeRecords());
  const now = signature(marked?.element);
  const was = marked?.signature || now;
  const elements = [...changed.keys()];
  const quiet = elements.filter((element) => !isNoise(element));
  const differs = (part) => was[part] !== now[part];
  const isTargetNoisy = !!marked?.element && isNoise(marked.element);
  return JSON.stringify({
    target: differs("target") && !isTargetNoisy, group: differs("group") && !noisyGroup(),
    focus: differs("focus"), scroll: differs("scroll"),
    quiet: quiet.length, noise: elements.length - quiet.length,
    first: quiet.length ? words(quiet[0]).slice(0, 80) : "",
    focused: words(keyboard()).slice(0, 100), guard: disarm(),
  });
}

// Its text changes by itself.
function noisyGroup() {
  if (!marked?.element) return false;
  const group = groupOf(marked.element);
  return [...noisy].some((element) => isWithin(element, group));
}

// Until something that was quiet changes.
function change(limit) {
  return new Promise((resolve) => {
    const over = (happened) => {
      listeners.delete(look);
      clearTimeout(timer);
      resolve(JSON.stringify(happened));
    };
    const look = () => [...changed.keys()].some((element) => !isNoise(element)) && over(true);
    const timer = setTimeout(() => over(false), limit);
    listeners.add(look);
    look();
  });
}
