// @ts-check
// Every page is whole without this: it lets a browser in, and keeps pages up to date.
import { enter } from "./enter.js";
import { follow } from "./positions.js";
import { update } from "./update.js";
import { announce } from "./announce.js";
import { listen } from "./keys.js";
import { watchScreen } from "./live.js";
import "./widget.js";

const isIn = !document.querySelector("[data-enter]");
const isEntering = enter(isIn);
if (isIn && !isEntering) {
  listen();
  watchScreen();
  follow((positions) => {
    update(positions);
    announce(positions);
  });
}
