// What can be done with a message that is there: copy, regenerate, continue, edit, choose a version, delete.

/** @import { Answer } from "./answers.js" */
/** @import { ChatMessage } from "./chats.js" */

import { store } from "./chat_storage.js";
import { addMessage, pathOf, shown, slotOf, timeAfter, versionsOf, wholeOf, WITHOUT_TEXT } from "./chats.js";
import { files, setEditor, setFiles, write } from "./composer.js";
import { answerHere, showChat } from "./conversation.js";
import { mainTextOf, page, partOf } from "./elements.js";
import { script } from "./lazy.js";
import { arrived, copyText, notify } from "./notices.js";
import { t } from "./wording.js";

const loadFramed = script(() => import("./markdown/framed.js"));
const loadRunner = script(() => import("./notebook/run_block.js"));

/**
 * Asks for another version of an answer, or the first one to a question; a version without a word is not kept.
 * @param {ChatMessage} message
 * @param {Answer["options"]} [options]
 */
function again(message, options) {
  const place = message.role === "user" ? { parent: message.id } : { parent: message.parent, slot: slotOf(message) };
  if (message.role === "assistant" && !message.content) hide(message);
  const answer = addMessage(shown, "assistant", "", place);
  answerHere(answer, options);
  return answer;
}

/**
 * Shows the version before this one, or the one after it.
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
  for (const name of step < 0 ? ["later", "earlier"] : ["earlier", "later"]) partOf(article, name).focus(); // if it can be
}

/**
 * Takes the question and its files into the composer; what is there comes back afterwards.
 * @param {ChatMessage} question
 */
function edit(question) {
  page.stopEditing.click(); // of another one
  page.editing.hidden = false;
  const aside = page.draft.value;
  const filesAside = files;
  const stop = () => {
    const text = page.draft.value === question.content ? "" : page.draft.value;
    setEditor();
    page.editing.hidden = true;
    page.stopEditing.onclick = null;
    setFiles(filesAside);
    write(aside || text);
  };
  setEditor({ place: { parent: question.parent, slot: slotOf(question) }, stop });
  page.stopEditing.onclick = stop;
  setFiles((question.attachments ?? []).map((file) => ({ ...file, kept: undefined }))); // another part of it may be chosen now
  write(question.content);
}

const loadCertainty = script(() => import("./tokens/certainty.js"));
const loadMenu = script(() => import("./menus.js"));

/** What buttons of messages do, by the name that they carry. @type {Record<string, (message: ChatMessage, button: Element) => void>} */
export const actions = {
  copy: (message) => copyText(message.content || wholeOf(message)),
  copyText: (message, button) => copyText(plainTextOf(mainTextOf(/** @type {Element} */ (button.closest("article"))))),
  copyCode: (message, button) => copyText(button.closest("pre")?.querySelector("code")?.textContent ?? ""),
  preview: async (message, button) => (await arrived(loadFramed()))?.togglePreview(button),
  runCode: async (message, button) => (await arrived(loadRunner()))?.runBlock(button),
  again: (message) => again(message),
  drop: (message) => again(message, { context_overflow: "drop_oldest" }),
  goOn: (message) => answerHere(message),
  slide: (message) => answerHere(message, { context_overflow: "slide" }),
  edit,
  certainty: async (message, button) => (await arrived(loadCertainty()))?.toggle(button, message),
  more: async (message, button) => (await arrived(loadMenu()))?.openAnswerMenu(button, message, () => again(message)),
  earlier: (message) => choose(message, -1),
  later: (message) => choose(message, 1),
  delete: deleteMessage,
  stats: (message, button) => {
    const isShown = button.closest("article")?.toggleAttribute("data-stats") ?? false;
    button.ariaPressed = String(isShown);
  },
  toNote: (message, button) => turnTo(button, "footnote"),
  toText: (message, button) => turnTo(button, "ref"),
};

/** Goes from a footnote's number to its text, or back. @type {(button: Element, kind: "footnote" | "ref") => void} */
function turnTo(button, kind) {
  const { label = "" } = /** @type {HTMLElement} */ (button).dataset;
  const target = button.closest("article")?.querySelector(`[data-${kind}="${CSS.escape(label)}"] button`);
  target?.scrollIntoView({ block: "center" });
  /** @type {HTMLElement | null | undefined} */ (target)?.focus();
}

// ---- plain text

/**
 * Gives an answer as it is read: formulas as they were written, without reasoning and buttons.
 * @param {Element} text
 */
export function plainTextOf(text) {
  const copy = /** @type {Element} */ (text.cloneNode(true));
  for (const part of copy.querySelectorAll(".reasoning, .block-run, .preview, .diagram, button")) part.remove();
  for (const formula of copy.querySelectorAll("[data-drawn]")) formula.textContent = formula.querySelector("annotation")?.textContent ?? "";
  const box = Object.assign(document.createElement("div"), { className: "sr" });
  box.append(copy);
  document.body.append(box); // innerText knows lines only of what is laid out
  const { innerText } = /** @type {HTMLElement} */ (copy);
  box.remove();
  return innerText.replace(/\n{3,}/g, "\n\n").trim();
}

// ---- deleting

/**
 * Deletes a message's text; its place stays, so that what follows knows where it belongs. Gives a function that takes
 * it back.
 * @param {ChatMessage} message
 */
function hide(message) {
  const { content, attachments, sources, calls, note, error, tokens, made, settings } = message;
  const change = (/** @type {Partial<ChatMessage>} */ fields) => {
    Object.assign(message, fields, { gone: (message.gone ?? 0) + 1, version: message.version + 1 });
  };
  change({ ...WITHOUT_TEXT, note: "", error: "" });
  return () => change({ content, attachments, sources, calls, note, error, tokens, made, settings });
}

/** All that follows a message, in every branch. @param {ChatMessage} message */
function branchOf(message) {
  const ids = new Set([message.id]);
  for (const each of shown.messages) if (ids.has(each.parent ?? "")) ids.add(each.id); // by age: none is missed
  return shown.messages.filter(({ id, gone = 0 }) => ids.has(id) && gone % 2 === 0);
}

/**
 * One of several versions goes with all that follows it. A question goes with its answers; what follows the one that is
 * shown stays.
 * @param {ChatMessage} message
 */
function goingWith(message) {
  if (versionsOf(shown, message).length > 1) return branchOf(message);
  const path = pathOf(shown);
  const next = path[path.indexOf(message) + 1];
  if (message.role === "assistant" || next?.role !== "assistant") return [message];
  const others = versionsOf(shown, next).filter((version) => version !== next);
  return [message, next, ...others.flatMap(branchOf)];
}

/** @param {ChatMessage} message */
function deleteMessage(message) {
  const from = shown;
  const takeBack = goingWith(message).map(hide);
  const put = () => {
    showChat(from);
    store(from);
  };
  put();
  page.draft.focus();
  notify(t`Deleted.`, {
    undo() {
      for (const back of takeBack) back();
      put();
    },
  });
}
