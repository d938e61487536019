// @ts-check
// The positions of all runs, from the stream that the tabs of a browser share.

/** @typedef {{run: string, seq: number, state: string, questions: number}} Position */
/** @typedef {{isLive: boolean, changed: Position[], known: Map<string, Position>, bus: number}} Positions */

/** @param {(positions: Positions) => void} told */
export function follow(told) {
  /** @type {Map<string, Position>} */
  const known = new Map();
  /** @param {boolean} isLive @param {Position[]} changed @param {number} bus */
  const take = (isLive, changed, bus) => {
    for (const position of changed) known.set(position.run, position);
    told({ isLive, changed, known, bus });
  };
  let isAlone = false;
  const alone = () => {
    if (isAlone) return;
    isAlone = true;
    followAlone(take);
  };
  if (typeof SharedWorker !== "function") return alone();
  const worker = new SharedWorker(new URL("./positions-worker.js", import.meta.url));
  worker.onerror = alone;
  worker.port.onmessage = ({ data }) => take(data.isLive, data.changed, data.bus);
  addEventListener("pagehide", () => worker.port.postMessage("bye"));
  // A page that comes back from the history has missed what was told in between.
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}

/** @param {(isLive: boolean, changed: Position[], bus: number) => void} take */
function followAlone(take) {
  const source = new EventSource("/api/stream?bus=true");
  let bus = 0;
  source.addEventListener("open", () => take(true, [], bus));
  source.addEventListener("heads", (event) => take(true, JSON.parse(event.data), bus));
  source.addEventListener("bus", (event) => take(true, [], (bus = Number(event.data))));
  source.addEventListener("error", () => {
    take(false, [], bus);
    if (source.readyState === EventSource.CLOSED) setTimeout(() => followAlone(take), 2000);
  });
}
