// Starts a run and follows it to its end, by a client whose types a generator made from
// `/openapi.json`.
import createClient from "openapi-fetch";
import type { paths } from "./schema";

const [address, workdir] = process.argv.slice(2);
const client = createClient<paths>({
  baseUrl: address,
  headers: { authorization: `Bearer ${process.env.GYRUS_TOKEN}` },
});

async function follow(run: string): Promise<{ seq: number; kind: string }[]> {
  const params = { path: { run } };
  const { data, error } = await client.GET("/api/runs/{run}/events", { params, parseAs: "text" });
  if (error) throw new Error(error.error);
  const lines = data.split("\n").filter((line) => line.startsWith("data: "));
  return lines.map((line) => JSON.parse(line.slice("data: ".length)));
}

async function main() {
  const options = { loop: "single-shot" };
  const body = { goal: "Say that it is done.", workdir, options };
  const started = await client.POST("/api/runs", { body });
  if (started.error) throw new Error(started.error.error);
  const run = started.data.run;
  const entries = await follow(run);
  if (entries.some((entry, at) => entry.seq !== at + 1)) throw new Error(JSON.stringify(entries));
  if (entries.at(-1)?.kind !== "run.ended") throw new Error(JSON.stringify(entries.at(-1)));
  const shown = await client.GET("/api/runs/{run}", { params: { path: { run } } });
  if (shown.data?.state !== "over" || shown.data.answer !== "It is done.") {
    throw new Error(JSON.stringify(shown));
  }
  console.log(`${entries.length} entries`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
