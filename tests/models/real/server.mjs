// One small model behind the OpenAI wire: chat completions with a JSON schema or a forced tool
// held by a grammar, streamed or not. One request at a time, one thread.
//
//     node server.mjs MODEL.gguf     prints {"port": N} once it listens on loopback
//
// It is started where node-llama-cpp is installed.

import http from "node:http";
import {getLlama, LlamaChatSession} from "node-llama-cpp";

const llama = await getLlama({build: "never", gpu: false, maxThreads: 1, logLevel: "error"});
const model = await llama.loadModel({modelPath: process.argv[2]});
const context = await model.createContext({contextSize: 4096, threads: 1});
const sequence = context.getSequence();

class Refused extends Error {}

/** The texts of a message; parts of any other kind are not known here. */
function words(content) {
  if (typeof content === "string") return content;
  const parts = content ?? [];
  const strange = parts.find((part) => part.type !== "text");
  if (strange) throw new Refused(`this model takes no ${strange.type}`);
  return parts.map((part) => part.text).join("\n");
}

/** The schema that the reply is held to, and the tool that it is the arguments of, if any. */
function wanted(body) {
  const tool = body.tools?.[0]?.function;
  if (tool && body.tool_choice !== "none") return {schema: tool.parameters, tool: tool.name};
  const format = body.response_format;
  return {schema: format?.type === "json_schema" ? format.json_schema.schema : undefined};
}

async function complete(body, onText) {
  const {schema, tool} = wanted(body);
  const grammar = schema && (await llama.createGrammarForJsonSchema(schema));
  const turns = body.messages.map(({role, content}) => ({role, text: words(content)}));
  const system = turns.filter(({role}) => role === "system").map(({text}) => text).join("\n");
  const rest = turns.filter(({role}) => role !== "system");
  const last = rest.pop();
  await sequence.clearHistory();
  const session = new LlamaChatSession({
    contextSequence: sequence,
    systemPrompt: system || undefined,
    autoDisposeSequence: false,
  });
  const history = session.getChatHistory();
  for (const {role, text} of rest)
    history.push(role === "user" ? {type: "user", text} : {type: "model", response: [text]});
  session.setChatHistory(history);
  const read = model.tokenize(turns.map(({text}) => text).join("\n")).length;
  let written = 0;
  try {
    const {responseText, stopReason} = await session.promptWithMeta(last.text, {
      grammar,
      maxTokens: body.max_completion_tokens ?? body.max_tokens ?? 256,
      temperature: body.temperature ?? 0.7,
      seed: body.seed,
      onToken: (tokens) => (written += tokens.length),
      onTextChunk: onText,
    });
    const usage = {
      prompt_tokens: read, completion_tokens: written, total_tokens: read + written,
    };
    return {text: responseText, tool, finish: stopReason === "maxTokens" ? "length" : "stop", usage};
  } finally {
    session.dispose();
  }
}

function base(body, object) {
  const created = Math.floor(Date.now() / 1000);
  return {id: `chatcmpl-${Date.now()}`, object, created, model: body.model};
}

function whole(body, {text, tool, finish, usage}) {
  const message = tool
    ? {
        role: "assistant",
        content: null,
        tool_calls: [
          {id: "call_1", type: "function", function: {name: tool, arguments: text}},
        ],
      }
    : {role: "assistant", content: text};
  const reason = tool && finish === "stop" ? "tool_calls" : finish;
  const choices = [{index: 0, message, finish_reason: reason}];
  return {...base(body, "chat.completion"), choices, usage};
}

async function stream(body, response) {
  const first = base(body, "chat.completion.chunk");
  const send = (rest) => response.write(`data: ${JSON.stringify({...first, ...rest})}\n\n`);
  const choice = (delta, reason = null) => [{index: 0, delta, finish_reason: reason}];
  response.writeHead(200, {"content-type": "text/event-stream"});
  send({choices: choice({role: "assistant", content: ""})});
  const {finish, usage} = await complete(body, (text) => send({choices: choice({content: text})}));
  send({choices: choice({}, finish)});
  if (body.stream_options?.include_usage) send({choices: [], usage});
  response.end("data: [DONE]\n\n");
}

function answer(response, status, value) {
  response.writeHead(status, {"content-type": "application/json"});
  response.end(JSON.stringify(value));
}

async function handle(request, text, response) {
  if (request.url === "/v1/models") {
    const data = [{id: "smollm2", object: "model", created: 0, owned_by: "local"}];
    return answer(response, 200, {object: "list", data});
  }
  if (request.url !== "/v1/chat/completions")
    return answer(response, 404, {error: {message: "not found", type: "invalid_request_error"}});
  try {
    const body = JSON.parse(text);
    if (body.stream) await stream(body, response);
    else answer(response, 200, whole(body, await complete(body)));
  } catch (error) {
    if (response.headersSent) return response.destroy();
    const status = error instanceof Refused || error instanceof SyntaxError ? 400 : 500;
    answer(response, status, {error: {message: String(error), type: "invalid_request_error"}});
  }
}

let turn = Promise.resolve();
const server = http.createServer((request, response) => {
  let text = "";
  request.on("data", (chunk) => (text += chunk));
  request.on("end", () => (turn = turn.then(() => handle(request, text, response))));
});
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({port: server.address().port})));
