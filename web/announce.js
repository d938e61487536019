// @ts-check
// Says that something is asked: in the title, in the navigation, and once as a notification.

/** @typedef {import("./positions.js").Positions} Positions */

const NOTIFIED = "gyrus-notified";
const title = document.title;
let before = 0;

/** @param {Positions} positions */
export function announce({ isLive, known }) {
  if (!isLive) return;
  const count = [...known.values()].reduce((sum, one) => sum + one.questions, 0);
  document.title = count > 0 ? `(${count}) ${title}` : title;
  for (const badge of document.querySelectorAll(".count")) {
    if (badge instanceof HTMLElement && badge.dataset.waiting !== String(count)) {
      badge.dataset.waiting = String(count);
      badge.hidden = count === 0;
      const said = document.createElement("span");
      said.className = "said";
      said.textContent = " waiting";
      badge.replaceChildren(String(count), said);
    }
  }
  if (count > before && may("granted")) void notify();
  before = count;
}

/** @param {NotificationPermission} permission */
function may(permission) {
  return typeof Notification === "function" && Notification.permission === permission;
}

async function notify() {
  const answer = await fetch("/api/questions").catch(() => null);
  if (!answer?.ok) return;
  /** @type {{run: string, question: string, card: {sentence: string}, answered?: string}[]} */
  const questions = await answer.json();
  /** @type {string[]} */
  const told = JSON.parse(localStorage.getItem(NOTIFIED) ?? "[]");
  for (const { run, question, card, answered } of questions) {
    const id = `question-${run}-${question}`.replaceAll(".", "-");
    if (answered || told.includes(id)) continue;
    told.push(id);
    const notification = new Notification("gyrus asks", { body: card.sentence, tag: id });
    // It leads to the card, and approves nothing.
    notification.onclick = () => open(`/waiting#${id}`);
  }
  localStorage.setItem(NOTIFIED, JSON.stringify(told.slice(-200)));
}

const button = document.querySelector("button.notify");
if (button instanceof HTMLElement && may("default")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await Notification.requestPermission();
    button.hidden = true;
  });
}
