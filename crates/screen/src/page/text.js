// Plain text, a run at a time: what stands between the edges of blocks is one element, whatever
// inline elements it goes through. A run has its place before the elements in it.
const LIFTED_TO = new Set(["listitem", "definition", "term", "status", "alert", "timer"]);
const WORD = /[\p{L}\p{N}]/u;

function openRun(w, at) {
  w.run = { place: w.nodes.length, at, text: "", own: "", uses: 0, isLoud: false, first: null, last: null, key: null, isKept: false };
  w.nodes.push(null);
}

function addText(w, node, at) {
  const text = node.data;
  if (!w.run) {
    if (!/\S/.test(text)) return;
    openRun(w, at);
  }
  const { run } = w;
  if (!at.isShown || at.isSilent || !at.isQuiet && (at.isGhost ??= isGhost(at.style))) return;
  run.text += run.text.length < 2 * MAX_TEXT ? text : "";
  if (at.isQuiet || !/\S/.test(text)) return;
  run.isLoud = true;
  if (run.own.length < MAX_TEXT) run.own += text;
  run.first ??= node;
  run.last = node;
}

// Text that a style sheet puts into an element with nothing else in it.
function addPseudoText(w, element, at) {
  const text = tidy(pseudoText(element, "::before") + pseudoText(element, "::after"));
  if (!text || !at.isShown || at.isQuiet || at.isSilent) return;
  if (!w.run) openRun(w, at);
  w.run.text += text;
  w.run.own += text;
  w.run.isLoud = true;
  w.run.key ??= element;
}

// Painted with no colour or in no size.
function isGhost(style) {
  const fill = style.webkitTextFillColor;
  if (parseFloat(style.fontSize) < 2) return true;
  return fill[3] === "a" && fill.endsWith(", 0)") && !style.webkitBackgroundClip.includes("text")
    && style.textShadow === "none" && parseFloat(style.webkitTextStrokeWidth) === 0;
}

function flush(w) {
  const { run } = w;
  w.run = null;
  if (!run?.isLoud) return;
  const text = tidy(run.text);
  // Between things to use: bars, dots, brackets.
  if (!text || run.uses && !WORD.test(run.own)) return;
  const key = run.first || run.key;
  const element = run.first ? hostOrParent(run.first) : run.key;
  const box = boxOfRun(run, element);
  const { room } = run.at;
  if (isEmpty(overlap(box, room.reach))) return;
  const isSecretText = repeatsSecret(text);
  const said = bounded(withoutSecrets(text), MAX_TEXT);
  const parent = run.at.parent;
  if (parent && LIFTED_TO.has(parent.role) && !parent.name && w.nodes[run.place - 1] === parent) {
    parent.name = said;
    if (isSecretText) parent.bits |= STATE.masked;
    w.chars += said.length;
    return;
  }
  let bits = isSecretText ? STATE.masked : 0;
  if (isEmpty(overlap(box, room.seen))) bits |= STATE.outOfView;
  run.isKept = true;
  w.nodes[run.place] = { number: numberOf(key), role: "text", name: said, value: null, bits, box, depth: run.at.depth, run: null };
  w.told += 1;
  w.chars += said.length;
}
