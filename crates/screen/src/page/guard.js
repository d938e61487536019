// The last word on where an input lands: while it is armed, a trusted event that would reach another
// element than the one that was judged never gets to the page. These listeners are registered
// before the page's first script, on the window, so they are the first to hear.
let armed = null;

function arm(number, kind) {
  armed = { expected: number ? elementOf(number) : null, kind, passed: 0, blocked: null };
}

function disarm() {
  const was = armed;
  armed = null;
  return was && { reached: was.passed, blocked: was.blocked };
}

// How often what is judged was reached so far.
const passed = () => JSON.stringify(armed ? armed.passed : 0);

function targetOf(event) {
  const target = event.composedPath()[0];
  if (!(target instanceof Element)) return document.documentElement;
  // What lies in a closed shadow root is not on the path.
  return event.clientX === undefined || !rootOf(target) ? target : hitAt(event.clientX, event.clientY) || target;
}

function stop(event) {
  armed.blocked ??= words(targetOf(event));
  event.preventDefault();
  event.stopImmediatePropagation();
}

function hearPointer(event) {
  if (!armed || !event.isTrusted || armed.kind === "key") return;
  const begins = event.type === "pointerdown" || event.type === "mousedown";
  if (armed.blocked) return stop(event);
  if (!begins) return;
  if (!armed.expected || !landsOn(targetOf(event), armed.expected, armed.kind === "loose")) return stop(event);
  if (event.type === "mousedown") armed.passed += 1;
}

function hearKey(event) {
  if (!armed || !event.isTrusted || armed.kind !== "key") return;
  // A field may hand the keyboard on, as boxes for single digits do.
  const held = armed.expected && (armed.passed > 0 || isWithin(targetOf(event), armed.expected) ||
    isWithin(armed.expected, targetOf(event)));
  if (!held) return stop(event);
  armed.passed += 1;
}

for (const type of ["pointerdown", "mousedown", "pointerup", "mouseup", "click", "auxclick", "dblclick", "contextmenu", "dragstart"]) {
  addEventListener(type, hearPointer, { capture: true, passive: false });
}
for (const type of ["keydown", "keypress", "beforeinput"]) addEventListener(type, hearKey, { capture: true });
