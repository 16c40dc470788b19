// The composer: the message field with its drafts and the files that go with them, sending and stopping, and how much of
// the context the chat takes.

/** @import { Answer } from "./answers.js" */
/** @import { Attachment, Chat, ChatMessage, Place } from "./chats.js" */

import { answerIn, answers, promptOf, schemaOf, stop, systemWith } from "./answers.js";
import { chats, pathOf, setShown, shown, slotOf } from "./chats.js";
import { page } from "./elements.js";
import { emit, on } from "./events.js";
import { script } from "./lazy.js";
import { keep, recall } from "./settings/settings.js";
import { t } from "./wording.js";

/**
 * A question that is being edited.
 * @typedef {object} Editor
 * @property {Place} place where it belongs
 * @property {() => void} stop brings back what was in the composer before
 */

/** @typedef {Attachment & { reading?: AbortController }} DraftFile which ends its reading, while its text is not here yet */

const TIGHT = 0.85; // of the context
const PAUSE_MILLISECONDS = 400; // without a key, until what is typed is counted
const AROUND = 64; // tokens that a template puts around a message, or fewer
const MOST_BYTES = 3; // of a character's UTF-8, of which each is a token at most

const loadTools = script(() => import("./tools/tools.js"));

const { composer, draft } = page;

/** @type {Editor | undefined} */
let editor; // of a question that is in the composer
/** @type {DraftFile[]} */
export let files = []; // that go with the draft
/** @type {WeakMap<Chat, DraftFile[]>} */
const filesOf = new WeakMap(); // of chats that are not open: as long as the page is

/** Names the draft, which belongs to its chat; one that is not kept yet is the new one. */
const draftName = () => (chats.has(shown.id) || shown.temporary ? `inpageDraft ${shown.id}` : "inpageDraft");
const keepDraft = () => { if (!editor && !shown.temporary) keep(draftName(), draft.value); };

/**
 * Opens another chat in the composer: with its draft, or with `text`, which was typed before anybody knew the chat.
 * @param {Chat} next
 * @param {string} [text]
 */
export function changeChat(next, text) {
  editor?.stop();
  if (text === undefined) keepDraft();
  filesOf.set(shown, files);
  setShown(next);
  if (text === undefined) setFiles(filesOf.get(next) ?? []);
  draft.value = text ?? recall(draftName()) ?? "";
  keepDraft();
}

/** Puts a text into the message field. @param {string} text */
export function write(text) {
  draft.value = text;
  keepDraft();
  draft.focus();
}

/** Has other files go with the draft. @param {DraftFile[]} next */
export function setFiles(next) {
  const isChange = files.length || next.length;
  files = next;
  if (isChange) emit("fileschange");
}

/** Sets what is being edited. @param {Editor} [next] */
export function setEditor(next) {
  editor = next;
}

/** Sends the message in the composer. @param {Answer["options"]} [options] */
export function send(options) {
  const content = draft.value.trim();
  const attachments = files;
  if (!content && !files.length) return;
  const place = editor?.place;
  draft.value = "";
  if (editor) editor.stop();
  else {
    write("");
    setFiles([]);
  }
  emit("messagesent", { content, attachments, place, options });
}

page.stop.onclick = () => { stop(answerIn(shown)); draft.focus(); };
draft.onkeydown = (/** @type {KeyboardEvent} */ event) => {
  // An Enter that ends a word in an input method (IME) does not send.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  composer.requestSubmit();
};
draft.oninput = () => {
  keepDraft();
  clearTimeout(typing);
  if (isNearLimit() && !answers.length) typing = setTimeout(showContext, PAUSE_MILLISECONDS);
};
on("chatschange", () => document.body.toggleAttribute("data-running", !!answerIn(shown)));
draft.value ||= recall(`inpageDraft ${recall("inpageChat")}`) ?? recall("inpageDraft") ?? ""; // unless the user has typed by now

// ---- the context

let typing = 0; // the timer
let used = 0; // tokens, as they were counted last

/** Whether the message might not fit: else it is sent without a look. */
export const isNearLimit = () => files.length > 0 || (!!inpage.loaded && used + draft.value.length * MOST_BYTES + AROUND > inpage.loaded.context * TIGHT);

/**
 * Counts what the model would read if the message was sent now, or as much as is surely too much.
 * @param {DraftFile[]} [given] the files that go with it
 * @param {boolean} [isAlone] without the messages before it
 */
export async function countDraft(given = files, isAlone = false) {
  const path = pathOf(shown);
  const end = isAlone ? 0 : editor ? path.findIndex((message) => slotOf(message) === editor?.place.slot) : path.length;
  const known = given.reduce((sum, { tokens }) => sum + tokens, 0);
  const isFar = known > (inpage.loaded?.context ?? 0); // long files are not read again and again
  const attachments = isFar ? [] : given.filter(({ reading }) => !reading);
  const question = /** @type {ChatMessage} */ ({ role: "user", content: draft.value.trim(), attachments });
  const asked = [...path.slice(0, end), question];
  const messages = promptOf(systemWith(shown.system, schemaOf(shown)), asked);
  const offersTools = shown.tools.isOn && schemaOf(shown) === undefined && inpage.loaded?.calls_tools;
  const { prompt_tokens: rest } = await (async () => {
    const tools = offersTools ? await (await loadTools()).offeredTools(asked) : undefined;
    return inpage.countTokens(messages, { tools });
  })().catch(() => ({ prompt_tokens: 0 }));
  return rest + (isFar ? known : 0);
}

async function showContext() {
  const growing = answerIn(shown);
  if (growing?.prompt) showUsed(growing.prompt + growing.tokens);
  if (!inpage.loaded || growing) return; // Stop must find its own call at work, not this one
  const counted = await countDraft();
  if (!answerIn(shown)) showUsed(counted);
  emit("draftcounted");
}

/** @param {number} counted */
function showUsed(counted) {
  used = counted;
  const max = inpage.loaded?.context ?? 0;
  const high = max * TIGHT;
  page.contextText.textContent = used > max ? t`Context: ${used} of ${max} tokens, over the limit`
    : used > high ? t`Context: ${used} of ${max} tokens, nearly full` : t`Context: ${used} of ${max} tokens`;
  Object.assign(page.contextMeter, { max, high, optimum: 0, value: used });
}

for (const change of /** @type {const} */ (["answergrows", "chatschange", "fileschange", "modelchange"])) on(change, showContext);
