// The page at which a person has a run's browser: shows pictures as they come and sends what is
// done, in its order. It keeps nothing but its key, for as long as this tab lives.

const at = (id) => document.getElementById(id);
const canvas = at("page"), keys = at("keys"), stage = at("stage");
const painter = canvas.getContext("2d");
const KEY = "key";

let over = false;

function end(title, words, bad) {
  if (over) return;
  over = true;
  sessionStorage.removeItem(KEY);
  document.title = title;
  at("over").classList.toggle("bad", !!bad);
  at("over").querySelector("h1").textContent = title;
  at("over").querySelector("p").textContent = words;
  at("over").hidden = false;
  if (at("asks").open) at("asks").close();
}

const send = (path, body) =>
  fetch(path, { method: path === "/live" ? "GET" : "POST", body, headers: { "x-gyrus-key": sessionStorage.getItem(KEY) ?? "" } });

// The token is used up here; a page that is loaded again has its key still.
async function letIn() {
  const token = location.hash.slice(1);
  history.replaceState(null, "", "/");
  if (!token) return sessionStorage.getItem(KEY) !== null;
  sessionStorage.removeItem(KEY);
  const answer = await fetch("/open", { method: "POST", body: token });
  if (!answer.ok) return false;
  sessionStorage.setItem(KEY, await answer.text());
  return true;
}

// What happens on the page. Each piece: four bytes of length, one that says what it is, the rest.
async function* pieces(stream) {
  const reader = stream.getReader();
  let held = new Uint8Array(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const joined = new Uint8Array(held.length + value.length);
    joined.set(held);
    joined.set(value, held.length);
    held = joined;
    while (held.length >= 5) {
      const length = new DataView(held.buffer, held.byteOffset).getUint32(0);
      if (held.length < 5 + length) break;
      yield [held[4], held.slice(5, 5 + length)];
      held = held.slice(5 + length);
    }
  }
}

async function watch() {
  const answer = await send("/live");
  if (answer.status === 403) return end("Nothing to see here", "This page was opened elsewhere, or its link is used up. Ask for a new one: gyrus take", true);
  if (!answer.ok) throw new Error("over");
  for await (const [what, bytes] of pieces(answer.body)) {
    if (what === 0) surroundings(JSON.parse(new TextDecoder().decode(bytes)));
    if (what === 1) await paint(bytes);
  }
}

async function paint(bytes) {
  const picture = await createImageBitmap(new Blob([bytes], { type: bytes[0] === 0x89 ? "image/png" : "image/jpeg" }));
  if (canvas.width !== picture.width || canvas.height !== picture.height) {
    canvas.width = picture.width;
    canvas.height = picture.height;
  }
  painter.drawImage(picture, 0, 0);
  picture.close();
  at("quiet").textContent = "";
  document.body.dataset.live = "yes";
}

function element(name, text, click) {
  const made = document.createElement(name);
  made.textContent = text;
  if (click) {
    made.type = "button";
    made.addEventListener("click", click);
  }
  return made;
}

function surroundings({ reason, tabs, dialog, loading, desktop, note }) {
  document.body.classList.toggle("desktop", !!desktop);
  if (note) at("quiet").textContent = note;
  at("reason").hidden = !reason;
  at("reason").querySelector("q").textContent = reason ?? "";
  stage.classList.toggle("loading", loading);
  const active = tabs.find((tab) => tab.active);
  if (document.activeElement !== at("address")) at("address").value = active ? active.address : "";
  at("tabs").hidden = tabs.length < 2;
  at("tabs").replaceChildren(...tabs.map((tab) => {
    const box = document.createElement("div");
    box.classList.toggle("on", tab.active);
    const name = element("button", tab.title || tab.address, () => did({ do: "tab", number: tab.number }));
    const close = element("button", "×", () => did({ do: "close", number: tab.number }));
    close.className = "end";
    close.setAttribute("aria-label", `Close ${tab.title || tab.address}`);
    box.append(name, close);
    return box;
  }));
  const asks = at("asks");
  if (!dialog) return asks.open && asks.close("gone");
  at("message").textContent = dialog.message || (dialog.kind === "beforeunload" ? "Leave this page? What you entered may be lost." : "");
  const isLogin = dialog.kind === "login";
  at("answer").hidden = dialog.kind !== "prompt" && !isLogin;
  at("answer").placeholder = isLogin ? "User name" : "";
  at("password").hidden = !isLogin;
  at("no").hidden = dialog.kind === "alert";
  if (asks.open) return;
  at("answer").value = dialog.offered;
  at("password").value = "";
  asks.returnValue = "no";
  asks.showModal();
}

// What is done goes out in its order, a few things at a time; of moves only the last counts.
const queue = [];
let sending = false;

