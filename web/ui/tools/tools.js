// Tools that a model calls in the middle of an answer: which it is offered, whether the user lets one run, and what comes of it.
// Calls stand in the message, are kept with it, and are read by the model from then on.

/** @import { ChatRequest, Delta } from "../../inpage.js" */
/** @import { Answer } from "../answers.js" */
/** @import { ChatMessage, ToolCall } from "../chats.js" */

import { store } from "../chat_storage.js";
import { lastPartOf } from "../chats.js";
import { faultOf, t } from "../wording.js";
import { waiting } from "./blocks.js";
import { builtIn } from "./built_in.js";
import { serverTools } from "./servers.js";

/**
 * A tool that a model may call.
 * @typedef {object} Tool
 * @property {string} id what permissions know it by
 * @property {string} name as the model knows it
 * @property {string} title as people do
 * @property {string} description for the model
 * @property {Record<string, unknown>} parameters a JSON schema
 * @property {(given: Record<string, any>, use: Use) => Promise<string> | string} run gives what the model reads, or throws it
 */

/** @typedef {{ answer: Answer, path: ChatMessage[], signal: AbortSignal }} Use where a tool is called */

const MAX_ROUNDS = 8; // of calls in an answer
const MAX_AT_ONCE = 8; // calls in a round
const MAX_RESULT = 8000; // characters
const MAX_KEPT = 20_000; // characters about the tools of an answer, for “Why this answer?”
const CHARACTERS = 2; // of a result for each token of the context, at most: about half of it

/** Describes tools as requests do. @param {Tool[]} tools @returns {NonNullable<ChatRequest["tools"]>} */
const described = (tools) => tools.map(({ name, description, parameters }) => ({ type: "function", function: { name, description, parameters } }));

/** Describes the tools that an answer would be offered now, without asking a server that was not asked before. @param {ChatMessage[]} path */
export async function offeredTools(path) {
  const tools = builtIn(path);
  const all = [...tools, ...await serverTools(tools.map(({ name }) => name), { areKnown: true })];
  return all.length ? described(all) : undefined;
}

/** Gives the tools that an answer may call; rejects where it is stopped meanwhile. @type {(answer: Answer, path: ChatMessage[]) => Promise<Tools | undefined>} */
export async function toolsFor(answer, path) {
  const tools = builtIn(path);
  const { signal } = answer.abort;
  const { promise: stopped, reject } = Promise.withResolvers();
  signal.addEventListener("abort", () => reject(signal.reason));
  tools.push(...await Promise.race([serverTools(tools.map(({ name }) => name)), stopped]));
  return tools.length ? new Tools(answer, path, tools) : undefined;
}

/** The tools of one answer, and its calls. */
export class Tools {
  /** @type {ToolCall[]} */
  #heard = []; // in this round
  #round;
  #last; // round

  /**
   * @param {Answer} answer
   * @param {ChatMessage[]} path
   * @param {Tool[]} tools
   */
  constructor(answer, path, tools) {
    this.answer = answer;
    this.path = path;
    this.tools = tools;
    this.#round = answer.message.calls?.at(-1)?.round ?? 0;
    this.#last = this.#round + MAX_ROUNDS;
  }

  /** Gives what a request says about tools. @returns {Partial<ChatRequest>} */
  fields() {
    const { message } = this.answer;
    const tools = described(this.tools);
    const kept = JSON.stringify(tools);
    message.made = { ...message.made, tools: kept.length > MAX_KEPT ? undefined : kept };
    return { tools, ...(this.#round === this.#last ? { tool_choice: "none" } : {}) };
  }

  /** Takes in a part of calls. @param {Delta["tool_calls"]} [parts] */
  hear(parts = []) {
    for (const { index, id = "", function: { name = "", arguments: more } } of parts) {
      const title = this.tools.find((tool) => tool.name === name)?.title ?? name;
      const call = this.#heard[index] ??= { id, name, title, arguments: "", round: this.#round + 1, at: 0, state: "asked", result: "" };
      call.arguments += more;
    }
  }

  /** Runs what was called, and gives whether the model is to be asked again. */
  async run() {
    const { answer, answer: { abort: { signal }, chat, message } } = this;
    const calls = this.#heard.splice(0);
    if (!calls.length) return false;
    signal.throwIfAborted();
    if (lastPartOf(message).trim()) message.content = `${message.content.trimEnd()}\n\n`;
    for (const call of calls) call.at = message.content.length;
    message.calls = [...message.calls ?? [], ...calls];
    message.tokens = ""; // those that follow are after the calls
    this.#round++;
    store(chat, message.id);
    try {
      for (const [at, call] of calls.entries()) await this.#answer(call, at);
    } finally {
      for (const call of calls) if (call.state === "asked" || call.state === "running") Object.assign(call, { state: "stopped", result: "The user stopped this." });
    }
    Object.assign(answer, { tokens: 0, first: undefined, status: t`Reading the results…` });
    answer.painted?.grow();
    return true;
  }

  /** @type {(call: ToolCall, at: number) => Promise<void>} */
  async #answer(call, at) {
    const { answer, path, answer: { abort: { signal } } } = this;
    try {
      if (at >= MAX_AT_ONCE) throw new Error(`These are too many calls at once. Make at most ${MAX_AT_ONCE}.`);
      const tool = this.tools.find(({ name }) => name === call.name);
      if (!tool) throw new Error(`There is no tool ${call.name}. There are: ${this.tools.map(({ name }) => name).join(", ")}.`);
      if (!await this.#isAllowed(tool, call)) return this.#tell(call, "refused", "The user did not allow this call. Answer without it.");
      this.#tell(call, "running", "", t`Running ${call.title}…`);
      this.#tell(call, "done", shortened(await tool.run(JSON.parse(call.arguments), { answer, path, signal })));
    } catch (error) {
      signal.throwIfAborted();
      this.#tell(call, "failed", shortened(`Error: ${faultOf(/** @type {any} */ (error))}`));
    }
  }

  /** Asks the user, unless the tool may run always. @type {(tool: Tool, call: ToolCall) => Promise<boolean>} */
  async #isAllowed({ id }, call) {
    const { chat, abort: { signal } } = this.answer;
    if (chat.tools.always.includes(id)) return true;
    const { promise, resolve, reject } = Promise.withResolvers();
    waiting.set(call, resolve);
    const stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop);
    this.#tell(call, "asked", "", t`Waiting for your permission…`);
    const decision = await promise.finally(() => {
      waiting.delete(call);
      signal.removeEventListener("abort", stop);
    });
    if (decision === "always") {
      chat.tools = { ...chat.tools, always: [...chat.tools.always, id] };
      chat.set.tools = Date.now();
    }
    return decision !== "no";
  }

  /** @type {(call: ToolCall, state: ToolCall["state"], result: string, status?: string) => void} */
  #tell(call, state, result, status = this.answer.status) {
    const { answer, answer: { chat, message } } = this;
    Object.assign(call, { state, result });
    answer.status = status;
    message.version++;
    store(chat, message.id);
    answer.painted?.grow();
  }
}

/** Cuts a result that would fill the context. @param {string} text */
function shortened(text) {
  const most = Math.min(MAX_RESULT, CHARACTERS * (inpage.loaded?.context ?? MAX_RESULT));
  return text.length > most ? `${text.slice(0, most)}\n… (${text.length - most} more characters were left out)` : text;
}
