// What of a box can be seen, and what scrolling could bring into view. Rectangles are
// [left, top, right, bottom] in the frame's own pixels.
function edges(rect) {
  return [rect.left, rect.top, rect.right, rect.bottom];
}

function overlap(one, other) {
  return [Math.max(one[0], other[0]), Math.max(one[1], other[1]),
    Math.min(one[2], other[2]), Math.min(one[3], other[3])];
}

// A pixel or two is what is left of text that only screen readers are to find.
function isEmpty([left, top, right, bottom]) {
  return right <= left || bottom <= top || (right - left) * (bottom - top) <= 2;
}

function union(one, other) {
  if (one[2] <= one[0] && one[3] <= one[1]) return other;
  if (other[2] <= other[0] && other[3] <= other[1]) return one;
  return [Math.min(one[0], other[0]), Math.min(one[1], other[1]),
    Math.max(one[2], other[2]), Math.max(one[3], other[3])];
}

// The room of a document: its viewport, and all that its scroll bars reach.
function roomOf(root) {
  const left = -root.scrollLeft;
  const over = root.scrollWidth - root.clientWidth;
  const start = getComputedStyle(root).direction === "rtl" ? left - over : left;
  const seen = [0, 0, innerWidth, innerHeight];
  return {
    seen,
    reach: [start, -root.scrollTop, start + root.scrollWidth, root.scrollHeight - root.scrollTop],
  };
}

// The room inside of an element that clips what is in it.
function roomInside(element, overflow, room) {
  const box = element.getBoundingClientRect();
  const across = element.offsetWidth ? box.width / element.offsetWidth : 1;
  const down = element.offsetHeight ? box.height / element.offsetHeight : 1;
  const left = box.left + element.clientLeft * across;
  const top = box.top + element.clientTop * down;
  const inner = [left, top, left + element.clientWidth * across, top + element.clientHeight * down];
  const seen = overlap(room.seen, inner);
  const shown = overlap(room.reach, inner);
  const [x, y = x] = overflow.split(" ");
  const scrolls = (axis) => axis === "auto" || axis === "scroll";
  // What cannot be reached itself brings nothing into view.
  if (isEmpty(shown)) return { seen, reach: shown };
  const reach = shown.slice();
  if (scrolls(x)) {
    const over = (element.scrollWidth - element.clientWidth) * across;
    const start = left - element.scrollLeft * across;
    reach[0] = element.scrollLeft < 0 ? start - over : start;
    reach[2] = start + element.scrollWidth * across;
  }
  if (scrolls(y)) {
    reach[1] = top - element.scrollTop * down;
    reach[3] = reach[1] + element.scrollHeight * down;
  }
  return { seen, reach };
}

function canScroll(element, overflow) {
  if (!/auto|scroll/.test(overflow)) return false;
  return element.scrollHeight > element.clientHeight + 1 || element.scrollWidth > element.clientWidth + 1;
}

// Of an element, in one rectangle. A link around a picture is as large as the picture.
function boxOf(element, display) {
  let box = edges(element.getBoundingClientRect());
  const only = element.firstElementChild;
  const isSmall = box[2] - box[0] < 2 || box[3] - box[1] < 2;
  if (isSmall || display === "inline" && only && /^(img|svg|picture|canvas|video)$/.test(only.localName)) {
    for (const child of element.children) {
      box = union(box, edges(child.getBoundingClientRect()));
    }
  }
  return isEmpty(box) && display === "contents" ? boxOfContents(element) : box;
}

// One for all: a document keeps track of every range until it is collected.
const range = document.createRange();

function boxOfContents(node) {
  range.selectNodeContents(node);
  return edges(range.getBoundingClientRect());
}

function boxOfRun({ first, last }, element) {
  if (!first) return edges(element.getBoundingClientRect());
  if (first === last) return boxOfContents(first);
  range.setStart(first, 0);
  range.setEnd(last, last.data.length);
  if (range.startContainer === first) return edges(range.getBoundingClientRect());
  // They stand in different trees.
  return union(boxOfContents(first), boxOfContents(last));
}

// Whether a field can be seen itself. Else its label, or the box around it, is what a person clicks.
function hasOwnBox(field) {
  return field.checkVisibility(VISIBLE) && isBoxOfOwn(field, edges(field.getBoundingClientRect())) && !isClippedAway(field);
}

