// @ts-check
// One stream for all tabs of a browser, which has only six connections to a server.

/** @typedef {{run: string, seq: number, state: string, questions: number}} Position */
/** @type {Set<MessagePort>} */
const ports = new Set();
/** @type {Map<string, Position>} */
const known = new Map();
let isLive = false;
let bus = 0;

/** @param {Position[]} changed */
function tell(changed) {
  for (const port of ports) port.postMessage({ isLive, changed, bus });
}

function connect() {
  const source = new EventSource("/api/stream?bus=true");
  source.addEventListener("open", () => {
    isLive = true;
    // The server may be another one: its first event has every position anew.
    known.clear();
    tell([]);
  });
  source.addEventListener("heads", (event) => {
    /** @type {Position[]} */
    const changed = JSON.parse(event.data);
    for (const position of changed) known.set(position.run, position);
    tell(changed);
  });
  source.addEventListener("bus", (event) => {
    bus = Number(event.data);
    tell([]);
  });
  source.addEventListener("error", () => {
    isLive = false;
    tell([]);
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  });
}

addEventListener("connect", (event) => {
  const [port] = /** @type {MessageEvent} */ (event).ports;
  ports.add(port);
  port.onmessage = () => ports.delete(port);
  port.postMessage({ isLive, changed: [...known.values()], bus });
});
connect();
