// The composer: the message field with its drafts, sending and stopping, and how much of the context the chat takes.

/** @import { Chat, Place } from "./chats.js" */

import { answerIn, promptOf, stop } from "./answers.js";
import { chats, setShown, shown } from "./chats.js";
import { page } from "./elements.js";
import { emit, on } from "./events.js";
import { keep, recall } from "./settings.js";
import { t } from "./wording.js";

/**
 * A question that is being edited.
 * @typedef {object} Editor
 * @property {Place} place where it belongs
 * @property {() => void} stop brings back what was in the composer before
 */

const TIGHT = 0.85; // of the context

const { composer, draft } = page;

/** @type {Editor | undefined} */
let editor; // of a question that is in the composer

/** Names the draft, which belongs to its chat; one that is not kept yet is the new one. */
const draftName = () => (chats.has(shown.id) ? `inpageDraft ${shown.id}` : "inpageDraft");
const keepDraft = () => { if (!editor) keep(draftName(), draft.value); };

/**
 * Opens another chat in the composer: with its draft, or with `text`, which was typed before anybody knew the chat.
 * @param {Chat} next
 * @param {string} [text]
 */
export function changeChat(next, text) {
  editor?.stop();
  if (text === undefined) keepDraft();
  setShown(next);
  draft.value = text ?? recall(draftName()) ?? "";
  keepDraft();
}

/** Puts a text into the message field. @param {string} text */
export function write(text) {
  draft.value = text;
  keepDraft();
  draft.focus();
}

/** Sets what is being edited. @param {Editor} [next] */
export function setEditor(next) {
  editor = next;
}

function send() {
  const content = draft.value.trim();
  if (!content) return;
  const place = editor?.place;
  draft.value = "";
  if (editor) editor.stop();
  else write("");
  emit("messagesent", { content, place });
}

page.stop.onclick = () => { stop(answerIn(shown)); draft.focus(); };
composer.onsubmit = (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  send();
};
draft.onkeydown = (/** @type {KeyboardEvent} */ event) => {
  // An Enter that ends a word in an input method (IME) does not send.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  composer.requestSubmit();
};
draft.oninput = keepDraft;
on("chatschange", () => document.body.toggleAttribute("data-running", !!answerIn(shown)));
draft.value ||= recall(`inpageDraft ${recall("inpageChat")}`) ?? recall("inpageDraft") ?? ""; // unless the user has typed by now

// ---- the context

async function showContext() {
  const growing = answerIn(shown);
  if (growing?.prompt) showUsed(growing.prompt + growing.tokens);
  if (!inpage.loaded || growing) return; // Stop must find its own call at work, not this one
  const { prompt_tokens: used } = await inpage.countTokens(promptOf(shown)).catch(() => ({ prompt_tokens: 0 }));
  if (!answerIn(shown)) showUsed(used);
}

/** @param {number} used */
function showUsed(used) {
  const max = inpage.loaded?.context ?? 0;
  const high = max * TIGHT;
  page.contextText.textContent = used > high ? t`Context: ${used} of ${max} tokens, nearly full` : t`Context: ${used} of ${max} tokens`;
  Object.assign(page.contextMeter, { max, high, optimum: 0, value: used });
}

for (const change of /** @type {const} */ (["answergrows", "chatschange", "modelchange"])) on(change, showContext);
