// What can be done with a message that is there: copy, regenerate, continue, edit, choose a version, delete. Fetched
// when somebody does.

/** @import { Message } from "./records.js" */

import { answer, store } from "./answers.js";
import { addMessage } from "./chats.js";
import { setEditor, showChat, shown, write } from "./conversation.js";
import { copyText } from "./copying.js";
import { deleteMessage, hide } from "./deleting.js";
import { page, partOf } from "./page.js";
import { chosenAt, slotOf, versionsOf } from "./tree.js";

/**
 * @param {HTMLElement} article
 * @param {Message} message
 */
export function showVersions(article, message) {
  const versions = versionsOf(shown, message);
  const at = versions.indexOf(message);
  partOf(article, "versions").hidden = false;
  partOf(article, "which").textContent = `${at + 1}/${versions.length}`;
  /** @type {HTMLButtonElement} */ (partOf(article, "earlier")).disabled = at === 0;
  /** @type {HTMLButtonElement} */ (partOf(article, "later")).disabled = at === versions.length - 1;
}

/**
 * Another version of an answer, or the first one to a question; a version without a word is not kept.
 * @param {Message} message
 * @param {Parameters<typeof answer>[1]} [options]
 */
function again(message, options) {
  const place = message.role === "user" ? { parent: message.id } : { parent: message.parent, slot: slotOf(message) };
  if (message.role === "assistant" && !message.content) hide(message);
  answer(addMessage(shown, "assistant", "", place), options);
}

/**
 * @param {Message} message
 * @param {number} step
 */
function choose(message, step) {
  const versions = versionsOf(shown, message);
  const next = versions[versions.indexOf(message) + step];
  if (!next) return;
  next.picked = Math.max(Date.now(), ...versions.map((version) => chosenAt(version) + 1));
  showChat();
  store(shown);
  const article = /** @type {HTMLElement} */ (page.messages.querySelector(`[data-id="${CSS.escape(next.id)}"]`));
  showVersions(article, next);
  for (const name of step < 0 ? ["later", "earlier"] : ["earlier", "later"]) partOf(article, name).focus(); // if it can be
}

/**
 * Takes the question into the composer; what is there comes back afterwards.
 * @param {Message} question
 */
function edit(question) {
  page.stopEditing.click(); // of another one
  const aside = page.draft.value;
  setEditor({
    place: { parent: question.parent, slot: slotOf(question) },
    stop() {
      const text = page.draft.value === question.content ? "" : page.draft.value;
      setEditor();
      write(aside || text);
      return true;
    },
  });
  write(question.content);
}

/** @type {Record<string, (message: Message, button: HTMLElement) => void>} */
const actions = {
  copy: ({ content }) => copyText(content),
  copyCode: (message, button) => copyText(button.closest("pre")?.querySelector("code")?.textContent ?? ""),
  again: (message) => again(message),
  drop: (message) => again(message, { context_overflow: "drop_oldest" }),
  goOn: (message) => answer(message),
  edit,
  earlier: (message) => choose(message, -1),
  later: (message) => choose(message, 1),
  delete: deleteMessage,
};

/**
 * @param {HTMLElement} button
 * @param {Message} message
 */
export function act(button, message) {
  actions[button.dataset.act ?? ""](message, button);
}
