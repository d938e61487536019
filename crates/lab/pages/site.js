// What every page knows (`site`), and how it makes something happen (`act`).
"use strict";

const site = JSON.parse(document.getElementById("site").textContent);
site.page = decodeURIComponent(location.pathname.split("/")[4] || "");
site.asked = new URLSearchParams(location.search);

/** Makes something happen in this world; the event, or an error with the site's reason. */
async function act(kind, data = {}, query = "") {
  const answer = await fetch(`act/${kind}${query}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(data),
  });
  if (!answer.ok) throw new Error(answer.status === 503 ? "The service is unavailable" : await answer.text());
  const event = await answer.json();
  if (location.pathname.split("/")[3] === event.site) site.events.push(event);
  return event;
}

/** What happened here so far of one kind, in order. */
const past = (kind) => site.events.filter((one) => one.kind === kind).map((one) => ({ n: one.n, ...one.data }));

const byId = (id) => document.getElementById(id);
const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const escaped = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

/** A template whose values are escaped, but for lists, which are joined, and what `raw` marks. */
const html = (parts, ...values) => raw(parts.reduce((text, part, at) => text + shown(values[at - 1]) + part));
const raw = (text) => ({ markup: text });
const shown = (value) =>
  Array.isArray(value) ? value.map(shown).join("") : value?.markup ?? (value === false || value == null ? "" : escaped(value));
function put(where, markup) {
  (typeof where === "string" ? find(where) : where).innerHTML = shown(markup);
}

/** Numbers that depend on the world's seed alone. */
function dice(extra = 0) {
  let state = (site.seed * 2654435761 + extra * 40503 + 12345) >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % below;
  };
}

/** A list in the order of the world's seed; as it stands without one. */
function shuffled(list, extra = 0) {
  const next = dice(extra);
  const out = [...list];
  if (!site.seed) return out;
  for (let at = out.length - 1; at > 0; at--) {
    const other = next(at + 1);
    [out[at], out[other]] = [out[other], out[at]];
  }
  return out;
}

let toastTimer;
function toast(text) {
  let box = byId("toast");
  if (!box) {
    box = document.createElement("div");
    box.id = "toast";
    box.setAttribute("role", "status");
    (find("dialog[open]") || document.body).append(box);
  }
  box.textContent = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => box.remove(), 8000);
}

const euros = (cents) => `€${(cents / 100).toFixed(2)}`;
const fields = (form) => Object.fromEntries([...new FormData(form)].filter(([, value]) => typeof value === "string"));
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
