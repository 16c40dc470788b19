// Calls of tools as they are seen: above what an answer says in the end, each folded, with what it was given and what came of it.
// One that waits for the user asks here.

/** @import { ChatMessage, ToolCall } from "../chats.js" */

import { answerOf, writtenElsewhere } from "../answers.js";
import { copyOf, mainTextOf, page, partOf, styleSheet } from "../elements.js";
import { emit } from "../events.js";
import { markdownIn } from "../markdown.js";
import { t } from "../wording.js";

/** @typedef {"once" | "always" | "no"} Decision */

const loadStyles = styleSheet("tools.css");

/** The calls that wait for the user, with what hears the decision. @type {WeakMap<ToolCall, (decision: Decision) => void>} */
export const waiting = new WeakMap();

/** Shows the calls of an answer, with what it said before them; those that are shown already change where they have to. @type {(article: HTMLElement, message: ChatMessage) => Promise<void>} */
export async function show(article, message) {
  await loadStyles().catch(() => {}); // plain, they can be read
  const list = listIn(article);
  for (const [index, { said, call }] of stepsOf(message).entries()) {
    let block = /** @type {HTMLElement | undefined} */ (list.querySelectorAll(".tool-call")[index]);
    if (!block) {
      block = copyOf(page.toolCall);
      list.append(...said ? [textOf(said)] : [], block);
    }
    showCall(block, call, stateOf(message, call));
  }
}

/** Lists the calls of an answer, with what it said before each. @param {ChatMessage} message */
export const stepsOf = ({ calls = [], content }) => calls.map((call, index) => ({ call, said: content.slice(calls[index - 1]?.at, call.at).trim() }));

/** @param {HTMLElement} article */
function listIn(article) {
  const known = /** @type {HTMLElement | null} */ (article.querySelector(":scope > .calls"));
  if (known) return known;
  const list = Object.assign(document.createElement("div"), { className: "calls" });
  mainTextOf(article).before(list);
  return list;
}

/** @param {string} said */
function textOf(said) {
  const element = Object.assign(document.createElement("div"), { className: "text" });
  markdownIn(element).finish(said);
  return element;
}

/** Gives a call's state as it is now: a page that was closed ended what ran in it. @type {(message: ChatMessage, call: ToolCall) => ToolCall["state"]} */
function stateOf(message, { state }) {
  const isOver = !answerOf(message) && !writtenElsewhere.has(message.id);
  return isOver && (state === "asked" || state === "running") ? "stopped" : state;
}

/** @type {(block: HTMLElement, call: ToolCall, state: ToolCall["state"]) => void} */
function showCall(block, call, state) {
  const key = `${state} ${waiting.has(call)} ${document.documentElement.lang}`;
  if (block.dataset.key === key) return;
  Object.assign(block.dataset, { key, state });
  partOf(block, "words").textContent = wordsOf({ ...call, state });
  partOf(block, "given").textContent = givenOf(call);
  partOf(block, "result").textContent = call.result;
  partOf(block, "came").hidden = !call.result;
  showQuestion(block, call);
  emit("textdrawn");
}

/** Says in a few words how a call went. @param {Pick<ToolCall, "title" | "state">} call */
export const wordsOf = ({ title, state }) => ({
  asked: t`The model wants to use ${title}`, running: t`Running ${title}…`, done: t`Used ${title}`,
  failed: t`${title} failed`, refused: t`${title} was not run`, stopped: t`${title} was stopped`,
})[state];

/** Writes what a tool was given: a text alone as it is, say code; several fields by their names. @param {ToolCall} call */
export function givenOf({ arguments: given }) {
  try {
    const fields = Object.entries(JSON.parse(given));
    const written = (/** @type {unknown} */ value) => (typeof value === "string" ? value : JSON.stringify(value, null, 1));
    return fields.length === 1 ? written(fields[0][1]) : fields.map(([name, value]) => `${name}: ${written(value)}`).join("\n");
  } catch {
    return given;
  }
}

/** Asks whether a call may run, as long as it waits for that. @type {(block: HTMLElement, call: ToolCall) => void} */
function showQuestion(block, call) {
  const decide = waiting.get(call);
  const question = partOf(block, "permission");
  question.hidden = !decide;
  const details = /** @type {HTMLDetailsElement} */ (block.querySelector("details"));
  details.open = !!decide;
  if (!decide) return;
  const words = partOf(question, "asks");
  words.textContent = t`Let the model use ${call.title}?`;
  const buttons = /** @type {NodeListOf<HTMLButtonElement>} */ (question.querySelectorAll("[data-decision]"));
  for (const button of buttons) {
    button.onclick = () => {
      page.draft.focus();
      decide(/** @type {Decision} */ (button.dataset.decision));
    };
  }
  page.announcer.textContent = words.textContent;
}
