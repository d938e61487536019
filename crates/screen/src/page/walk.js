// Reads what a person could perceive or use of this document, in reading order.
// It runs in a world of its own: it sees the page's tree and none of the page's scripts.
const MAX_VISITED = 200_000;
const MAX_TOLD = 20_000;
const MAX_CHARS = 4_000_000;
const MAX_MS = 5_000;
const MAX_OPTIONS = 500;
const MAX_HITS = 4_000;
const { TEXT_NODE: TEXT, ELEMENT_NODE: ELEMENT } = Node;
// Smaller pictures that nothing names are decoration: icons are up to 48 pixels.
const SMALLEST_IMAGE = 49;

// Nothing below them is seen but what they paint themselves.
const CLOSED = new Set(["input", "textarea", "select", "iframe", "frame", "object", "embed", "video", "audio", "canvas", "img", "progress", "meter", "math"]);

// Their words are the name of what they stand in.
const CAPTIONS = new Set(["legend", "caption", "figcaption"]);

// Neither hidden nor wholly transparent, itself or by what is around it.
const PAINTED = { visibilityProperty: true, opacityProperty: true };
const OPAQUE = { opacityProperty: true };

let secretFields = [];

// A page can take away all that it consists of.
const nothing = () => ({
  title: "", width: innerWidth, height: innerHeight, zoom: 1, left: 0, top: 0, density: devicePixelRatio,
  scroll: [0, 0, 0, 0], suspects: 0, secrets: 0, drawing: "", unread: ["the page: its document is empty"], ...listed([]),
});

function walk() {
  if (!document.documentElement) return JSON.stringify(nothing());
  const root = document.scrollingElement || document.documentElement;
  generating = generators();
  const room = roomOf(root);
  const w = {
    nodes: [], unread: [], run: null, visited: 0, told: 0, chars: 0, hits: 0, isCut: false,
    deadline: performance.now() + MAX_MS, labelled: new Set(), focused: focused(), secrets: [],
  };
  const fixed = { seen: room.seen, reach: room.seen };
  visit(w, document.documentElement, new Standing(null, null, { depth: 0, parent: null, room, absolute: room, fixed }));
  flush(w);
  if (w.isCut) w.unread.push(`the rest of the page after ${w.visited} nodes and ${w.told} elements: it is too large`);
  secretFields = w.secrets.map((element) => new WeakRef(element));
  const view = visualViewport;
  return JSON.stringify({
    title: document.title.slice(0, MAX_TEXT), width: innerWidth, height: innerHeight,
    zoom: view?.scale ?? 1, left: view?.offsetLeft ?? 0, top: view?.offsetTop ?? 0, density: devicePixelRatio,
    scroll: [Math.abs(root.scrollLeft), root.scrollTop, root.scrollWidth, root.scrollHeight],
    suspects: suspected.length, secrets: w.secrets.length, drawing: hands.stillBlank(), unread: w.unread, ...listed(w.nodes),
  });
}

// A page that is not painted gets no frames: then it is read after this many milliseconds.
const NO_FRAME = 50;

function walkOncePainted() {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, NO_FRAME);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      // After the frame's own tasks it is painted.
      setTimeout(resolve);
    });
  }).then(walk);
}

const NOWHERE = [0, 0, -1, -1];

// What is told of nodes: the frames among them by the place at which they stand.
function listed(all) {
  const nodes = [];
  const frames = [];
  const rounded = (value) => Math.round(value * 100) / 100;
  const corner = (box) => [rounded(box[0]), rounded(box[1]), rounded(box[2] - box[0]), rounded(box[3] - box[1])];
  for (const node of all) {
    if (!node) continue;
    const depth = node.depth + (node.run?.isKept ? 1 : 0);
    if (node.frame !== undefined) {
      frames.push([node.frame, corner(node.box), corner(node.seen), node.covered, nodes.length, depth]);
    } else {
      const [x, y, width, height] = node.box ? corner(node.box) : NOWHERE;
      const told = [node.number, node.role, node.name, node.value, node.bits, x, y, width, height, depth];
      if (node.address) told.push(node.address);
      nodes.push(told);
    }
  }
  return { nodes, frames };
}

function isOver(w) {
  w.visited += 1;
  w.isCut ||= w.visited > MAX_VISITED || w.told >= MAX_TOLD || w.chars > MAX_CHARS
    || (w.visited & 255) === 0 && performance.now() > w.deadline;
  return w.isCut;
}

function visit(w, element, outer) {
  const name = element.localName;
  if (SILENT.has(name)) {
    if (SHAPES.has(name)) tellShape(w, element, outer);
    return;
  }
  if (isOver(w)) return;
  if (name === "br") {
    if (w.run) w.run.text += " ";
    return;
  }
  const style = styleOf(element);
  const { display } = style;
  if (display === "none") return;
  const at = new Standing(element, style, outer);
  if (display === "contents") at.boxed = outer.boxed;
  // What is moved out of its line is a thing by itself.
  const isInline = (display.startsWith("inline") || display === "contents" || display.startsWith("ruby"))
    && (at.position !== "relative" || CLOSED.has(name)) && name !== "text";
  if (!isInline) flush(w);
  else if (!w.run) openRun(w, outer);
  const overflow = display === "inline" || display === "contents" ? "visible" : overflowOf(style);
  const isViewport = name === "html" || element === document.body;
  const node = tell(w, element, { name, style, display, overflow, isViewport }, outer, at);
  if (name === "label") stepInForField(w, element, at);
  if (CAPTIONS.has(name) && outer.parent?.name.includes(textOf(element))) at.isSilent = true;
  if (node) {
    at.parent = node;
    at.depth += 1;
    // Its words stand in its name already.
    if (node.isWhole && node.name && (NAMED_BY_CONTENT.has(node.role) || node.role === "generic" && node.bits & TAKEN)) at.isQuiet = true;
    if (node.value !== null && (node.role === "textbox" || node.role === "combobox" || node.role === "searchbox")) at.isQuiet = true;
  }
  if (overflow !== "visible" && !isViewport && !CLOSED.has(name)) clip(element, overflow, at);
  const before = w.told;
  if (CLOSED.has(name)) enter(w, element, name, at, outer);
  else visitChildren(w, element, name, at);
  if (!isInline) flush(w);
  if (node && w.told === before) endHollow(w, node, element);
}

