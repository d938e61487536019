/** A client of gyrus: starts runs, follows them, answers what they ask, and takes their results. */

// Made from /openapi.json when the package is built.
import type { components } from "./api.js";

type Schemas = components["schemas"];
export type RunDetail = Schemas["RunDetail"];
export type RunOverview = Schemas["RunOverview"];

/** An entry of a run's journal. */
export interface Entry {
  seq: number;
  kind: string;
  [field: string]: unknown;
}

/** What a run is started with, beside its goal and its folder. */
export interface StartOptions {
  /** JSON Schema that the answer must fit. */
  answerSchema?: object;
  /** Text that the run starts with, by names. It is data. */
  context?: Record<string, string>;
  /** Commands with one key are one command. */
  key?: string;
  /** Options of `gyrus run`, by their long names without dashes. */
  options?: Record<string, string | number | boolean | string[]>;
}

/** The state of a run that is at rest, or was looked at. */
export interface Result<Answer = unknown> {
  state: string;
  /** The strength of a goal that is reached: `answered`, `claimed`, `checked` or `verified`. */
  outcome?: string | null;
  /** The way in which it ended, or the reason why it waits. */
  ending?: string | null;
  /** The answer; read as JSON if the run has an answer schema. */
  answer?: Answer;
  details: RunDetail;
}

/** The server refuses something, or cannot be reached. */
export class GyrusError extends Error {
  constructor(
    message: string,
    readonly status?: number,
    readonly hint?: string,
  ) {
    super(hint ? `${message}; ${hint}` : message);
  }
}

/** Milliseconds between two looks at what has no stream, and after a connection that broke. */
const PAUSE = 200;

const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE));

/** A server: `gyrus serve`. */
export class Gyrus {
  readonly address: string;
  readonly #token: string;

  constructor(address = "http://127.0.0.1:7717", token?: string) {
    this.address = address.replace(/\/+$/, "");
    const environment = (globalThis as { process?: { env: Record<string, string | undefined> } }).process?.env;
    this.#token = token ?? environment?.["GYRUS_TOKEN"] ?? "";
  }

  /** Starts a run. The folder is one of the server's machine. */
  async start(goal: string, workdir: string, given: StartOptions = {}): Promise<Run> {
    const { answerSchema, context = {}, key, options = {} } = given;
    const all = answerSchema ? { ...options, "answer-schema": JSON.stringify(answerSchema) } : options;
    const body = { goal, workdir, options: all, context, ...(key ? { key } : {}) };
    const command = (await this.call("POST", "/api/runs", body)) as Schemas["CommandView"];
    return new Run(this, command.run, command.id, answerSchema !== undefined);
  }

  /** Returns a run by its id. */
  async run(run: string): Promise<Run> {
    const details = (await this.call("GET", `/api/runs/${encodeURIComponent(run)}`)) as RunDetail;
    return new Run(this, details.run, details.command ?? undefined, false);
  }

  /** Lists runs, newest first; by `state`, `outcome`, `text`, `limit` and so on. */
  async runs(query: Record<string, string> = {}): Promise<RunOverview[]> {
    const list = (await this.call("GET", `/api/runs?${new URLSearchParams(query)}`)) as Schemas["RunList"];
    return list.runs;
  }

  /** Calls an endpoint of the API; returns its JSON, or else its text. */
  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    const answer = await this.open(method, path, body);
    const text = await answer.text();
    const isJson = answer.headers.get("content-type")?.startsWith("application/json");
    return isJson && text ? JSON.parse(text) : text;
  }

  /** Opens a response, for streams and bytes. */
  async open(method: string, path: string, body?: unknown): Promise<Response> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.#token}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    const answer = await fetch(this.address + path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch((error: unknown) => {
      throw new GyrusError(`${this.address} cannot be reached: ${String(error)}`);
    });
    if (answer.ok) return answer;
    const said = (await answer.json().catch(() => ({}))) as { error?: string; hint?: string };
    throw new GyrusError(said.error ?? answer.statusText, answer.status, said.hint);
  }
}

/** A question of a run. An answer counts for exactly this card; of several, the first counts. */
export class Question {
  constructor(
    readonly gyrus: Gyrus,
    readonly run: string,
    readonly id: string,
    /** What is asked: `sentence`, `reasons`, `details` and so on. */
    readonly card: Record<string, unknown>,
  ) {}

  /** Says yes; with words if it asks for words. */
  async approve(words?: string, reach: "once" | "session" | "always" = "once"): Promise<void> {
    await this.#answer({ approve: true, reach, words: words ?? null });
  }

  /** Says no. */
  async deny(reason?: string): Promise<void> {
    await this.#answer({ approve: false, words: reason ?? null });
  }

  async #answer(body: object): Promise<void> {
    await this.gyrus.call("POST", `/api/runs/${this.run}/questions/${this.id}/answer`, body);
  }
}

