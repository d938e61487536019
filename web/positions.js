// @ts-check
// The positions of all runs, from the stream that the tabs of a browser share.

/** @typedef {{run: string, seq: number, state: string, questions: number}} Position */
/** @typedef {{isLive: boolean, changed: Position[], known: Map<string, Position>, bus: number}} Positions */

/** @type {Set<(positions: Positions) => void>} */
const followers = new Set();
/** @type {Map<string, Position>} */
const known = new Map();
let hasBegun = false;
let isLive = false;
let bus = 0;

/**
 * Tells of positions, the known ones at once. Returns a function that ends it.
 * @param {(positions: Positions) => void} told
 */
export function follow(told) {
  followers.add(told);
  if (hasBegun) told({ isLive, changed: [...known.values()], known, bus });
  else begin();
  return () => followers.delete(told);
}

/** @param {boolean} isNowLive @param {Position[]} changed @param {number} busNow */
function take(isNowLive, changed, busNow) {
  isLive = isNowLive;
  bus = busNow;
  for (const position of changed) known.set(position.run, position);
  for (const told of followers) told({ isLive, changed, known, bus });
}

function begin() {
  hasBegun = true;
  let isAlone = false;
  const alone = () => {
    if (isAlone) return;
    isAlone = true;
    followAlone();
  };
  if (typeof SharedWorker !== "function") return alone();
  const worker = new SharedWorker(new URL("./positions-worker.js", import.meta.url));
  worker.onerror = alone;
  worker.port.onmessage = ({ data }) => take(data.isLive, data.changed, data.bus);
  addEventListener("pagehide", () => worker.port.postMessage("bye"));
  // A page that comes back from the history has missed what was told in between.
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}

function followAlone() {
  const source = new EventSource("/api/stream?bus=true");
  source.addEventListener("open", () => take(true, [], bus));
  source.addEventListener("heads", (event) => take(true, JSON.parse(event.data), bus));
  source.addEventListener("bus", (event) => take(true, [], Number(event.data)));
  source.addEventListener("error", () => {
    take(false, [], bus);
    if (source.readyState === EventSource.CLOSED) setTimeout(followAlone, 2000);
  });
}
