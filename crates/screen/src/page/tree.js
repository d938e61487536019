// The tree as it is painted: shadow roots instead of their hosts' children, slots with what is
// put into them.

// Frames by the element that holds them, and closed shadow roots by their host: the page does
// not tell, the browser does.
const frameIds = new WeakMap();
const closedRoots = new WeakMap();
// Hosts that the browser was asked about.
const asked = new WeakSet();

function rootOf(element) {
  return element.shadowRoot || closedRoots.get(element) || null;
}

function childrenOf(element) {
  const root = rootOf(element);
  if (root) return root.childNodes;
  if (element.localName === "slot") {
    const assigned = element.assignedNodes();
    if (assigned.length) return assigned;
  }
  return element.childNodes;
}

function hostOrParent(node) {
  const parent = node.parentNode;
  return parent instanceof ShadowRoot ? parent.host : parent;
}

// Whether `inner` is `outer` or lies within it, through shadow roots.
function contains(outer, inner) {
  for (let node = inner; node; node = hostOrParent(node)) {
    if (node === outer) return true;
  }
  return false;
}

// What is hit at a point of the frame, inside of shadow roots too.
function hitAt(x, y) {
  let hit = document.elementFromPoint(x, y);
  for (let root = hit && rootOf(hit); root; root = rootOf(hit)) {
    const inner = root.elementFromPoint(x, y);
    if (!inner || inner === hit) break;
    hit = inner;
  }
  return hit;
}

// The element that has the keyboard, if it is in this document.
function focused() {
  if (!document.hasFocus()) return null;
  let element = document.activeElement;
  for (let root = element && rootOf(element); root?.activeElement; root = rootOf(element)) {
    element = root.activeElement;
  }
  return element === document.body ? null : element;
}

// Elements that may hold a closed shadow root, for the browser to look into.
const suspected = [];
const MAX_SUSPECTS = 256;

function suspect(element) {
  if (asked.has(element) || rootOf(element) || suspected.length >= MAX_SUSPECTS) return;
  asked.add(element);
  suspected.push(element);
}

function suspects() {
  return suspected.splice(0);
}

function adopt(host, root) {
  closedRoots.set(host, root);
  watchSecrets(root);
}

const MOST_ROOTS = 500;

// Shadow roots that are known here, at any depth.
function roots() {
  const found = [];
  for (let at = -1; at < found.length && found.length < MOST_ROOTS; at += 1) {
    for (const element of (found[at] || document).querySelectorAll("*")) {
      const root = rootOf(element);
      if (root) found.push(root);
    }
  }
  return found;
}

const heardRoots = new WeakSet();

// Those that the browser was not asked about yet.
function newRoots() {
  const found = roots().filter((root) => !heardRoots.has(root));
  for (const root of found) heardRoots.add(root);
  return found;
}
