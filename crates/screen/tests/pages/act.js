// Tells the top page what every event reached: `document name:event:element id`.
if (window === top) {
  window.log = [];
  addEventListener("message", (event) => { if (typeof event.data === "string") log.push(event.data); });
}
const tell = (words) => { if (window === top) log.push(words); else top.postMessage(words, "*"); };
const named = () => document.documentElement.dataset.name || "top";
for (const kind of ["mousedown", "click", "dblclick", "contextmenu", "auxclick", "input", "change", "submit", "mouseenter", "drop", "keydown"]) {
  document.addEventListener(kind, (event) => {
    const target = event.composedPath()[0];
    const keys = ["shift", "ctrl", "alt", "meta"].filter((key) => event[key + "Key"]).join("+");
    if (kind === "mouseenter" && !target.id) return;
    if (kind === "submit") event.preventDefault();
    const about = kind === "input" || kind === "change" ? "=" + target.value : kind === "keydown" ? "=" + event.key : keys ? "+" + keys : "";
    tell(`${named()}:${kind}:${target.id || target.tagName}${about}`);
  }, true);
}
