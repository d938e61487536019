// A real model behind the Chat Completions protocol, on loopback, for one test.
//
// usage: node server.mjs FOLDER MODEL.gguf
//
// FOLDER holds `node_modules/node-llama-cpp`; the model's chat format must be ChatML. The first
// line of standard output is `{"address": "http://127.0.0.1:PORT/v1"}`; the process ends when its
// standard input does. It serves `GET /v1/models` and streamed `POST /v1/chat/completions`, one
// reply after the other. A schema binds the reply by a grammar, and where tools are offered the
// reply is always one call, by a grammar over them. Grammars are narrower than what was asked for
// (no optional fields, short texts), and what fits them fits that, too.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** The name that the model answers to. */
const NAME = "smollm2";
/** The most tokens of a reply: a tiny model that goes on for longer only repeats itself. */
const MOST_TOKENS = 160;
/** The bounds of what a schema leaves open, so that a bound reply is whole within the tokens. */
const MOST_CHARACTERS = 80;
const MOST_ITEMS = 3;

const [folder, file] = process.argv.slice(2).map((path) => resolve(path));
process.stdin.resume().on("close", () => process.exit(0));

const entry = createRequire(join(folder, "package.json")).resolve("node-llama-cpp");
const { getLlama, LlamaCompletion } = await import(pathToFileURL(entry));
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error" });
const model = await llama.loadModel({ modelPath: file });
// One thread: several wait for each other in busy loops, which starves them on a busy machine.
const context = await model.createContext({ contextSize: model.trainContextSize, threads: 1 });
const completion = new LlamaCompletion({ contextSequence: context.getSequence() });

/** What a person must change to be answered. */
class Refusal extends Error {}

/** The schema as the grammar's makers understand it: they require every field that is named. */
function narrowed(schema) {
  if (schema.type === "object") {
    const required = (schema.required ?? []).map((key) => [key, narrowed(schema.properties[key])]);
    return { type: "object", properties: Object.fromEntries(required) };
  }
  if (schema.type === "array") {
    const maxItems = Math.min(schema.maxItems ?? MOST_ITEMS, MOST_ITEMS);
    return { ...schema, items: narrowed(schema.items ?? { type: "string" }), maxItems };
  }
  if (schema.type === "string" && !schema.enum && !schema.const) {
    const maxLength = Math.min(schema.maxLength ?? MOST_CHARACTERS, MOST_CHARACTERS);
    return { type: "string", maxLength };
  }
  return schema;
}

/** One call of one of the tools. */
function callSchema(tools) {
  const call = ({ function: { name, parameters } }) => ({
    type: "object",
    properties: { tool: { const: name }, arguments: narrowed(parameters) },
  });
  return { oneOf: tools.map(call) };
}

/** What stands in a message, as one text. */
function textOf({ content, tool_calls: calls }) {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  if (parts.some((part) => part.type !== "text")) {
    throw new Refusal("this model reads text only");
  }
  const called = (calls ?? []).map(({ function: { name, arguments: given } }) =>
    JSON.stringify({ tool: name, arguments: JSON.parse(given || "{}") }));
  return [...parts.map((part) => part.text), ...called].join("\n");
}

/** The conversation in ChatML, up to where the assistant begins to speak. */
function tokensOf({ messages, tools = [] }) {
  const roleOf = ({ role }) => (role === "tool" ? "user" : role);
  const turns = messages.map((message) => [roleOf(message), textOf(message)]);
  if (tools.length > 0) {
    const lines = tools.map(({ function: { name, description, parameters } }) => {
      const names = Object.keys(parameters.properties ?? {}).join(", ");
      return `- ${name}: ${description} Arguments: ${names}`;
    });
    turns.unshift(["system", ["Answer with one tool call. The tools:", ...lines].join("\n")]);
  }
  const [begin, end] = ["<|im_start|>", "<|im_end|>"].map((text) => model.tokenize(text, true));
  const turn = ([role, text]) =>
    [...begin, ...model.tokenize(`${role}\n${text}`), ...end, ...model.tokenize("\n")];
  return [...turns.flatMap(turn), ...begin, ...model.tokenize("assistant\n")];
}

/** Sends one reply as a stream of chunks. */
async function reply(request, response, signal) {
  if (request.stream !== true) throw new Refusal("this server only streams: set `stream` to true");
  const tools = request.tools ?? [];
  const tokens = tokensOf(request);
  const room = context.contextSize - tokens.length;
  if (room < MOST_TOKENS) {
    throw new Refusal(`prompt is too long: ${tokens.length} tokens of ${context.contextSize}`);
  }
  const wanted = request.response_format?.json_schema?.schema;
  const schema = tools.length > 0 ? callSchema(tools) : wanted && narrowed(wanted);
  const grammar = schema && (await llama.createGrammarForJsonSchema(schema));

  response.writeHead(200, { "content-type": "text/event-stream" });
  const same = { id: "reply", object: "chat.completion.chunk", model: NAME };
  const send = (more) => response.write(`data: ${JSON.stringify({ ...same, ...more })}\n\n`);
  const delta = (more, finish = null) =>
    send({ choices: [{ index: 0, delta: more, finish_reason: finish }] });
  delta({ role: "assistant", content: "" });
  let written = 0;
  const { response: text, metadata } = await completion.generateCompletionWithMeta(tokens, {
    grammar,
    signal,
    maxTokens: Math.min(request.max_tokens ?? MOST_TOKENS, MOST_TOKENS),
    temperature: 0,
    onToken: (more) => { written += more.length; },
    onTextChunk: (more) => { if (tools.length === 0) delta({ content: more }); },
  });
  let finish = metadata.stopReason === "maxTokens" ? "length" : "stop";
  if (tools.length > 0 && finish === "stop") {
    const { tool, arguments: given } = JSON.parse(text);
    finish = "tool_calls";
    const call = { name: tool, arguments: JSON.stringify(given) };
    const id = `call_${tokens.length}`;
    delta({ tool_calls: [{ index: 0, id, type: "function", function: call }] });
  } else if (tools.length > 0) {
    delta({ content: text });
  }
  delta({}, finish);
  const usage = { prompt_tokens: tokens.length, completion_tokens: written };
  send({ choices: [], usage: { ...usage, total_tokens: tokens.length + written } });
  response.end("data: [DONE]\n\n");
}

function answer(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

const server = createServer(async (request, response) => {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  try {
    switch (`${request.method} ${request.url}`) {
      case "GET /v1/models":
        return answer(response, 200, { object: "list", data: [{ id: NAME, object: "model" }] });
      case "POST /v1/chat/completions":
        return await reply(JSON.parse((await request.toArray()).join("")), response, gone.signal);
      default:
        return answer(response, 404, { error: { message: `there is no ${request.url}` } });
    }
  } catch (error) {
    if (gone.signal.aborted) return;
    const body = { error: { message: error.message, type: "invalid_request_error" } };
    const isTheirs = error instanceof Refusal || error instanceof SyntaxError;
    if (response.headersSent) response.end(`data: ${JSON.stringify(body)}\n\n`);
    else answer(response, isTheirs ? 400 : 500, body);
  }
});
server.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ address: `http://127.0.0.1:${server.address().port}/v1` }));
});
