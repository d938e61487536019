// What is done to fields in this world because no input can: choosing in a native list, setting what
// has a picker; selecting; and reading them.

// Of a text in which words are looked for.
const MOST_LETTERS = 200_000;

const report = (field) => {
  field.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  field.dispatchEvent(new Event("change", { bubbles: true }));
};

const controlOf = (number) => {
  const element = elementOf(number);
  return element instanceof HTMLLabelElement ? element.control || element : element;
};

// Whether a field holds what was typed; asked so that a secret need not leave.
function holds(number, text, whole) {
  const field = controlOf(number);
  if (!field) return JSON.stringify({ gone: true });
  const value = typeof field.value === "string" ? field.value : field.innerText ?? field.textContent;
  const plain = (words) => words.replace(/\r\n?/g, "\n").replace(/\u00a0/g, " ").replace(/\n+/g, "\n").trim();
  const is = whole ? plain(value) === plain(text) : plain(value).includes(plain(text));
  const bare = (words) => words.normalize("NFKC").toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  return JSON.stringify({ holds: is, is_like: bare(value) === bare(text), value: isSecret(field) ? null : value.slice(0, 500) });
}

function setValue(number, text) {
  const field = controlOf(number);
  if (!field) return JSON.stringify({ gone: true });
  field.focus();
  field.value = text;
  report(field);
  return JSON.stringify({ holds: field.value === text, value: field.value });
}

// A slider is set beside what is wanted, from where a key moves it there: pages act on the key.
function setBeside(number, text) {
  const slider = controlOf(number);
  if (!(slider instanceof HTMLInputElement) || slider.type !== "range" || slider.value === text) return JSON.stringify("");
  slider.focus();
  slider.value = text;
  if (slider.value !== text) return JSON.stringify("");
  const isLeast = Number(text) <= Number(slider.min || 0);
  if (isLeast) slider.stepUp();
  else slider.stepDown();
  report(slider);
  return JSON.stringify(isLeast ? "ArrowDown" : "ArrowUp");
}

// How far a slider of the page's making is on its way to a number.
let sliding = null;
// Strikes of a key in a row, and drags, by which one is moved.
const MOST_STRIKES = 60;
const MOST_DRAGS = 4;

// What moves a slider on: a key that it hears, so many times, or else the mouse from one point of the
// document to another. Neither once it is there, or cannot get there.
async function slide(number, wanted) {
  const slider = elementOf(number);
  if (!slider) return JSON.stringify({ gone: true });
  await frame();
  const [value, least, most] = [["now", NaN], ["min", 0], ["max", 100]].map(([part, other]) => {
    const said = attribute(slider, `aria-value${part}`);
    return said === null ? other : Number.parseFloat(said);
  });
  const tells = (more) => JSON.stringify({ value: Number.isNaN(value) ? "" : String(value), holds: value === wanted, ...more });
  if (sliding?.number !== number || sliding.wanted !== wanted) {
    sliding = { number, wanted, was: null, step: 0, strikes: 0, drags: 0, isDeaf: slider.tabIndex < 0, back: false, off: 0 };
    slider.focus({ preventScroll: true });
  }
  const way = sliding;
  const isOver = Number.isNaN(value) || value === wanted || wanted < least || wanted > most;
  if (isOver) return over(tells);
  if (way.was !== null && way.strikes && !way.drags) {
    if (value === way.was) way.isDeaf = true;
    // The first strike tells how far one goes, and which way.
    else if (!way.step) {
      way.step = Math.abs(value - way.was);
      way.back = Math.abs(wanted - value) > Math.abs(wanted - way.was);
    } else if (Math.abs(wanted - value) < way.step) return over(tells);
  }
  way.was = value;
  const strikes = way.step ? Math.round(Math.abs(wanted - value) / way.step) : 1;
  if (!way.isDeaf && strikes > 0 && way.strikes + strikes <= MOST_STRIKES) {
    way.strikes += strikes;
    const isMore = wanted > value !== way.back;
    return tells({ keys: [isMore ? "ArrowRight" : "ArrowLeft", strikes] });
  }
  way.drags += 1;
  way.off += way.drags > 1 ? (wanted - value) / (most - least) : 0;
  const part = (number) => (number - least) / (most - least);
  return way.drags <= MOST_DRAGS ? tells({ drag: pathOnTrack(slider, part(value), part(wanted) + way.off) }) : over(tells);
}

function over(tells) {
  sliding = null;
  return tells({});
}

