// playwright.mjs NODE_MODULES CHROMIUM ADDRESS TURNS WARMING
//
// A turn as an agent over Playwright takes it: click, then the picture and the accessibility
// snapshot. Prints the median of the turns, in milliseconds.
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, executablePath, address, turns, warming] = process.argv.slice(2);
const { chromium } = createRequire(join(modules, "/"))("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(address);
  const times = [];
  for (let turn = 0; turn < +turns + +warming; turn += 1) {
    const since = performance.now();
    await page.click("#add");
    await page.screenshot();
    await page.locator("body").ariaSnapshot();
    times.push(performance.now() - since);
  }
  times.splice(0, +warming);
  times.sort((one, other) => one - other);
  console.log(times[times.length >> 1]);
} finally {
  await browser.close();
}
