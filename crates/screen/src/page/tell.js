// Decides what of an element is told, and tells it.

// The element itself, if a person could perceive or use it; null if it is only a box.
function tell(w, element, look, outer, at) {
  const { name, style, display, overflow, isViewport } = look;
  const role = roleOf(element);
  const isOperable = OPERABLE.has(role);
  if (isOperable) {
    if (name === "option" || w.labelled.has(element)) return null;
    if (w.run) w.run.uses += 1;
  }
  const isBox = !isOperable && !isViewport;
  const isClickable = isBox && !(name === "label" && element.control) && (outer.isUsed ? isApart(element, role, style, outer)
    : items.has(element) || (isForClicks(element, style, outer) || listensForItself(element, role)) && !isAroundItems(element, style, role, outer));
  const scrolls = !isViewport && overflow !== "visible" && canScroll(element, overflow);
  // Something is dragged, or dropped on it.
  const moves = isBox && (droppedOn.has(element) ? STATE.droppable : 0) | (element.getAttribute("draggable") === "true" ? STATE.draggable : 0);
  if (!isOperable && !isClickable && !scrolls && !moves && !TOLD.has(role)) return null;
  if (role === "img" && !isClickable && !moves && (outer.isQuiet || outer.isUsed)) return null;
  if (!at.isShown && (style.visibility !== "visible" || !element.checkVisibility())) return null;
  let box = boxOf(element, display);
  let { room } = at;
  const isField = isOperable && (FIELDS.has(name) || element.labels?.length);
  if (isField && !(at.isShown ? isBoxOfOwn(element, box) && !isClippedAway(element) : hasOwnBox(element))) {
    const standIn = standInOf(element);
    if (standIn === element && element.labels?.length) return null;
    if (standIn !== element) {
      w.labelled.add(element);
      box = edges(standIn.getBoundingClientRect());
      room = at.outside || room;
    }
  }
  const area = (box[2] - box[0]) * (box[3] - box[1]);
  if (isOperable && area <= 0 || role === "canvas" && area <= 2) return null;
  if (!at.isShown && !w.labelled.has(element) && !(isOperable && isUsable(element, name, box, at))) return null;
  let bits = (isClickable ? STATE.clickable : 0) | moves;
  if (scrolls) bits |= STATE.scrolls;
  if (w.run && isClickable) w.run.uses += 1;
  const node = tellAs(w, element, role || "generic", box, at, bits, room);
  if (!node) return null;
  if (isOperable) at.isUsed = true;
  return node;
}

// Ways of using what has no role of use, and those by which it is one thing with all its words.
const TAKEN = STATE.clickable | STATE.draggable;
const USES = TAKEN | STATE.droppable;

// With its name, value and states, at a box that need not be its own.
function tellAs(w, element, role, box, at, bits = 0, { seen, reach } = at.room) {
  const isOperable = OPERABLE.has(role);
  const uses = isOperable || bits & USES;
  bits |= statesOf(element, role);
  if (at.isInert) bits |= STATE.disabled;
  if (element === w.focused) bits |= STATE.focused;
  const hasArea = box[2] > box[0] && box[3] > box[1];
  if (hasArea && isEmpty(overlap(box, seen)) && !isOnEdge(box, seen)) {
    // What no scrolling shows may still be reached with keys; what is folded away may not.
    if (isEmpty(overlap(box, reach)) && !isOnEdge(box, reach) && (!isOperable || isEmpty(reach))) return null;
    bits |= STATE.outOfView;
  } else if (uses && hasArea && w.hits < MAX_HITS) {
    w.hits += 1;
    if (isCovered(element, box, seen)) bits |= STATE.covered;
  }
  const isTaken = bits & TAKEN && !isOperable && (!TOLD.has(role) || ONE_OF_MANY.has(role));
  const said = isTaken ? labelOfBox(element, role) : bits & STATE.droppable ? nameOfZone(element) : nameOf(element, role);
  const whole = said || (uses ? iconWords(element) : "");
  const isWhole = whole.length <= MAX_NAME;
  if (role === "img" && !whole && !uses && isDecoration(element, box)) return null;
  const name = isWhole ? whole : isOperable || !NAMED_BY_CONTENT.has(role) && role !== "generic" ? bounded(whole, MAX_NAME) : "";
  const node = { number: numberOf(element), role, name, value: valueTold(w, element, role, bits), bits, box, depth: at.depth, run: w.run, isWhole, address: role === "link" ? addressOf(element) : null };
  w.nodes.push(node);
  w.told += 1;
  w.chars += name.length + (node.value?.length || 0) + (node.address?.length || 0);
  return node;
}

// Said to be by its page, or too small to show a thing.
function isDecoration(image, box) {
  return image.getAttribute("alt") === "" || box[2] - box[0] < SMALLEST_IMAGE || box[3] - box[1] < SMALLEST_IMAGE;
}

