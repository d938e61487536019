// Notes what a page and its frames of one origin go through: trusted events, changes of documents,
// of fields, canvases and scrolling, and what is sent. It runs in the page's own world, before the
// page's scripts, and knows nothing of our reading.
(() => {
  let top = window;
  try { if (window.top.document) top = window.top; } catch { /* another origin */ }
  const all = top.recorder ??= { id: Math.random(), documents: new Set(), events: [], changes: [], sent: [], observers: [], marked: 0 };
  const now = () => performance.timeOrigin + performance.now();
  const MOST = 50000;
  const put = (list, one) => { if (list.length < MOST) list.push({ at: now(), ...one }); };
  const isSame = (record) => record.type === "attributes" && record.target.getAttribute(record.attributeName) === record.oldValue
    || record.type === "characterData" && record.target.data === record.oldValue;
  const take = (records) => {
    for (const one of records) {
      if (!isSame(one)) put(all.changes, { node: one.target, added: [...one.addedNodes], what: one.type + (one.attributeName ? " " + one.attributeName : "") });
    }
  };
  const observer = new MutationObserver(take);
  const watch = (root) => observer.observe(root, { subtree: true, childList: true, characterData: true, attributes: true, attributeOldValue: true, characterDataOldValue: true });
  all.observers.push(() => take(observer.takeRecords()));
  const roots = all.roots ??= new Set();
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (init) {
    const root = attach.call(this, init);
    roots.add(root);
    watch(root);
    return root;
  };
  const INPUTS = ["pointerdown", "mousedown", "click", "auxclick", "dblclick", "contextmenu", "keydown", "beforeinput", "input", "change", "submit",
    "dragstart", "drop", "wheel", "selectionchange", "scroll", "focusin", "toggle", "close"];
  const hear = (event) => { if (event.isTrusted) put(all.events, { type: event.type }); };
  const join = (one) => {
    watch(one);
    all.documents.add(one);
    // What listens is lost when a page writes its document anew.
    for (const type of INPUTS) one.addEventListener(type, hear, { capture: true, passive: true });
  };
  join(document);
  // Frames that a page writes itself get no scripts from outside.
  all.joined = (view = top) => {
    try { if (view !== top) join(view.document); } catch { return; }
    for (let at = 0; at < view.frames.length; at += 1) all.joined(view.frames[at]);
  };
  const send = (owner, name, what) => {
    const own = owner[name];
    if (own) owner[name] = function (...given) { put(all.sent, { what }); return own.apply(this, given); };
  };
  send(window, "fetch", "fetch");
  send(XMLHttpRequest.prototype, "send", "request");
  send(WebSocket.prototype, "send", "socket");
  send(Navigator.prototype, "sendBeacon", "beacon");
  if (top !== window || all.mark) return;

  const alive = () => {
    for (const one of all.documents) if (!one.defaultView) all.documents.delete(one);
    return [...all.documents];
  };
  const scopes = () => [...alive(), ...[...roots].filter((root) => root.isConnected)];
  const fields = () => scopes().flatMap((scope) => [...scope.querySelectorAll("input, select, textarea, details, dialog, audio, video")])
    .map((one) => [one.value, one.checked, one.open, one.paused, one.indeterminate, one.files?.length, one.selectedOptions && [...one.selectedOptions].map((at) => at.index).join()].join("|")).join("\n");
  const canvases = () => scopes().flatMap((scope) => [...scope.querySelectorAll("canvas")]).map((one) => { try { return one.toDataURL(); } catch { return ""; } });
  const selected = () => alive().map((one) => {
    const { anchorNode, anchorOffset, focusNode, focusOffset } = one.getSelection() || {};
    const at = one.activeElement;
    let caret = [];
    try { caret = [at.selectionStart, at.selectionEnd]; } catch { /* a field without a caret */ }
    return [number(anchorNode), anchorOffset, number(focusNode), focusOffset, number(at), ...caret].join();
  }).join("\n");
  const numbers = new WeakMap();
  let count = 0;
  const number = (node) => { if (!node) return 0; if (!numbers.has(node)) numbers.set(node, count += 1); return numbers.get(node); };
  const state = () => ({ fields: fields(), selected: selected(), canvases: canvases(), address: location.href, documents: alive().length });
  const flush = () => all.observers.forEach((one) => { try { one(); } catch { /* its document is gone */ } });
  // What came from scripts in between is dropped; the last second before says what changes by itself.
  all.mark = () => {
    all.joined();
    flush();
    all.marked = now();
    all.noisy = new Set(all.changes.filter((one) => one.at > all.marked - 1000).map((one) => one.node));
    // A page that asks its server all the time does not do so for an input.
    all.asking = new Set(all.sent.filter((one) => one.at > all.marked - 3000).map((one) => one.what));
    all.events.length = all.changes.length = all.sent.length = 0;
    all.before = state();
    return all.id;
  };
  const isNoise = (change) => all.noisy.has(change.node) || [...all.noisy].some((one) => one !== document.body && one !== document.documentElement && one.contains?.(change.node));
  const called = (node) => {
    const element = node instanceof Text ? node.parentElement : node;
    return element?.outerHTML ? element.outerHTML.slice(0, 90) : String(node?.nodeName);
  };
  const STARTS = ["mousedown", "keydown", "beforeinput", "input", "change", "drop", "wheel", "contextmenu"];
  all.told = () => {
    // The document is new since the input.
    if (!all.before) return { id: all.id };
    flush();
    const after = state();
    const first = all.events.find((one) => STARTS.includes(one.type))?.at ?? all.marked;
    const since = (list) => list.filter((one) => one.at >= first - 1);
    const changes = since(all.changes);
    const quiet = changes.filter((one) => !isNoise(one));
    const kinds = {};
    for (const { type } of all.events) kinds[type] = (kinds[type] || 0) + 1;
    const differs = ["fields", "canvases", "address", "documents"].filter((part) => String(all.before[part]) !== String(after[part]));
    return {
      id: all.id, events: kinds, quiet: quiet.length, noise: changes.length - quiet.length, before: all.changes.length - changes.length, differs,
      selected: all.before.selected !== after.selected, scrolled: since(all.events).some((one) => one.type === "scroll"),
      sent: since(all.sent).map((one) => one.what).filter((one) => !all.asking.has(one)), first: quiet.slice(0, 3).map((one) => one.what + " of " + called(one.node)),
    };
  };
  // Until nothing that was quiet has changed for so long.
  all.rest = (quiet, limit) => new Promise((resolve) => {
    const end = now() + limit;
    const ask = () => {
      flush();
      const last = all.changes.filter((one) => !isNoise(one)).at(-1)?.at ?? 0;
      if (now() > end) resolve(false);
      else if (now() - Math.max(last, all.marked) > quiet) resolve(true);
      else setTimeout(ask, 50);
    };
    all.noisy ??= new Set();
    setTimeout(ask, quiet);
  });
})();
