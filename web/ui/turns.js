// What can be done with a message that is there: copy, regenerate, continue, edit, choose a version, delete; and an
// example that is asked. Fetched when somebody does.

/** @import { Answer, ChatMessage } from "./records.js" */

import { store } from "./chat_store.js";
import { addMessage } from "./chats.js";
import { answerHere, setEditor, showChat, shown, write } from "./conversation.js";
import { copyText } from "./copying.js";
import { deleteMessage, hide } from "./deleting.js";
import { plainTextOf } from "./latest.js";
import { page, partOf } from "./page.js";
import { pathOf, slotOf, timeAfter, versionsOf } from "./tree.js";
import { showVersions } from "./versions.js";

/**
 * Another version of an answer, or the first one to a question; a version without a word is not kept.
 * @param {ChatMessage} message
 * @param {Answer["options"]} [options]
 */
function again(message, options) {
  const place = message.role === "user" ? { parent: message.id } : { parent: message.parent, slot: slotOf(message) };
  if (message.role === "assistant" && !message.content) hide(message);
  answerHere(addMessage(shown, "assistant", "", place), options);
}

/**
 * @param {ChatMessage} message
 * @param {number} step
 */
function choose(message, step) {
  const versions = versionsOf(shown, message);
  const next = versions[versions.indexOf(message) + step];
  if (!next) return;
  next.picked = timeAfter(shown);
  showChat();
  store(shown);
  const article = /** @type {HTMLElement} */ (page.messages.querySelector(`[data-id="${CSS.escape(next.id)}"]`));
  showVersions(article, shown, next);
  for (const name of step < 0 ? ["later", "earlier"] : ["earlier", "later"]) partOf(article, name).focus(); // if it can be
}

/**
 * Takes the question into the composer; what is there comes back afterwards.
 * @param {ChatMessage} question
 */
function edit(question) {
  page.stopEditing.click(); // of another one
  page.editing.hidden = false;
  const aside = page.draft.value;
  const stop = () => {
    const text = page.draft.value === question.content ? "" : page.draft.value;
    setEditor();
    page.editing.hidden = true;
    page.stopEditing.onclick = null;
    write(aside || text);
  };
  setEditor({ place: { parent: question.parent, slot: slotOf(question) }, stop });
  page.stopEditing.onclick = stop;
  write(question.content);
}

/** @param {Element} button */
function ask({ textContent }) {
  write(textContent);
  page.composer.requestSubmit();
}

/** @type {Record<string, (message: ChatMessage, button: Element) => void>} */
const actions = {
  copy: ({ content }) => copyText(content),
  copyText: (message, button) => copyText(plainTextOf(/** @type {Element} */ (button.closest("article")?.querySelector(".text")))),
  copyCode: (message, button) => copyText(button.closest("pre")?.querySelector("code")?.textContent ?? ""),
  again: (message) => again(message),
  drop: (message) => again(message, { context_overflow: "drop_oldest" }),
  goOn: (message) => answerHere(message),
  edit,
  earlier: (message) => choose(message, -1),
  later: (message) => choose(message, 1),
  delete: deleteMessage,
};

/** @param {Element} button perhaps of a message that is no longer shown */
export function act(button) {
  const name = button.getAttribute("data-act") ?? "";
  const id = button.closest("article")?.dataset.id;
  const message = pathOf(shown).find((each) => each.id === id);
  if (name === "ask") ask(button);
  else if (message) actions[name](message, button);
}
