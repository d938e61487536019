// What is used by the mouse without a role that says so: what listens, what shows more when it is
// pointed at, what things are dropped on, and the items of a box that listens for all of them.

// As the browser tells them (bits as in view/listeners.rs), and what stands around those that are
// pressed.
const [PRESSED, POINTED_AT, DROPPED_ON] = [1, 2, 4];
const listening = new WeakSet();
const aroundListening = new WeakSet();
const pointedAt = new WeakSet();
const droppedOn = new WeakSet();

// Elements, each followed by its uses.
function hear(heard) {
  for (let index = 0; index < heard.length; index += 2) {
    const [element, uses] = [heard[index], heard[index + 1]];
    if (!(element instanceof Element)) continue;
    if (uses & POINTED_AT) pointedAt.add(element);
    if (uses & DROPPED_ON) droppedOn.add(element);
    if (!(uses & PRESSED)) continue;
    listening.add(element);
    for (let at = hostOrParent(element); at instanceof Element && !aroundListening.has(at); at = hostOrParent(at)) aroundListening.add(at);
  }
}

// What is used by itself.
const USED = "a[href], button, input:not([type=hidden]), select, textarea, summary, iframe, audio, video, [tabindex], [contenteditable], " +
  [...OPERABLE].map((role) => `[role=${role}]`).join(", ");
// What is one of many, and is clicked as a whole beside what is in it.
const ONE_OF_MANY = new Set(["row", "listitem", "gridcell", "cell", "columnheader", "rowheader", "article"]);

// Whether something that is shown in a box, a shadow root or a slot is used by itself.
function holdsUsed(box) {
  if ([...box.querySelectorAll(USED)].some((one) => one.checkVisibility(VISIBLE))) return true;
  const putIn = (one) => one.localName === "slot" ? one.assignedElements() : [rootOf(one) || []].flat();
  return [box, ...box.querySelectorAll("*")].some((one) => putIn(one).some((inner) => inner.matches?.(USED) || holdsUsed(inner)));
}

// Whether it listens for itself, not for what is in it.
function listensForItself(element, role) {
  const list = role === "listitem" && hostOrParent(element);
  // A list that listens does so for its items, as one that is sorted by dragging.
  if (list && listening.has(list) && roleOf(list) === "list") return !holdsUsed(element);
  if (role === "list") return false;
  if (listening.has(element) && ONE_OF_MANY.has(role)) return true;
  if (showsMore(element, role)) return true;
  return listening.has(element) && !holdsListening(element) && !holdsUsed(element);
}

// Whether something that is shown in a box listens by itself.
const holdsListening = (box) => aroundListening.has(box) && (rootOf(box) !== null ||
  [...box.querySelectorAll("*")].some((one) => (listening.has(one) || rootOf(one) && aroundListening.has(one)) && one.checkVisibility(VISIBLE)));

// Whether something in it, or beside it, is shown when it is pointed at. What is shown by now is used
// itself.
function showsMore(element, role) {
  const bySheet = revealing !== "" && element.matches(revealing);
  if (!bySheet && (!pointedAt.has(element) || aroundListening.has(element))) return false;
  const inner = [...element.querySelectorAll(USED)];
  // To listen alone says little of a row or an item.
  return (bySheet || !role || inner.length > 0) && !inner.some((one) => one.checkVisibility(PAINTED)) && (inner.length > 0 || !holdsUsed(element));
}

// The elements that a box shows, which could be items.
function shownIn(box) {
  return Array.prototype.filter.call(childrenOf(box), (one) => {
    if (one.nodeType !== ELEMENT || SILENT.has(one.localName) || !one.checkVisibility(VISIBLE)) return false;
    const { width, height } = one.getBoundingClientRect();
    return width > 2 && height > 2;
  });
}

const ITEMS = new Set(["div", "li", "span", "td", "tr", "dt", "dd", "label", "b", "i", "img", "a", "article", "section"]);
const OF_LISTS = new Set(["li", "td", "tr", "dd"]);
const kindOfItem = (one) => one.localName + " " + (one.classList[0] || "");
// Whether two are of one kind and used alike.
const isSimilar = (one, other) => one !== other && kindOfItem(one) === kindOfItem(other)
  && listening.has(one) === listening.has(other) && styleOf(one).cursor === styleOf(other).cursor;
// How deep items lie in the box that listens for them.
const MOST_LEVELS = 4;

// Those of one kind that are most of a level: of boxes without a class or another attribute, three at
// least.
function alike(level) {
  const kinds = Map.groupBy(level, kindOfItem);
  const [most] = [...kinds.values()].sort((one, other) => other.length - one.length);
  if (!most || most.length < 2 || 2 * most.length < level.length) return [];
  const isItem = (one) => (ITEMS.has(one.localName) || one.localName.includes("-")) && (one.localName !== "img" || one.alt || one.title);
  return most.every(isItem) && (most.length > 2 || most.every((one) => one.hasAttributes() || OF_LISTS.has(one.localName))) ? most : [];
}

// As many like it, most of all that stand there, make a box an item itself.
const MANY = 3;

function isOneOfMany(box) {
  const all = hostOrParent(box)?.children || [];
  const similar = Array.prototype.filter.call(all, (one) => isSimilar(one, box)).length;
  return similar >= MANY && 2 * similar >= all.length - 1;
}

// Items of a box that takes the clicks of all of them, as a menu, a palette or a calendar.
function itemsIn(box) {
  if (isOneOfMany(box)) return [];
  let level = shownIn(box);
  for (let depth = 0; depth < MOST_LEVELS && level.length && level.length <= MAX_OPTIONS; depth += 1) {
    const isTable = level.every((one) => one.localName === "tr") && level.some((one) => one.querySelector("th"));
    // Below a head the rows are the items, without one the cells.
    if (isTable) return level.filter((one) => one.querySelector("td"));
    const found = alike(level);
    const inner = level.map(shownIn);
    const areGroups = found.length && inner.filter((one) => alike(one).length > 0).length * 2 > level.length;
    if (found.length && !areGroups) return found;
    level = inner.flat();
  }
  return [];
}

const items = new WeakSet();

// Whether a box takes clicks for the items in it, which are known from then on.
function isAroundItems(element, style, role, outer) {
  if (ONE_OF_MANY.has(role) || element.hasAttribute("draggable") || holdsUsed(element)) return false;
  if (!listening.has(element) && !(style.cursor === "pointer" && outer.style?.cursor !== "pointer")) return false;
  const found = itemsIn(element);
  for (const one of found) items.add(one);
  return found.length > 0;
}

// What a box that things are dropped on is called: its heading, its own words, or what stands before it.
function nameOfZone(zone) {
  const own = nameOf(zone, "generic") || tidy(zone.querySelector("h1, h2, h3, h4, h5, h6, legend")?.textContent || "");
  if (own) return own;
  const direct = Array.prototype.filter.call(zone.childNodes, (one) => one.nodeType === TEXT);
  const before = zone.previousElementSibling;
  const said = tidy(direct.map((one) => one.data).join(" ")) || tidy(before && !droppedOn.has(before) && before.innerText || "");
  return withoutSecrets(said.length <= MAX_ZONE ? said : "");
}

const MAX_ZONE = 80;