// From the handle of a slider, or from a part of its track, to another part of it.
function pathOnTrack(slider, from, to) {
  const handle = slider.getBoundingClientRect();
  const isLong = (box) => Math.max(box.width, box.height) >= 3 * Math.min(box.width, box.height);
  let track = slider;
  while (around(track) && !isLong(track.getBoundingClientRect())) track = around(track);
  const box = track.getBoundingClientRect();
  const isUpright = box.height > box.width;
  const at = (part) => {
    const inside = Math.min(Math.max(part, 0), 1);
    return isUpright ? [box.x + box.width / 2, box.bottom - 1 - (box.height - 2) * inside] : [box.x + 1 + (box.width - 2) * inside, box.y + box.height / 2];
  };
  const start = track === slider ? at(from) : [handle.x + handle.width / 2, handle.y + handle.height / 2];
  return [...start, ...at(to)];
}

// Everything in the field that has the keyboard.
function selectAll() {
  const field = keyboard();
  if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) field.select();
  else getSelection().selectAllChildren(nearest(field, EDITABLE) || field);
  return "true";
}

// Behind everything in the field that has the keyboard.
function toEnd() {
  const field = keyboard();
  if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) {
    // Fields for numbers and addresses of mail have no selection to be set.
    if (field.selectionStart !== null) field.setSelectionRange(field.value.length, field.value.length);
  } else {
    getSelection().selectAllChildren(nearest(field, EDITABLE) || field);
    getSelection().collapseToEnd();
  }
  return "true";
}

// The same, unless something is selected there, which typing replaces.
const toEndUnlessSelected = () => (hasSelection() ? "true" : toEnd());

// Gives the keyboard to an element; tells whether it took it, and how text gets in where it is.
function focus(number, take) {
  const element = controlOf(number);
  if (!element) return JSON.stringify({ gone: true });
  const takes = element.tabIndex < 0 && coreOf(element) || element;
  if (take) takes.focus({ preventScroll: true });
  const now = keyboard();
  return JSON.stringify({
    has: isWithin(now, element) || isWithin(element, now) && matches(now, EDITABLE),
    exactly: now === element, number: numberOf(now), kind: kindOf(now), words: words(now),
  });
}

// Frames in which a page may hand on the keyboard after a click, and a key may open a field.
const OPENS_WITHIN = 5;

// Like `focus`, once the element has the keyboard or does not get it.
async function focusSoon(number) {
  for (let at = 0; at < OPENS_WITHIN && !JSON.parse(focus(number, false)).has; at += 1) await frame();
  return focus(number, false);
}

let cellText = "";

// Remembers what stands in a cell before keys come.
function beforeKeys(number) {
  cellText = tidy(controlOf(number)?.innerText || "");
  return "true";
}

// Whether the field that the first letter opened has taken it, so that only the rest is to come. Else
// it is ready for the whole text; without a field, keys go on to the cell.
async function afterFirst(letter, replace) {
  const takesText = () => ["line", "text", "rich"].includes(kindOf(keyboard()));
  for (let at = 0; at < OPENS_WITHIN && !takesText(); at += 1) await frame();
  if (!takesText()) return JSON.stringify(true);
  await frame();
  const value = tidy(keyboard().value ?? keyboard().innerText);
  if (value === letter || !replace && value === cellText + letter) return JSON.stringify(true);
  if (replace) selectAll();
  else toEnd();
  return JSON.stringify(false);
}

// What stands in the field that has the keyboard, unless it is a secret.
function typedText() {
  const field = keyboard();
  const text = isSecret(field) || kindOf(field) === "keys" ? null : field.value ?? null;
  return JSON.stringify(text && text.slice(0, 500));
}

function heldBy(field) {
  if (isSecret(field)) return field.value ? MASK : "";
  return field instanceof HTMLSelectElement ? chosenNames(field)[0] || "" : field.value;
}

// The characters of all text in an element, each with where it stands; white space is one space.
function lettersOf(element) {
  const letters = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!around(node)?.checkVisibility()) continue;
    for (let at = 0; at < node.data.length && letters.length < MOST_LETTERS; at += 1) {
      const letter = /\s/.test(node.data[at]) ? " " : node.data[at];
      if (letter !== " " || letters.length && letters[letters.length - 1].letter !== " ") letters.push({ letter, node, at });
    }
  }
  return letters;
}

// From the first to the last letter of words in an element; of all of it without words.
function rangeOf(element, wanted) {
  const letters = lettersOf(element);
  const text = letters.map((one) => one.letter).join("");
  const start = text.indexOf(wanted);
  const [first, last] = [letters[start], letters[(wanted ? start + wanted.length : text.trimEnd().length) - 1]];
  if (start < 0 || !first || !last) return null;
  const range = document.createRange();
  range.setStart(first.node, first.at);
  range.setEnd(last.node, last.at + 1);
  return range;
}

