// @ts-check
// The picture of a run's browser: the next one is asked for when the last is shown, and nobody
// asks while nobody looks.

/** Milliseconds between two pictures. */
const PACE = 400;
/** Milliseconds after which a screen that showed nothing is asked again. */
const LATER = 2000;

export function watchScreen() {
  const screen = document.getElementById("screen");
  if (!(screen instanceof HTMLImageElement)) return;
  const kept = document.querySelector(".kept");
  let number = 0;
  const ask = () => {
    const isAsked = document.getElementById("seen")?.dataset.shows === "now";
    if (document.visibilityState !== "visible" || !isAsked) return show(false), void setTimeout(ask, LATER);
    const next = new Image();
    next.onload = () => {
      screen.src = next.src;
      show(true);
      setTimeout(ask, PACE);
    };
    next.onerror = () => {
      show(false);
      setTimeout(ask, LATER);
    };
    next.src = `${screen.dataset.screen}?at=${Date.now()}-${++number}`;
  };
  /** @param {boolean} isLive */
  const show = (isLive) => {
    screen.hidden = !isLive;
    kept?.toggleAttribute("hidden", isLive);
    const words = document.querySelector(".shown-as");
    if (words && isLive && words.textContent !== "now") words.textContent = "now";
  };
  ask();
}