// Where a link leads, if that is to the web.
function addressOf(link) {
  const address = link.localName === "a" || link.localName === "area" ? link.href : "";
  return /^https?:/.test(address) && address.length <= MAX_ADDRESS ? withoutSecrets(address) : null;
}

// What is all thinner than `isEmpty` asks for, as a line is, and lies in the room.
function isOnEdge(box, room) {
  const part = overlap(box, room);
  return isEmpty(box) && Math.max(box[2] - box[0], box[3] - box[1]) > 3 && part[2] > part[0] && part[3] > part[1];
}

function valueTold(w, element, role, bits) {
  if (bits & STATE.masked) {
    w.secrets.push(element);
    return element.value ? MASK : "";
  }
  const value = valueOf(element, role);
  return value === null || value === undefined ? null : bounded(withoutSecrets(value), MAX_VALUE);
}

// A box that reacts to clicks is called by the words in it, unless they name what can be ticked there.
function labelOfBox(element, role) {
  const name = nameOf(element, "generic") || (SHAPES.has(element.localName) ? nameOfShape(element) : "");
  return name || !ONE_OF_MANY.has(role) && element.querySelector(TICKED) ? name : withoutSecrets(textOf(element));
}

const TICKED = "input[type=radio], input[type=checkbox], [role=radio], [role=checkbox], [role=switch]";

// A shape of a drawing is called by its title or, if it is the only one in its group, by the group's.
function nameOfShape(shape) {
  const group = shape.parentNode;
  const isAlone = group.localName === "g" && Array.prototype.filter.call(group.children, (one) => SHAPES.has(one.localName)).length === 1;
  return withoutSecrets(tidy(svgName(shape) || (isAlone ? svgName(group) || textOf(group) : "")));
}

// Cursors that say that something can be clicked or dragged.
const HANDS = new Set(["pointer", "grab"]);

// Nothing tells which elements a page listens on; these are its ways to say so. A component whose
// control lies in its shadow has the hand for that.
function isForClicks(element, style, outer) {
  if (HANDS.has(style.cursor) && outer.style?.cursor !== style.cursor) return !rootOf(element)?.querySelector(USED);
  if (!element.hasAttributes()) return false;
  if (element.hasAttribute("onclick")) return true;
  // Of the cells of a grid only one is reached by keys; all of them are made to be used.
  const isCell = element.getAttribute("role") === "gridcell";
  if (isCell && listening.has(element.closest("[role=grid], [role=treegrid]")) && !holdsUsed(element)) return true;
  const isReached = element.tabIndex >= 0 || isCell;
  return element.hasAttribute("tabindex") && isReached && !isEditingHost(element);
}

// A part of a drawing, as a marked region of a map.
function tellShape(w, element, outer) {
  if (outer.isUsed || !outer.isShown) return;
  const style = styleOf(element);
  const isUsed = isForClicks(element, style, outer) || listening.has(element) || isOnMap(element);
  if (!isUsed || !isDrawn(element)) return;
  const box = edges(element.getBoundingClientRect());
  if (!isEmpty(box)) tellAs(w, element, roleOf(element) || "generic", box, outer, STATE.clickable);
}

// Whether a drawing that listens tells a shape from the others.
function isOnMap(shape) {
  const map = shape.ownerSVGElement;
  return listening.has(map) && (shape.id !== "" || Object.keys(shape.dataset).length > 0 || svgName(shape) !== "");
}

// A line that is thin to see often lies below a wide one that only takes the mouse.
function isDrawn(shape) {
  if (shape.checkVisibility(PAINTED)) return true;
  const isBelow = (one) => one !== shape && SHAPES.has(one.localName) && one.checkVisibility(PAINTED) && isAbout(one, shape);
  return shape.checkVisibility(VISIBLE) && Array.prototype.some.call(shape.parentNode.children, isBelow);
}

const ABOUT = 4;
const isAbout = (one, other) => {
  const [box, its] = [edges(one.getBoundingClientRect()), edges(other.getBoundingClientRect())];
  return box.every((edge, side) => Math.abs(edge - its[side]) <= ABOUT);
};

// Something of its own within what is used, as the cross on a chip.
function isApart(element, role, style, outer) {
  if (!isForClicks(element, style, outer) && !listensForItself(element, role)) return false;
  const { width, height } = element.getBoundingClientRect();
  const [left, top, right, bottom] = outer.parent.box;
  return 2 * width * height < (right - left) * (bottom - top);
}

