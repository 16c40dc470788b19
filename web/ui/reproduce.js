// Python code that writes an answer again: the same prompt, settings and seed.

/** @import { Chat, ChatMessage } from "./chats.js" */

import { unpacked } from "./answers.js";
import { openPanel } from "./panels.js";
import { messagesBefore, requestOf } from "./token_scores.js";

/** Puts the code into the notebook. @type {(chat: Chat, message: ChatMessage) => void} */
export function openInNotebook(chat, message) {
  openPanel("notebook", { code: codeOf(chat, message) });
}

/** Writes a value as Python does. @param {unknown} value @returns {string} */
function python(value) {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([key, each]) => `${python(key)}: ${python(each)}`).join(", ")}}`;
  return JSON.stringify(value).replace(/[\u2028\u2029]/g, (mark) => `\\u${mark.charCodeAt(0).toString(16)}`);
}

/** Gives the code that writes an answer again. @type {(chat: Chat, message: ChatMessage) => string} */
export function codeOf(chat, message) {
  const { content, made, tokens = "" } = message;
  const ids = unpacked(tokens);
  const begun = ids.slice(0, made?.begun ?? 0);
  const messages = messagesBefore(chat, message).map((each) => `    ${python(each)},\n`);
  const settings = Object.entries(requestOf(message)).filter(([name, value]) => /^\w+$/.test(name) && value !== null && value !== undefined).map(([name, value]) => `    ${name}=${python(value)},\n`);
  if (begun.length) {
    messages.push("    {\"role\": \"assistant\", \"content\": \"\"},  # its first tokens are given\n");
    settings.push("    continue_final_message=True,\n", `    continue_token_ids=${python(begun)},\n`);
  }
  const lines = [
    "# Writes the answer again: the same prompt, settings and seed give the same tokens on the same device.",
    ...(made ? [`# It was written by ${made.model}, on the ${made.device}.`.replace(/[\r\n]/g, " ")] : []),
    `messages = [\n${messages.join("")}]`,
    `settings = dict(\n${settings.join("")})`,
    "tokens = []",
    "async for piece in model.chat(messages, **settings):",
    "    print(piece.text, end=\"\")",
    "    tokens += piece.token_ids",
    "print()",
  ];
  if (ids.length > begun.length) {
    lines.push(`expected = ${python(ids.slice(begun.length))}`, "print(\"The same tokens:\", tokens == expected)");
  } else lines.push(`print("The same text:", model.tokenizer.decode(tokens) == ${python(content)})`);
  return `${lines.join("\n")}\n`;
}
