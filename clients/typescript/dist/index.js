/** A client of gyrus: starts runs, follows them, answers what they ask, and takes their results. */
/** The server refuses something, or cannot be reached. */
export class GyrusError extends Error {
    status;
    hint;
    constructor(message, status, hint) {
        super(hint ? `${message}; ${hint}` : message);
        this.status = status;
        this.hint = hint;
    }
}
/** Milliseconds between two looks at what has no stream, and after a connection that broke. */
const PAUSE = 200;
const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE));
/** A server: `gyrus serve`. */
export class Gyrus {
    address;
    #token;
    constructor(address = "http://127.0.0.1:7717", token) {
        this.address = address.replace(/\/+$/, "");
        const environment = globalThis.process?.env;
        this.#token = token ?? environment?.["GYRUS_TOKEN"] ?? "";
    }
    /** Starts a run. The folder is one of the server's machine. */
    async start(goal, workdir, given = {}) {
        const { answerSchema, context = {}, key, options = {} } = given;
        const all = answerSchema ? { ...options, "answer-schema": JSON.stringify(answerSchema) } : options;
        const body = { goal, workdir, options: all, context, ...(key ? { key } : {}) };
        const command = (await this.call("POST", "/api/runs", body));
        return new Run(this, command.run, command.id, answerSchema !== undefined);
    }
    /** Returns a run by its id. */
    async run(run) {
        const details = (await this.call("GET", `/api/runs/${encodeURIComponent(run)}`));
        return new Run(this, details.run, details.command ?? undefined, false);
    }
    /** Lists runs, newest first; by `state`, `outcome`, `text`, `limit` and so on. */
    async runs(query = {}) {
        const list = (await this.call("GET", `/api/runs?${new URLSearchParams(query)}`));
        return list.runs;
    }
    /** Calls an endpoint of the API; returns its JSON, or else its text. */
    async call(method, path, body) {
        const answer = await this.open(method, path, body);
        const text = await answer.text();
        const isJson = answer.headers.get("content-type")?.startsWith("application/json");
        return isJson && text ? JSON.parse(text) : text;
    }
    /** Opens a response, for streams and bytes. */
    async open(method, path, body) {
        const headers = { authorization: `Bearer ${this.#token}` };
        if (body !== undefined)
            headers["content-type"] = "application/json";
        const answer = await fetch(this.address + path, {
            method,
            headers,
            ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        }).catch((error) => {
            throw new GyrusError(`${this.address} cannot be reached: ${String(error)}`);
        });
        if (answer.ok)
            return answer;
        const said = (await answer.json().catch(() => ({})));
        throw new GyrusError(said.error ?? answer.statusText, answer.status, said.hint);
    }
}
/** A question of a run. An answer counts for exactly this card; of several, the first counts. */
export class Question {
    gyrus;
    run;
    id;
    card;
    constructor(gyrus, run, id, 
    /** What is asked: `sentence`, `reasons`, `details` and so on. */
    card) {
        this.gyrus = gyrus;
        this.run = run;
        this.id = id;
        this.card = card;
    }
    /** Says yes; with words if it asks for words. */
    async approve(words, reach = "once") {
        await this.#answer({ approve: true, reach, words: words ?? null });
    }
    /** Says no. */
    async deny(reason) {
        await this.#answer({ approve: false, words: reason ?? null });
    }
    async #answer(body) {
        await this.gyrus.call("POST", `/api/runs/${this.run}/questions/${this.id}/answer`, body);
    }
}
/** A run. */
export class Run {
    gyrus;
    id;
    command;
    isJson;
    constructor(gyrus, id, command, isJson) {
        this.gyrus = gyrus;
        this.id = id;
        this.command = command;
        this.isJson = isJson;
    }
    /**
     * Yields the entries of its journal as they reach the disk, until it is at rest. A connection that
     * breaks is opened again, and nothing is missed or told twice.
     */
    async *follow(after = 0) {
        for (;;) {
            try {
                for await (const entry of this.#entries(after)) {
                    after = entry.seq;
                    yield entry;
                    if (entry.kind === "run.ended")
                        return;
                    if (entry.kind === "run.parked" && (await this.#isAtRest()))
                        return;
                }
            }
            catch (error) {
                const isOfConnection = error instanceof GyrusError ? error.status === undefined : error instanceof TypeError;
                if (!isOfConnection)
                    throw error;
            }
            if (await this.#isAtRest())
                return;
            await pause();
        }
    }
    async *#entries(after) {
        const answer = await this.gyrus.open("GET", `/api/runs/${this.id}/events?after=${after}`);
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        try {
            let waiting = "";
            for (;;) {
                const { value, done } = await reader.read();
                if (done)
                    return;
                const lines = (waiting + value).split("\n");
                waiting = lines.pop() ?? "";
                for (const line of lines)
                    if (line.startsWith("data:"))
                        yield JSON.parse(line.slice(5));
            }
        }
        finally {
            await reader.cancel();
        }
    }
    /** Whether its command is over. One that waits for a person goes on by itself. */
    async #isAtRest() {
        if (this.command === undefined)
            return true;
        for (let looks = 0; looks < 25; looks += 1) {
            const view = (await this.gyrus.call("GET", `/api/commands/${this.command}`));
            const { state } = view.stage;
            if (state !== "running")
                return state === "ended" || state === "cancelled";
            // Its process lives a moment longer than the entry that parks it.
            await pause();
        }
        return false;
    }
    /** Waits until it is at rest. Questions go to `onQuestion`; without it, to a person elsewhere. */
    async wait(onQuestion) {
        for await (const entry of this.follow()) {
            if (onQuestion && entry.kind === "approval.asked") {
                for (const question of await this.questions())
                    await onQuestion(question);
            }
        }
        return this.result();
    }
    /** Returns its state, and its answer if it has one. */
    async result() {
        const details = (await this.gyrus.call("GET", `/api/runs/${this.id}`));
        const { state, outcome, ending, answer } = details;
        const result = { state, outcome, ending, details };
        if (answer === undefined || answer === null)
            return result;
        return { ...result, answer: (this.isJson ? JSON.parse(answer) : answer) };
    }
    /** Returns what it asks and nobody has answered, its children's questions too. */
    async questions() {
        const asked = (await this.gyrus.call("GET", `/api/runs/${this.id}/questions`));
        const open = asked.filter((one) => !one.answered);
        return open.map((one) => new Question(this.gyrus, one.run, one.question, one.card));
    }
    /** Returns the paths of the files that it left in its folder, the newest last. */
    async files() {
        const list = (await this.gyrus.call("GET", `/api/runs/${this.id}/files`));
        return list.files;
    }
    /** Returns a file that it left, as it is now. */
    async readFile(path) {
        const query = new URLSearchParams({ path });
        const answer = await this.gyrus.open("GET", `/api/runs/${this.id}/file?${query}`);
        return new Uint8Array(await answer.arrayBuffer());
    }
    /** Returns what it changed in its folder, as a patch. */
    async diff() {
        return String(await this.gyrus.call("GET", `/api/runs/${this.id}/diff`));
    }
    /** Adds to its goal, for good. */
    async steer(text) {
        await this.#send("steer", { text });
    }
    /** Parks it after what is in progress. */
    async pause() {
        await this.#send("pause");
    }
    /** Cuts off what is in progress, and parks it. */
    async stop() {
        await this.#send("stop");
    }
    /** Sends it a message, once it has begun. */
    async #send(message, body) {
        for await (const _ of this.follow())
            break;
        await this.gyrus.call("POST", `/api/runs/${this.id}/${message}`, body);
    }
    /** Goes on with it. */
    async resume() {
        const command = (await this.gyrus.call("POST", `/api/runs/${this.id}/resume`));
        this.command = command.id;
    }
}
