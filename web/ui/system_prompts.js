// System prompts to choose from: those that the user keeps, and some to begin with. Fetched with the settings.

import { notify, page, t } from "./page.js";

const KEY = "inpagePrompts";
const [MAX_PROMPTS, MAX_LENGTH, MAX_NAME] = [100, 20_000, 60];
const { forgetPrompt, keepPrompt, prompts, settings, system } = page;

const examples = () => [
  t`Answer in plain words and short sentences. Say so where you are not sure.`,
  t`Correct the spelling and grammar of what I write. Keep its meaning and tone, then list what you changed.`,
  t`Translate what I write into English. Give the translation alone.`,
  t`You are a careful programmer. Give working code first, then a short explanation.`,
  t`Explain step by step, as to somebody who is new to it. End with a question that shows whether it was understood.`,
];

/** Another tab may have changed it, and anything may stand there. @returns {string[]} */
function keptPrompts() {
  try {
    const { version, texts } = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    const isText = (/** @type {unknown} */ text) => typeof text === "string" && !!text && text.length <= MAX_LENGTH;
    return version === 1 ? [...new Set(texts.filter(isText))].slice(0, MAX_PROMPTS) : [];
  } catch {
    return [];
  }
}

/** @param {string[]} texts */
function store(texts) {
  try {
    localStorage.setItem(KEY, JSON.stringify({ version: 1, texts }));
  } catch {
    notify(t`The prompt was not saved: this browser's storage is full or turned off.`, { stays: true });
  }
  showPrompts();
}

export function showPrompts() {
  const text = system.value.trim();
  const kept = keptPrompts();
  prompts.replaceChildren(new Option(t`Choose a saved prompt…`, ""), ...groupOf(t`Your prompts`, kept), ...groupOf(t`Examples`, examples()));
  prompts.value = text;
  if (prompts.selectedIndex < 0) prompts.value = "";
  keepPrompt.hidden = !text || !!prompts.value || text.length > MAX_LENGTH || kept.length >= MAX_PROMPTS;
  forgetPrompt.hidden = !kept.includes(text);
}

/** @type {(label: string, texts: string[]) => HTMLElement[]} */
function groupOf(label, texts) {
  if (!texts.length) return [];
  const group = Object.assign(document.createElement("optgroup"), { label });
  group.append(...texts.map((text) => Object.assign(new Option(nameOf(text), text), { dir: "auto" })));
  return [group];
}

/** Whole words, if there are several. @param {string} text */
function nameOf(text) {
  const start = text.slice(0, MAX_NAME);
  return start === text ? text : `${/^[^]*\S(?=\s)/.exec(start)?.[0] ?? start}…`;
}

prompts.onchange = () => {
  if (!prompts.value) return;
  system.value = prompts.value;
  system.dispatchEvent(new Event("change")); // the chat takes it
  showPrompts();
};
keepPrompt.onclick = () => {
  store([...keptPrompts(), system.value.trim()]);
  prompts.focus();
};
// The field still has it: to keep it again is one click.
forgetPrompt.onclick = () => {
  store(keptPrompts().filter((text) => text !== system.value.trim()));
  prompts.focus();
};
system.addEventListener("input", showPrompts);
new MutationObserver(() => { if (settings.open) showPrompts(); }).observe(settings, { attributeFilter: ["open"] });
addEventListener("storage", ({ key }) => { if (key === KEY) showPrompts(); });
showPrompts();