const VISIBLE = { visibilityProperty: true };
const OPAQUE_TOO = { visibilityProperty: true, opacityProperty: true };

function isBoxOfOwn(element, [left, top, right, bottom]) {
  if (right - left <= 2 || bottom - top <= 2) return false;
  if (right > 0 && bottom > 0) return true;
  // What lies before the beginning of the page and of all that scrolls is where no scrolling reaches.
  let [across, down] = [0, 0];
  for (let at = element; at instanceof Element; at = hostOrParent(at)) {
    across += at.scrollLeft;
    down += at.scrollTop;
  }
  return right > -across && bottom > -down;
}

// How many elements around a field are looked at for one that shows nothing of what is in it.
const MOST_WRAPPERS = 4;
const CLIPS_ALL = /^(inset\((50|100)%|circle\(0)/;

// The wrapper, or the field itself, that leaves nothing to be seen: for screen readers, pages keep
// native fields in boxes of one pixel.
function clipOf(field) {
  let isAbsolute = false;
  for (let at = field, level = 0; at && at !== document.body && level <= MOST_WRAPPERS; at = hostOrParent(at), level += 1) {
    const style = styleOf(at);
    const { position } = style;
    const isOut = position === "absolute" || position === "fixed";
    if (CLIPS_ALL.test(style.clipPath) || isOut && isEmptyClip(style.clip)) return at;
    const holds = at !== field && (!isAbsolute || position !== "static");
    if (holds && overflowOf(style) !== "visible" && style.display !== "contents" && Math.max(at.clientWidth, at.clientHeight) <= 2) return at;
    isAbsolute = isOut || isAbsolute && position === "static";
  }
  return null;
}

const isClippedAway = (field) => clipOf(field) !== null;

function isEmptyClip(clip) {
  const sides = clip.match(/-?[\d.]+px/g)?.map(parseFloat) || [];
  return sides.length === 4 && (sides[1] - sides[3] <= 1 || sides[2] - sides[0] <= 1);
}

// What is clicked instead of a field that has no box of its own, or the element itself: a label, or
// the painted box that the hidden wrapper of the field stands in.
function standInOf(element) {
  if (!FIELDS.has(element.localName) && !element.labels?.length || hasOwnBox(element)) return element;
  for (const label of element.labels || []) {
    if (label.checkVisibility(OPAQUE_TOO) && !isClippedAway(label)) return label;
  }
  if (element.tabIndex < 0 || element.closest("[aria-hidden=true]")) return element;
  const wrapper = clipOf(element);
  const box = wrapper && hostOrParent(wrapper);
  const stands = box instanceof Element && box.checkVisibility(OPAQUE_TOO) && isBoxOfOwn(box, edges(box.getBoundingClientRect()));
  return stands && box.querySelectorAll(USED).length === 1 ? box : element;
}

const FIELDS = new Set(["input", "select", "textarea"]);

// Whether something else lies over the middle of what is seen of an element.
function isCovered(element, box, seen) {
  let best = box;
  const rects = element.getClientRects();
  if (rects.length > 1) {
    let size = 0;
    for (const rect of rects) {
      const part = overlap(edges(rect), seen);
      const area = Math.max(0, part[2] - part[0]) * Math.max(0, part[3] - part[1]);
      if (area > size) [size, best] = [area, part];
    }
  }
  const part = overlap(best, seen);
  const hit = hitAt((part[0] + part[2]) / 2, (part[1] + part[3]) / 2);
  if (!hit) return false;
  return !(contains(element, hit) || contains(hit, element) || belongsTo(hit, element) || contains(standInOf(element), hit));
}

// A label's click goes to its field; a map's area lies over its picture.
function belongsTo(hit, element) {
  const label = hit.closest("label");
  if (label && label.control === element) return true;
  return element.localName === "label" && element.control === hit;
}

// Which cells of an 8 by 8 grid over a frame's box are covered, a number a row.
function coveredCells(frame, [left, top, right, bottom]) {
  const rows = [];
  for (let row = 0; row < 8; row++) {
    let bits = 0;
    for (let column = 0; column < 8; column++) {
      const hit = hitAt(left + ((column + 0.5) * (right - left)) / 8, top + ((row + 0.5) * (bottom - top)) / 8);
      if (hit && !contains(hit, frame)) bits |= 1 << column;
    }
    rows.push(bits);
  }
  return rows;
}