// Where the children of an element stand, but for what the element itself becomes.
class Standing {
  constructor(element, style, outer) {
    const position = style ? style.position : "static";
    const room = position === "fixed" ? outer.fixed : position === "absolute" ? outer.absolute : outer.room;
    this.element = element;
    // The nearest element with a box: itself, unless its display is `contents`.
    this.boxed = element;
    this.style = style;
    this.position = position;
    this.depth = outer.depth;
    this.parent = outer.parent;
    this.room = room;
    // The room around a wrapper that leaves nothing of what is in it to be seen.
    this.outside = outer.outside || null;
    this.absolute = position === "static" ? outer.absolute : room;
    this.fixed = outer.fixed;
    this.isQuiet = outer.isQuiet === true;
    this.isSilent = outer.isSilent === true;
    this.isInert = outer.isInert === true || element?.inert === true;
    this.isUsed = outer.isUsed === true;
    this.isGhost = null;
    this.shown = null;
  }

  // Asked only where something would be told: most elements are nothing but boxes.
  get isShown() {
    return this.shown ??= this.boxed === null || (this.boxed === this.element ? this.element.checkVisibility(PAINTED)
      : this.style.visibility === "visible" && this.boxed.checkVisibility(OPAQUE));
  }
}

// Live, so one serves for as long as the element lives.
const styles = new WeakMap();

function styleOf(element) {
  let style = styles.get(element);
  if (!style) styles.set(element, style = getComputedStyle(element));
  return style;
}

// The short form costs more than both of the long ones, and mostly says that nothing is clipped.
function overflowOf(style) {
  return style.overflowX === "visible" && style.overflowY === "visible" ? "visible" : style.overflow;
}

function clip(element, overflow, at) {
  const room = roomInside(element, overflow, at.room);
  if (isEmpty(room.reach)) at.outside ||= at.room;
  if (at.absolute === at.room || at.position !== "static") at.absolute = room;
  at.room = room;
}

function visitChildren(w, element, name, at) {
  if (name === "details" && !element.open) {
    const summary = Array.prototype.find.call(element.children, (child) => child.localName === "summary");
    if (summary) visit(w, summary, at);
    return;
  }
  const before = w.nodes.length;
  const isPlain = name !== "slot" && !rootOf(element);
  const children = isPlain ? null : childrenOf(element);
  // Going from sibling to sibling is much faster than counting through a live list.
  for (let child = isPlain ? element.firstChild : children[0], index = 0; child; child = isPlain ? child.nextSibling : children[++index]) {
    const kind = child.nodeType;
    if (kind === TEXT) addText(w, child, at);
    else if (kind === ELEMENT) visit(w, child, at);
    if (w.isCut) return;
  }
  const isBare = w.nodes.length === before;
  if (name.includes("-")) suspect(element);
  else if (isBare && HOSTS.has(name)) lookInto(w, element, at);
}

// What a closed shadow root can stand in, besides elements of the page's own making.
const HOSTS = new Set(["article", "aside", "blockquote", "body", "div", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "main", "nav", "p", "section", "span", "i"]);

function lookInto(w, element, at) {
  const first = element.firstElementChild;
  if (!element.firstChild) addPseudoText(w, element, at);
  if (asked.has(element) || element.localName === "i" || element.localName === "span") return;
  // Children that are not painted are what a shadow root takes the place of.
  if (first ? first.checkVisibility() || getComputedStyle(first).display === "none" : /\S/.test(element.textContent)) return;
  const box = element.getBoundingClientRect();
  if (box.width >= 8 && box.height >= 8) suspect(element);
}

// A container with nothing in it says nothing, nor does what takes clicks behind a dialog.
function endHollow(w, node, element) {
  const uses = node.bits & (USES | STATE.scrolls);
  const isBackdrop = node.role === "generic" && uses === STATE.clickable && (node.bits & STATE.covered) !== 0;
  const isPlain = HOLLOW.has(node.role) || node.role === "generic";
  if (node.name || node.value || !isBackdrop && (!isPlain || uses)) return;
  const index = w.nodes.lastIndexOf(node);
  const hasMore = w.nodes.slice(index + 1).some(Boolean);
  if (!hasMore && index >= 0 && !rootOf(element)) {
    w.nodes[index] = null;
    w.told -= 1;
  }
}

// A field without a box of its own is where its label is.
function stepInForField(w, label, at) {
  const field = label.control;
  if (!field) return;
  if (at.isShown && !w.labelled.has(field) && !hasOwnBox(field)) {
    const node = tellAs(w, field, roleOf(field), edges(label.getBoundingClientRect()), at);
    if (node) w.labelled.add(field);
  }
  // Its words are the field's name.
  if (!field.hasAttribute("aria-label") && !field.hasAttribute("aria-labelledby") && OPERABLE.has(roleOf(field))) at.isSilent = true;
}
