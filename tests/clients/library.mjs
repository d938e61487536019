// Starts a run and takes its answer, by the packaged library.
import assert from "node:assert";
import process from "node:process";
import { Gyrus } from "gyrus-client";

const [address, workdir] = process.argv.slice(2);
const gyrus = new Gyrus(address);
const options = { loop: "single-shot" };
const run = await gyrus.start("Say that it is done.", workdir, { options });
const numbers = [];
for await (const entry of run.follow()) numbers.push(entry.seq);
assert.deepStrictEqual(numbers, numbers.map((_, index) => index + 1));
assert.strictEqual((await run.result()).answer, "It is done.");
assert.deepStrictEqual(await run.files(), []);
await assert.rejects(run.readFile("../work"), { status: 404 });
console.log(`${numbers.length} entries`);