// Selects words in an element, or all of it.
function select(number, text) {
  const element = number ? controlOf(number) : document.body;
  if (!element) return JSON.stringify({ gone: true });
  if (matches(element, FIELD) && element.select) {
    const start = element.value.indexOf(text);
    if (start < 0) return JSON.stringify({ is: false });
    element.focus({ preventScroll: true });
    element.select();
    if (text && element.selectionStart !== null) element.setSelectionRange(start, start + text.length);
    return JSON.stringify({ is: true });
  }
  const range = rangeOf(element, tidy(text));
  if (!range) return JSON.stringify({ is: false });
  nearest(around(range.startContainer), EDITABLE)?.focus({ preventScroll: true });
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  return JSON.stringify({ is: true });
}

// Characters of one text.
const MOST_READ = 4_000_000;

// What stands in shadow roots: it is no part of the text of what holds them.
function shadowTexts(element) {
  const inner = [element, ...Element.prototype.querySelectorAll.call(element, "*")].map(rootOf).filter((root) => root);
  const shown = inner.flatMap((root) => [...root.children]).filter((one) => one.checkVisibility());
  return shown.flatMap((one) => [one.innerText ?? "", ...shadowTexts(one)]);
}

// The text of an element, or of the document, as it is shown. That of a PDF is no document.
function read(number) {
  const element = number ? elementOf(number) : document.body;
  if (!element) return JSON.stringify({ gone: true });
  const field = number ? controlOf(number) : null;
  const isField = field && matches(field, FIELD) && !isTicked(field);
  const isShown = number || element.checkVisibility();
  const texts = () => [element.innerText ?? element.textContent ?? "", ...shadowTexts(element)].join("\n");
  const text = isField ? heldBy(field) : isShown ? texts() : "";
  return JSON.stringify({ text: withoutSecrets(text).slice(0, MOST_READ), pdf: document.contentType === "application/pdf" });
}

// The bytes of the document as the server sent it, in base64; empty if there are more than `most`.
async function bytes(most) {
  const blob = await (await fetch(document.URL, { cache: "force-cache" })).blob();
  const reader = new FileReader();
  const read = new Promise((done) => { reader.onloadend = () => done(reader.result || ""); });
  reader.readAsDataURL(blob.size > most ? new Blob() : blob);
  const url = await read;
  return JSON.stringify(url.slice(url.indexOf(",") + 1));
}

// The box that scrolls when the wheel turns over an element.
function scrollerOf(element, direction) {
  const across = direction === "left" || direction === "right";
  for (let at = element; at; at = around(at)) {
    const room = across ? at.scrollWidth - at.clientWidth : at.scrollHeight - at.clientHeight;
    const flow = getComputedStyle(at)[across ? "overflowX" : "overflowY"];
    if (room > 0 && /auto|scroll/.test(flow)) return at;
  }
  return document.scrollingElement || document.documentElement;
}

let lastScrolled = null;

// What lies in the middle of a page that does not scroll itself, as one with a bar and a pane.
function middle(direction) {
  const root = document.scrollingElement || document.documentElement;
  const across = direction === "left" || direction === "right";
  const isFixed = [root, document.body].some((one) => one && /hidden|clip/.test(getComputedStyle(one)[across ? "overflowX" : "overflowY"]));
  const room = across ? root.scrollWidth - root.clientWidth : root.scrollHeight - root.clientHeight;
  return room > 0 && !isFixed ? null : hitAt(innerWidth / 2, innerHeight / 2);
}

// The same for the element of a number. A list that draws only what is in view takes away the very
// element that it was scrolled on.
function scrollerFor(number, direction) {
  const element = number ? elementOf(number) : middle(direction);
  if (number && !element) return lastScrolled?.number === number ? lastScrolled.box : null;
  const box = scrollerOf(element, direction);
  lastScrolled = { number, box };
  return box;
}

function scrollState(number, direction) {
  const box = scrollerFor(number, direction);
  if (!box) return JSON.stringify({ gone: true });
  return JSON.stringify({
    x: box.scrollLeft, y: box.scrollTop, across: box.scrollWidth, down: box.scrollHeight,
    width: box.clientWidth, height: box.clientHeight, middle: [innerWidth / 2, innerHeight / 2],
  });
}

// Until scrolling from a place has begun and is over, or does not begin.
async function scrolled(number, direction, x, y, limit) {
  const box = scrollerFor(number, direction);
  if (!box) return JSON.stringify({ gone: true });
  const end = performance.now() + limit;
  let [left, top, still] = [box.scrollLeft, box.scrollTop, 0];
  while (performance.now() < end) {
    await frame();
    still = left === box.scrollLeft && top === box.scrollTop ? still + 1 : 0;
    [left, top] = [box.scrollLeft, box.scrollTop];
    // The first frames after a turn of the wheel may still be the old ones.
    const began = left !== x || top !== y;
    if (still >= (began ? 3 : 12)) break;
  }
  return scrollState(number, direction);
}