/** A run. */
export class Run {
  constructor(
    readonly gyrus: Gyrus,
    readonly id: string,
    private command: string | undefined,
    private readonly isJson: boolean,
  ) {}

  /**
   * Yields the entries of its journal as they reach the disk, until it is at rest. A connection that
   * breaks is opened again, and nothing is missed or told twice.
   */
  async *follow(after = 0): AsyncGenerator<Entry> {
    for (;;) {
      try {
        for await (const entry of this.#entries(after)) {
          after = entry.seq;
          yield entry;
          if (entry.kind === "run.ended") return;
          if (entry.kind === "run.parked" && (await this.#isAtRest())) return;
        }
      } catch (error) {
        const isOfConnection = error instanceof GyrusError ? error.status === undefined : error instanceof TypeError;
        if (!isOfConnection) throw error;
      }
      if (await this.#isAtRest()) return;
      await pause();
    }
  }

  async *#entries(after: number): AsyncGenerator<Entry> {
    const answer = await this.gyrus.open("GET", `/api/runs/${this.id}/events?after=${after}`);
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    try {
      let waiting = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        const lines = (waiting + value).split("\n");
        waiting = lines.pop() ?? "";
        for (const line of lines) if (line.startsWith("data:")) yield JSON.parse(line.slice(5)) as Entry;
      }
    } finally {
      await reader.cancel();
    }
  }

  /** Whether its command is over. One that waits for a person goes on by itself. */
  async #isAtRest(): Promise<boolean> {
    if (this.command === undefined) return true;
    for (let looks = 0; looks < 25; looks += 1) {
      const view = (await this.gyrus.call("GET", `/api/commands/${this.command}`)) as { stage: { state: string } };
      const { state } = view.stage;
      if (state !== "running") return state === "ended" || state === "cancelled";
      // Its process lives a moment longer than the entry that parks it.
      await pause();
    }
    return false;
  }

  /** Waits until it is at rest. Questions go to `onQuestion`; without it, to a person elsewhere. */
  async wait<Answer = unknown>(onQuestion?: (question: Question) => Promise<void>): Promise<Result<Answer>> {
    for await (const entry of this.follow()) {
      if (onQuestion && entry.kind === "approval.asked") {
        for (const question of await this.questions()) await onQuestion(question);
      }
    }
    return this.result<Answer>();
  }

  /** Returns its state, and its answer if it has one. */
  async result<Answer = unknown>(): Promise<Result<Answer>> {
    const details = (await this.gyrus.call("GET", `/api/runs/${this.id}`)) as RunDetail;
    const { state, outcome, ending, answer } = details;
    const result = { state, outcome, ending, details };
    if (answer === undefined || answer === null) return result;
    return { ...result, answer: (this.isJson ? JSON.parse(answer) : answer) as Answer };
  }

  /** Returns what it asks and nobody has answered, its children's questions too. */
  async questions(): Promise<Question[]> {
    const asked = (await this.gyrus.call("GET", `/api/runs/${this.id}/questions`)) as Schemas["Question"][];
    const open = asked.filter((one) => !one.answered);
    return open.map((one) => new Question(this.gyrus, one.run, one.question, one.card as Record<string, unknown>));
  }

  /** Returns the paths of the files that it left in its folder, the newest last. */
  async files(): Promise<string[]> {
    const list = (await this.gyrus.call("GET", `/api/runs/${this.id}/files`)) as Schemas["LeftFileList"];
    return list.files;
  }

  /** Returns a file that it left, as it is now. */
  async readFile(path: string): Promise<Uint8Array> {
    const query = new URLSearchParams({ path });
    const answer = await this.gyrus.open("GET", `/api/runs/${this.id}/file?${query}`);
    return new Uint8Array(await answer.arrayBuffer());
  }

  /** Returns what it changed in its folder, as a patch. */
  async diff(): Promise<string> {
    return String(await this.gyrus.call("GET", `/api/runs/${this.id}/diff`));
  }

  /** Adds to its goal, for good. */
  async steer(text: string): Promise<void> {
    await this.#send("steer", { text });
  }

  /** Parks it after what is in progress. */
  async pause(): Promise<void> {
    await this.#send("pause");
  }

  /** Cuts off what is in progress, and parks it. */
  async stop(): Promise<void> {
    await this.#send("stop");
  }

  /** Sends it a message, once it has begun. */
  async #send(message: string, body?: object): Promise<void> {
    for await (const _ of this.follow()) break;
    await this.gyrus.call("POST", `/api/runs/${this.id}/${message}`, body);
  }

  /** Goes on with it. */
  async resume(): Promise<void> {
    const command = (await this.gyrus.call("POST", `/api/runs/${this.id}/resume`)) as Schemas["CommandView"];
    this.command = command.id;
  }
}