// What is not painted may still take clicks: fields that lie over a painted box.
function isUsable(element, name, box, at) {
  if (at.style.visibility !== "visible") return false;
  // A page keeps some for itself: neither eyes nor keys find them.
  if (name === "input" || name === "select") return element.tabIndex >= 0 || element.getAttribute("aria-hidden") !== "true";
  const part = overlap(box, at.room.seen);
  if (isEmpty(part)) return false;
  const hit = hitAt((part[0] + part[2]) / 2, (part[1] + part[3]) / 2);
  return !!hit && contains(element, hit);
}

// What lies in elements whose children are not painted as they stand.
function enter(w, element, name, at, outer) {
  switch (name) {
    case "select":
      if (at.parent !== outer.parent) tellOptions(w, element, at);
      break;
    case "img":
      if (element.useMap) tellAreas(w, element, at);
      break;
    case "iframe": case "frame": case "object": case "embed":
      tellFrame(w, element, name, at);
      break;
    default:
  }
}

function tellOptions(w, select, at) {
  const isSecretField = !!(at.parent.bits & STATE.masked);
  const { options } = select;
  const names = optionNames(select);
  for (let index = 0; index < options.length && index < MAX_OPTIONS; index++) {
    const option = options[index];
    if (!isPaintable(option) || groupOf(option) && !isPaintable(groupOf(option))) continue;
    const rect = option.getBoundingClientRect();
    const box = rect.width > 0 && rect.height > 0 ? edges(rect) : null;
    let bits = statesOf(option, "option");
    if (isSecretField) bits &= ~STATE.selected;
    if (box && isEmpty(overlap(box, at.parent.box))) bits |= STATE.outOfView;
    w.nodes.push({ number: numberOf(option), role: "option", name: bounded(names[index], MAX_NAME), value: null, bits, box, depth: at.depth, run: w.run });
    w.told += 1;
  }
  if (options.length > MAX_OPTIONS) {
    w.unread.push(`${options.length - MAX_OPTIONS} more options of “${bounded(at.parent.name, 60)}”`);
  }
}

function tellAreas(w, image, at) {
  const map = image.getRootNode().querySelector(`map[name="${CSS.escape(image.useMap.replace(/^#/, ""))}"]`);
  const outer = image.getBoundingClientRect();
  for (const area of map?.areas || []) {
    if (!area.hasAttribute("href") && !area.hasAttribute("onclick")) continue;
    tellAs(w, area, "link", boxOfArea(area, outer), at);
  }
}

function boxOfArea(area, image) {
  const numbers = area.coords.split(",").map(Number);
  if (area.shape === "default" || !numbers.every(Number.isFinite) || numbers.length < 3) return edges(image);
  if (area.shape === "circle") {
    const [x, y, radius] = numbers;
    return [image.left + x - radius, image.top + y - radius, image.left + x + radius, image.top + y + radius];
  }
  const across = numbers.filter((_, index) => index % 2 === 0);
  const down = numbers.filter((_, index) => index % 2 === 1);
  return [image.left + Math.min(...across), image.top + Math.min(...down),
    image.left + Math.max(...across), image.top + Math.max(...down)];
}

function tellFrame(w, element, name, at) {
  const rect = element.getBoundingClientRect();
  if (rect.width < 3 || rect.height < 3 || !at.isShown) return;
  const id = frameIds.get(element);
  if (!id && (name === "object" || name === "embed")) {
    const kind = element.type || "another kind";
    const how = /pdf$/.test(kind) ? "`extract` reads its text with that of the page" : "only pages can be read";
    w.unread.push(`an embedded document of ${bounded(kind, 60)} at ${Math.round(rect.left)},${Math.round(rect.top)}: ${how}`);
    return;
  }
  const style = getComputedStyle(element);
  const across = element.offsetWidth ? rect.width / element.offsetWidth : 1;
  const down = element.offsetHeight ? rect.height / element.offsetHeight : 1;
  const [left, top] = [parseFloat(style.paddingLeft) + element.clientLeft, parseFloat(style.paddingTop) + element.clientTop];
  const [right, bottom] = [parseFloat(style.paddingRight) + parseFloat(style.borderRightWidth), parseFloat(style.paddingBottom) + parseFloat(style.borderBottomWidth)];
  const box = [rect.left + left * across, rect.top + top * down, rect.right - right * across, rect.bottom - bottom * down];
  const seen = overlap(box, at.room.seen);
  const covered = isEmpty(seen) ? [] : coveredCells(element, seen);
  w.nodes.push({ frame: id || "", box, seen, covered, depth: at.depth, run: null });
}

// Where secrets stand at this moment, to be painted over.
function secretBoxes() {
  const boxes = [];
  for (const weak of secretFields) {
    const field = weak.deref();
    if (!field?.isConnected || !field.value) continue;
    const { x, y, width, height } = field.getBoundingClientRect();
    if (width > 0 && height > 0) boxes.push([x, y, width, height]);
  }
  return JSON.stringify(boxes);
}
