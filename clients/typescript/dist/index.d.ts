/** A client of gyrus: starts runs, follows them, answers what they ask, and takes their results. */
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
export declare class GyrusError extends Error {
    readonly status?: number | undefined;
    readonly hint?: string | undefined;
    constructor(message: string, status?: number | undefined, hint?: string | undefined);
}
/** A server: `gyrus serve`. */
export declare class Gyrus {
    #private;
    readonly address: string;
    constructor(address?: string, token?: string);
    /** Starts a run. The folder is one of the server's machine. */
    start(goal: string, workdir: string, given?: StartOptions): Promise<Run>;
    /** Returns a run by its id. */
    run(run: string): Promise<Run>;
    /** Lists runs, newest first; by `state`, `outcome`, `text`, `limit` and so on. */
    runs(query?: Record<string, string>): Promise<RunOverview[]>;
    /** Calls an endpoint of the API; returns its JSON, or else its text. */
    call(method: string, path: string, body?: unknown): Promise<unknown>;
    /** Opens a response, for streams and bytes. */
    open(method: string, path: string, body?: unknown): Promise<Response>;
}
/** A question of a run. An answer counts for exactly this card; of several, the first counts. */
export declare class Question {
    #private;
    readonly gyrus: Gyrus;
    readonly run: string;
    readonly id: string;
    /** What is asked: `sentence`, `reasons`, `details` and so on. */
    readonly card: Record<string, unknown>;
    constructor(gyrus: Gyrus, run: string, id: string, 
    /** What is asked: `sentence`, `reasons`, `details` and so on. */
    card: Record<string, unknown>);
    /** Says yes; with words if it asks for words. */
    approve(words?: string, reach?: "once" | "session" | "always"): Promise<void>;
    /** Says no. */
    deny(reason?: string): Promise<void>;
}
/** A run. */
export declare class Run {
    #private;
    readonly gyrus: Gyrus;
    readonly id: string;
    private command;
    private readonly isJson;
    constructor(gyrus: Gyrus, id: string, command: string | undefined, isJson: boolean);
    /**
     * Yields the entries of its journal as they reach the disk, until it is at rest. A connection that
     * breaks is opened again, and nothing is missed or told twice.
     */
    follow(after?: number): AsyncGenerator<Entry>;
    /** Waits until it is at rest. Questions go to `onQuestion`; without it, to a person elsewhere. */
    wait<Answer = unknown>(onQuestion?: (question: Question) => Promise<void>): Promise<Result<Answer>>;
    /** Returns its state, and its answer if it has one. */
    result<Answer = unknown>(): Promise<Result<Answer>>;
    /** Returns what it asks and nobody has answered, its children's questions too. */
    questions(): Promise<Question[]>;
    /** Returns the paths of the files that it left in its folder, the newest last. */
    files(): Promise<string[]>;
    /** Returns a file that it left, as it is now. */
    readFile(path: string): Promise<Uint8Array>;
    /** Returns what it changed in its folder, as a patch. */
    diff(): Promise<string>;
    /** Adds to its goal, for good. */
    steer(text: string): Promise<void>;
    /** Parks it after what is in progress. */
    pause(): Promise<void>;
    /** Cuts off what is in progress, and parks it. */
    stop(): Promise<void>;
    /** Goes on with it. */
    resume(): Promise<void>;
}
export {};
