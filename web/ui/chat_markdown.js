// A chat as Markdown, and the name of its file.

/** @import { Chat } from "./records.js" */

import { titleOf } from "./chat_titles.js";
import { t } from "./page.js";
import { splitReasoning } from "./reasoning.js";

/** @param {Chat} chat */
export function chatAsMarkdown(chat) {
  const parts = [`# ${titleOf(chat)}`];
  if (chat.system) parts.push(`> ${chat.system.replace(/\n/g, "\n> ")}`);
  for (const { role, content } of chat.messages) parts.push(role === "user" ? `## ${t`You`}` : `## ${t`Answer`}`, withoutReasoning(content));
  return `${parts.join("\n\n")}\n`;
}

/** @param {string} content */
const withoutReasoning = (content) => (splitReasoning(content)?.answer ?? content).trim();

/**
 * One that every system takes.
 * @param {Chat} chat
 * @param {string} ending
 */
export function fileName(chat, ending) {
  const name = titleOf(chat).normalize("NFC").replace(/[^\p{L}\p{N}\p{M}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60);
  return `${name || "chat"}.${ending}`;
}
