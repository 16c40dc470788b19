// Reasoning that models write before they answer: folded, with the time it took.

import { copyOf, page, partOf } from "../elements.js";
import { t } from "../wording.js";

/**
 * A text in the page. Where it is JSON, that is written as a block of code.
 * @typedef {Record<"grow" | "finish", (text: string, isJson?: boolean) => void>} View
 */

// How it begins, and how it ends.
const MARKERS = [
  [/^\s*<(?:think|thinking|thought|reasoning|seed:think)>/i, /<\/(?:think|thinking|thought|reasoning|seed:think)>/i],
  [/^\s*\[THINK\]/, /\[\/THINK\]/],
  [/^\s*<\|channel>thought\b/, /<channel\|>/], // Gemma 4
  [/^\s*(?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>/, /(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>/], // gpt-oss
  [/^\s*<\|START_THINKING\|>/, /<\|END_THINKING\|>/],
  [/^\s*<\|begin_of_thought\|>/, /<\|end_of_thought\|>/],
];
const ONLY_END = /^[ \t]*(?:<\/think>|\[\/THINK\])/m; // where the prompt itself began it

/**
 * Splits a text into reasoning and answer; undefined where there is no reasoning.
 * @param {string} text
 */
export function splitReasoning(text) {
  for (const [begins, ends] of MARKERS) {
    const begun = begins.exec(text);
    if (!begun) continue;
    const rest = text.slice(begun[0].length);
    const end = ends.exec(rest);
    return end ? cut(rest, end) : { thoughts: rest, answer: "", isOver: false };
  }
  const end = ONLY_END.exec(text);
  const isCode = end && (text.slice(0, end.index).match(/^ *(```|~~~)/gm)?.length ?? 0) % 2;
  return end && !isCode ? cut(text, end) : undefined;
}

/**
 * @param {string} text
 * @param {RegExpExecArray} end
 */
const cut = (text, { 0: mark, index }) => ({ thoughts: text.slice(0, index), answer: text.slice(index + mark.length), isOver: true });

/** @type {WeakSet<View>} */
const folding = new WeakSet();

/**
 * Gives a view that folds the reasoning of a text, or the one there is where there is none.
 * @param {View} view
 * @param {HTMLElement} element
 * @param {string} text
 * @param {(element: HTMLElement) => View} viewOf
 */
export function folded(view, element, text, viewOf) {
  if (folding.has(view) || !splitReasoning(text)) return view;
  const other = foldingIn(element, viewOf);
  folding.add(other);
  return other;
}

/**
 * Shows thoughts folded above the answer. How many seconds they took stays in the element's data, where it is known.
 * @param {HTMLElement} element
 * @param {(element: HTMLElement) => View} viewOf
 * @returns {View}
 */
function foldingIn(element, viewOf) {
  const fold = copyOf(page.reasoning);
  const [summary, box] = [partOf(fold, "words"), partOf(fold, "text")];
  const rest = document.createElement("div");
  rest.className = "text";
  element.replaceChildren(fold, rest);
  const [thinking, answering] = [viewOf(box), viewOf(rest)];
  /** @type {number | undefined} */
  let began; // unknown where they were over already
  let isWhole = false; // all thoughts are shown

  /** @type {(how: "grow" | "finish", text: string) => void} */
  function show(how, text) {
    const { thoughts, answer, isOver } = splitReasoning(text) ?? { thoughts: "", answer: text, isOver: true };
    const isThinking = !isOver && how === "grow";
    if (isThinking) began ??= performance.now();
    else if (began) element.dataset.thought ??= String(Math.round((performance.now() - began) / 1000));
    fold.hidden = !thoughts.trim();
    fold.toggleAttribute("data-thinking", isThinking);
    summary.textContent = isThinking ? t`Thinking…` : titleOf(element.dataset.thought);
    if (!isWhole) thinking[isThinking ? "grow" : "finish"](thoughts.trim());
    isWhole = !isThinking;
    answering[how](answer.trimStart());
  }
  return { grow: (text) => show("grow", text), finish: (text) => show("finish", text) };
}

/** @param {string} [thought] */
function titleOf(thought) {
  const seconds = Number(thought);
  if (!thought || isNaN(seconds)) return t`Thoughts`;
  const minutes = Math.floor(seconds / 60);
  return minutes ? t`Thought for ${minutes} min ${seconds % 60} s` : t`Thought for ${seconds} s`;
}