async function did(what) {
  const last = queue.at(-1);
  const isMove = (one) => one && one.do === "mouse" && one.kind === "move";
  if (isMove(what) && isMove(last) && last.buttons === what.buttons) queue.pop();
  queue.push(what);
  if (sending) return;
  sending = true;
  try {
    while (queue.length && !over) {
      const answer = await send("/did", JSON.stringify(queue.splice(0, 50)));
      at("said").textContent = answer.ok ? await answer.text() : "";
    }
  } catch { /* the live picture tells that the line is gone */ }
  sending = false;
}

// Names as the browser's own protocol has them.
const BUTTONS = ["left", "middle", "right"];
const held = (event) => (event.altKey ? 1 : 0) + (event.ctrlKey ? 2 : 0) + (event.metaKey ? 4 : 0) + (event.shiftKey ? 8 : 0);

function place(event) {
  const box = canvas.getBoundingClientRect();
  return { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height };
}

function mouse(event, kind) {
  let button = BUTTONS[event.button] ?? "none";
  if (kind === "move") button = event.buttons & 1 ? "left" : event.buttons & 2 ? "right" : event.buttons & 4 ? "middle" : "none";
  did({ do: "mouse", kind, ...place(event), button, buttons: event.buttons, count: kind === "move" ? 0 : Math.max(1, event.detail), held: held(event) });
}

let pressed = false;
canvas.addEventListener("mousedown", (event) => {
  event.preventDefault();
  keys.focus();
  pressed = true;
  mouse(event, "down");
});
canvas.addEventListener("mousemove", (event) => { if (!pressed) mouse(event, "move"); });
addEventListener("mousemove", (event) => { if (pressed) mouse(event, "move"); });
addEventListener("mouseup", (event) => {
  if (!pressed) return;
  pressed = event.buttons !== 0;
  mouse(event, "up");
});
canvas.addEventListener("contextmenu", (event) => event.preventDefault());
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const unit = [1, 16, 400][event.deltaMode];
  did({ do: "wheel", ...place(event), dx: event.deltaX * unit, dy: event.deltaY * unit, held: held(event) });
}, { passive: false });

// Text comes as text, however it is made (dead keys, input methods, pasting); the rest as keys.
function text() {
  if (keys.value) did({ do: "text", text: keys.value });
  keys.value = "";
}
let composing = false;
keys.addEventListener("compositionstart", () => { composing = true; });
keys.addEventListener("compositionend", () => { composing = false; text(); });
keys.addEventListener("input", () => { if (!composing) text(); });
keys.addEventListener("keydown", (event) => {
  if (event.isComposing || event.key === "Dead" || event.key === "Process") return;
  const command = (event.ctrlKey || event.metaKey) && !event.getModifierState("AltGraph");
  if (command && event.key.toLowerCase() === "v") return;
  if (event.key.length === 1 && !command) return;
  if (["Control", "Shift", "Alt", "Meta", "AltGraph", "CapsLock", "Unidentified"].includes(event.key)) return;
  event.preventDefault();
  const name = event.key === " " ? "Space" : event.key;
  const shift = event.shiftKey && event.key.length > 1;
  did({ do: "key", key: `${event.ctrlKey ? "Control+" : ""}${event.altKey ? "Alt+" : ""}${event.metaKey ? "Meta+" : ""}${shift ? "Shift+" : ""}${name}` });
});

at("back").addEventListener("click", () => did({ do: "back" }));
at("reload").addEventListener("click", () => did({ do: "reload" }));
at("go").addEventListener("submit", (event) => {
  event.preventDefault();
  const given = at("address").value.trim();
  if (!given) return;
  did({ do: "go", address: /^[a-z][a-z0-9+.-]*:\/\//i.test(given) ? given : `https://${given}` });
  keys.focus();
});
at("asks").addEventListener("close", () => {
  const { returnValue } = at("asks");
  if (returnValue !== "gone") did({ do: "dialog", accept: returnValue === "yes", text: at("answer").hidden ? "" : at("answer").value, password: at("password").hidden ? "" : at("password").value });
  at("password").value = "";
});
at("give").addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = await send("/back", at("words").value).catch(() => null);
  if (answer?.ok) end("Thank you", "You can close this page.");
});

if (await letIn()) {
  keys.focus();
  for (let tries = 0; !over && tries < 3; tries += 1) {
    try {
      await watch();
      tries = 0;
    } catch { /* tried again below */ }
    if (!over) {
      at("quiet").textContent = "The line is gone; trying again …";
      await new Promise((done) => setTimeout(done, 700));
    }
  }
  end("The screen is the run's again", "It was given back, or the run has ended. You can close this page.", true);
} else {
  end("Nothing to see here", "This page was opened elsewhere, or its link is used up. Ask for a new one: gyrus take", true);
}
