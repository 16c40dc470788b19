// The answers that are on their way, and what the model reads for them. answer_queue.js writes them.

/** @import { ChatRequest, Message } from "../inpage.js" */
/** @import { Chat, ChatMessage } from "./chats.js" */

import { isImage, lastPartOf, wholeOf } from "./chats.js";

/**
 * An answer that is being written, or waits for its turn.
 * @typedef {object} Answer
 * @property {Chat} chat
 * @property {ChatMessage} message
 * @property {Partial<ChatRequest>} options
 * @property {AbortController} abort
 * @property {number} tokens
 * @property {number} [prompt] tokens of its prompt, once they are counted
 * @property {string} status what it waits for, or how it goes
 * @property {number} [first] when its first token came
 * @property {number} [frame] the animation frame that will paint it
 * @property {number} [saving] the timer that will save it
 * @property {Painted} [painted] where it is shown
 * @property {import("./tools/tools.js").Tools} [tools] that it may call
 */

/**
 * @typedef {object} Painted
 * @property {() => void} grow
 * @property {(isNothing: boolean) => void} finish shows what was written, which is whole; where that is nothing, the version before it
 */

const NOTHING = "(nothing)"; // in place of a result that is empty, or never came

/** Packs token ids into a text: chats stay small. @param {number[]} ids */
export const packed = (ids) => ids.map((id) => `${id.toString(36)}.`).join("");

/** @param {string} tokens */
export const unpacked = (tokens) => tokens.split(".").slice(0, -1).map((id) => parseInt(id, 36));

/** @type {Answer[]} */
export const answers = []; // the first is being written, the others wait

/** @type {Set<string>} */
export const writtenElsewhere = new Set(); // ids of the messages that other tabs are writing

/** Finds the answer that is on its way in a chat. @param {Chat} chat */
export const answerIn = (chat) => answers.find((each) => each.chat === chat);

/** Finds a message among the answers on their way. @param {ChatMessage} message */
export const answerOf = (message) => answers.find((each) => each.message === message);

/** Stops an answer, also one that waits. @param {Answer} [answer] */
export const stop = (answer) => answer?.abort.abort();

/** @typedef {Pick<ChatMessage, "content" | "attachments" | "sources" | "calls"> & { role: "system" | ChatMessage["role"] }} Asked */

/** Gives what the model reads: of what was found for questions, only for the last one. @type {(system: string, messages: Asked[]) => Message[]} */
export function promptOf(system, messages) {
  const last = messages.findLast(({ role }) => role === "user");
  const asked = messages.map((message) => (message === last ? message : { ...message, sources: undefined }));
  return [/** @type {Asked} */ ({ role: "system", content: system }), ...asked].flatMap(turnsOf).filter((turn) => turn.content?.length || "tool_calls" in turn);
}

/** Gives the JSON schema that a chat's next answers follow: empty for any object, undefined where they need not be JSON. @param {Chat} chat */
export const schemaOf = ({ json: { isOn, schema } }) => (isOn ? schema : undefined);

/** Gives a system prompt as the model reads it: behind it stands which JSON it is to answer with. @type {(system: string, schema?: string) => string} */
export function systemWith(system, schema) {
  const order = schema ? `Answer with JSON that follows this JSON schema:\n${JSON.stringify(JSON.parse(schema))}` : schema === "" && "Answer with a JSON object.";
  return [system, order].filter(Boolean).join("\n\n");
}

/** Gives what a request says about the form of its answer. @param {string} [schema] @returns {Partial<ChatRequest>} */
export function formatOf(schema) {
  if (schema === undefined) return {};
  return { response_format: schema ? { type: "json_schema", json_schema: { name: "answer", schema: JSON.parse(schema) } } : { type: "json_object" } };
}

/** Splits an answer where it called tools: what it said, the calls, their results, and the same again. @param {Asked} message @returns {Message[]} */
function turnsOf(message) {
  /** @type {Message[]} */
  const turns = [];
  let start = 0;
  for (const calls of Map.groupBy(message.calls ?? [], ({ round }) => round).values()) {
    const made = calls.map(({ id, name, arguments: given }) => ({ id, type: /** @type {const} */ ("function"), function: { name, arguments: given } }));
    turns.push({ role: "assistant", content: message.content.slice(start, calls[0].at).trim(), tool_calls: made });
    for (const { id, result } of calls) turns.push({ role: "tool", tool_call_id: id, content: result || NOTHING });
    start = calls[0].at;
  }
  return [...turns, asMessage({ ...message, content: lastPartOf(message) })];
}

/** @type {(message: Asked) => Message} */
function asMessage(message) {
  const text = wholeOf(message);
  const images = (message.attachments ?? []).filter(isImage).map((image) => ({ type: "image_url", image_url: { url: image.text } }));
  return /** @type {Message} */ ({ role: message.role, content: images.length ? [...images, { type: "text", text }] : text });
}
