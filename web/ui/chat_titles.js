// What a chat is called.

/** @import { Chat } from "./records.js" */

import { t } from "./page.js";
import { isGone } from "./tree.js";

/** Its own, or the first words. @param {Chat} chat */
export const titleOf = ({ title, messages }) => title
  || messages.find((message) => !isGone(message) && message.content)?.content.trim().replace(/\s+/g, " ").replace(/^(?=.{61})(.{1,60}) .*/, "$1…")
  || t`New chat`;
