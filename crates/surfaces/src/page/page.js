"use strict";
// Everything is on the page without this: it only moves, filters and folds.
const steps = [...document.querySelectorAll(".step")];
const bar = document.querySelector("nav");
const input = bar.querySelector("input");
const output = bar.querySelector("output");
const texts = new Map();
let current = null;
bar.hidden = false;

function shown() {
  return steps.filter((step) => step.checkVisibility());
}

function show(step) {
  for (let outer = step.parentElement; outer; outer = outer.parentElement) {
    if (outer.localName === "details") outer.open = true;
  }
}

function go(step) {
  if (!step) return;
  current?.classList.remove("current");
  current = step;
  step.classList.add("current");
  step.open = true;
  step.querySelector("summary").focus({ preventScroll: true });
  step.scrollIntoView({ block: "start" });
}

function move(by) {
  const all = shown();
  const at = all.indexOf(current);
  go(at < 0 ? all[by > 0 ? 0 : all.length - 1] : all[at + by]);
}

function filter() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const step of steps) {
    if (!texts.has(step)) texts.set(step, step.textContent.toLowerCase());
    const fits = words.every((word) => texts.get(step).includes(word));
    step.hidden = !fits;
    found += fits ? 1 : 0;
    if (fits && words.length) show(step);
  }
  output.textContent = words.length ? `${found} of ${steps.length} steps` : `${steps.length} steps`;
}

function fold() {
  const folds = document.querySelectorAll("main details:not(.raw)");
  const open = [...folds].some((one) => !one.open);
  folds.forEach((one) => { one.open = open; });
}

function follow() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  show(target);
  if (target.matches(".step")) go(target);
  else if (target.localName === "details") target.open = true;
  target.scrollIntoView({ block: "start" });
}

let waiting = 0;
input.addEventListener("input", () => {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(filter);
});
input.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  input.value = "";
  filter();
  input.blur();
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target === input) return;
  if (event.key === "j" || event.key === "ArrowRight") move(1);
  else if (event.key === "k" || event.key === "ArrowLeft") move(-1);
  else if (event.key === "e") fold();
  else if (event.key === "/") input.focus();
  else return;
  event.preventDefault();
});
// The hour where the reader is, once it is asked for: there are thousands of times on a page.
document.addEventListener("pointerover", (event) => {
  const time = event.target.closest("time");
  if (!time || time.dataset.told) return;
  time.dataset.told = "yes";
  time.title += ` · here ${new Date(time.dateTime).toLocaleString()}`;
});
const folded = new Set();
addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("details:not(.raw):not([open])")) {
    folded.add(one);
    one.open = true;
  }
});
addEventListener("afterprint", () => {
  folded.forEach((one) => { one.open = false; });
  folded.clear();
});
addEventListener("hashchange", follow);
follow();
