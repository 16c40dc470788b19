// What a chat is called.

/** @import { Chat } from "./records.js" */

import { t } from "./page.js";
import { isGone } from "./tree.js";

const MAX_READ = 500; // characters: a message may be long, and all chats are listed often

/** Its own, or the first words. @param {Chat} chat */
export const titleOf = ({ title, messages }) => title
  || messages.find((message) => !isGone(message) && message.content)?.content.trimStart().slice(0, MAX_READ).trimEnd().replace(/\s+/g, " ").replace(/^(?=.{61})(.{1,60}) .*/, "$1…")
  || t`New chat`;
