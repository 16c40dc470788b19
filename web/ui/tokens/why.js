// Why this answer? The exact prompt, what came from the cache, the settings and the seed, the model, why it stopped.

/** @import { Chat, ChatMessage } from "../chats.js" */
/** @import { Choice } from "./scores.js" */

import { unpacked } from "../answers.js";
import { shown } from "../chats.js";
import { page, styleSheet } from "../elements.js";
import { emit } from "../events.js";
import { decimal, faultOf, line, t } from "../wording.js";
import { isExact, messagesBefore, requestOf, writtenAs } from "./scores.js";

/** @typedef {Choice & { message?: number, role?: string }} PromptToken */

const AT_ONCE = 500; // tokens between two looks of the browser at the user
const SETTINGS = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty", "max_tokens", "stop", "context_overflow"];
const OFF = /** @type {Record<string, number>} */ ({ top_p: 1, top_k: 0, min_p: 0, repetition_penalty: 1, frequency_penalty: 0, presence_penalty: 0 });

const { why, whyFacts, whyLegend, whyNotebook, whyPrompt, whyPromptFacts } = page;
const loadStyles = styleSheet("tokens.css");

let turn = 0;

/** Shows why an answer is as it is. @param {ChatMessage} message */
export async function open(message) {
  const mine = ++turn;
  await loadStyles().catch(() => {});
  whyFacts.replaceChildren(factsOf(message, ""));
  whyPrompt.replaceChildren();
  whyLegend.replaceChildren();
  whyPromptFacts.textContent = t`Writing the prompt again…`;
  whyNotebook.onclick = () => {
    why.close();
    emit("panelwanted", { name: "notebook", settings: { code: codeOf(shown, message) } });
  };
  if (!why.open) why.showModal();
  const isMine = () => mine === turn && why.open;
  const stop = await stopOf(message);
  if (!isMine()) return;
  whyFacts.replaceChildren(factsOf(message, stop));
  await showPrompt(message, isMine);
}

// ---- facts

/** @type {(message: ChatMessage, stop: string) => HTMLElement} */
function factsOf(message, stop) {
  const { made, settings = {}, tokens } = message;
  const list = document.createElement("dl");
  const add = (/** @type {string} */ name, /** @type {string | false | undefined} */ value) => {
    if (!value) return;
    const [term, fact] = ["dt", "dd"].map((tag) => list.appendChild(document.createElement(tag)));
    term.textContent = name;
    fact.textContent = value;
    fact.dir = "auto";
  };
  add(t`Why it stopped`, stop || "…");
  if (!made) {
    add(t`Not known`, t`This answer was written by an earlier version of this page, which did not keep its settings.`);
    return list;
  }
  const device = made.device === "cpu" ? t`processor, ${made.threads} thread|processor, ${made.threads} threads` : t`graphics card`;
  add(t`Model`, line(made.model, made.quantisation));
  add(t`Computed on`, line(made.device && device, made.kernels && t`kernels: ${made.kernels}`));
  add(t`Settings`, line(...SETTINGS.map((name) => settingOf(name, settings[name]))) || t`Not recorded.`);
  add(t`Seed`, settings.seed === undefined ? "" : String(settings.seed));
  const count = tokens === undefined ? 0 : unpacked(tokens).length;
  const { begun = 0, cached_tokens: cached = 0, prompt_tokens: prompt = 0 } = made;
  add(t`Prompt`, prompt && line(
    t`${prompt} token|${prompt} tokens`, t`${cached} from the cache`, t`${prompt - cached} computed`,
    begun > 0 && t`the last ${begun} of them are the beginning of the answer`,
  ));
  add(t`Answer`, count > begun && line(t`${count - begun} token|${count - begun} tokens`, begun > 0 && t`after the ${begun} that it continued`));
  add(t`Speed`, line(
    made.time_to_first_token_s && t`first token after ${decimal(made.time_to_first_token_s, 2)} s`,
    made.images_s && t`${decimal(made.images_s, 2)} s of that for images`,
    made.prefill_tokens_per_s && t`read ${decimal(made.prefill_tokens_per_s, 0)} tok/s`,
    made.decode_tokens_per_s && t`wrote ${decimal(made.decode_tokens_per_s, 1)} tok/s`,
  ));
  return list;
}

/** @type {(name: string, value: any) => string} */
function settingOf(name, value) {
  if (value === undefined || value === null || value === OFF[name] || value === "error") return "";
  const names = /** @type {Record<string, string>} */ ({
    temperature: t`temperature ${value}`, top_p: t`top p ${value}`, top_k: t`top k ${value}`, min_p: t`min p ${value}`,
    repetition_penalty: t`repetition penalty ${value}`, frequency_penalty: t`frequency penalty ${value}`, presence_penalty: t`presence penalty ${value}`,
    max_tokens: t`at most ${value} tokens`, stop: t`stop strings: ${JSON.stringify(value)}`, context_overflow: value === "slide" ? t`forgets the oldest text` : t`drops the oldest messages`,
  });
  return names[name];
}

/** Says why an answer stopped. @param {ChatMessage} message */
async function stopOf(message) {
  const { made, settings, tokens = "" } = message;
  switch (made?.finish) {
    case "abort": return t`You stopped it.`;
    case "length": return settings?.max_tokens ? t`It reached the limit of ${Number(settings.max_tokens)} tokens.` : t`The context is full.`;
    case "stop": {
      const last = isExact(message) ? await inpage.glass("message_tokens", { ids: unpacked(tokens).slice(-1) }).catch(() => undefined) : undefined;
      const [token] = last?.tokens ?? [];
      if (token?.end) return t`The model ended it with the token ${token.text}.`;
      return token && settings?.stop?.length ? t`It reached a stop string.` : t`The model ended it.`;
    }
    default: return message.error ? t`An error ended it.` : t`Not recorded.`;
  }
}

// ---- the prompt

/** @type {(message: ChatMessage, isMine: () => boolean) => Promise<void>} */
async function showPrompt(message, isMine) {
  const { made } = message;
  const { loaded } = inpage;
  if (!loaded || (made && made.model !== loaded.name)) {
    whyPromptFacts.textContent = made ? t`Load ${made.model} to see its prompt.` : t`Load a model to see the prompt.`;
    return;
  }
  try {
    const fields = { messages: messagesBefore(shown, message), request: requestOf(message) };
    const { tokens, dropped_messages: dropped } = await inpage.glass("message_prompt", fields);
    if (!isMine()) return;
    const expected = made?.prompt_tokens === undefined ? tokens.length : made.prompt_tokens - made.begun;
    const cached = Math.min(made?.cached_tokens ?? 0, tokens.length);
    whyPromptFacts.textContent = line(
      t`${tokens.length} token|${tokens.length} tokens`,
      cached > 0 && t`the first ${cached} came from the cache`,
      dropped > 0 && t`${dropped} oldest message left out|${dropped} oldest messages left out`,
      expected !== tokens.length && t`not exactly what it was: the messages before the answer have changed since`,
    );
    showLegend(cached > 0);
    fill(tokens, cached, isMine);
  } catch (error) {
    if (isMine()) whyPromptFacts.textContent = t`The prompt could not be written again: ${faultOf(error)}.`;
  }
}

/** @param {boolean} isCached */
function showLegend(isCached) {
  const names = [["special", t`Control token`], ["template", t`Template`], ["system", t`System prompt`], ["user", t`You`], ["assistant", t`Answer`]];
  whyLegend.replaceChildren(...names.map(([part, name]) => legendItem(name, { part })), ...(isCached ? [legendItem(t`From the cache`, { part: "template", cached: "" })] : []));
}

/** @type {(name: string, data: Record<string, string>) => HTMLElement} */
function legendItem(name, data) {
  const item = document.createElement("li");
  const sample = Object.assign(document.createElement("span"), { className: "tok sample", ariaHidden: "true" });
  Object.assign(sample.dataset, data);
  item.append(sample, name);
  return item;
}

/** @type {(tokens: PromptToken[], cached: number, isMine: () => boolean) => void} */
function fill(tokens, cached, isMine) {
  let at = 0;
  const slice = () => {
    if (!isMine()) return;
    const pile = document.createDocumentFragment();
    for (const end = Math.min(at + AT_ONCE, tokens.length); at < end; at++) {
      const { id, text, special, role } = tokens[at];
      const span = Object.assign(document.createElement("span"), { className: special ? "tok chip" : "tok", textContent: writtenAs({ text }), title: String(id) });
      span.dataset.part = special ? "special" : role ?? "template";
      if (at < cached) span.dataset.cached = "";
      if (text.includes("\n")) span.dataset.line = "↵";
      pile.append(span);
    }
    whyPrompt.append(pile);
    if (at < tokens.length) setTimeout(slice);
  };
  slice();
}

// ---- Python code that writes an answer again: the same prompt, settings and seed

/** Writes a value as Python does. @param {unknown} value @returns {string} */
function python(value) {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([key, each]) => `${python(key)}: ${python(each)}`).join(", ")}}`;
  return JSON.stringify(value).replace(/[\u2028\u2029]/g, (mark) => `\\u${mark.charCodeAt(0).toString(16)}`);
}

/** Gives the code that writes an answer again. @type {(chat: Chat, message: ChatMessage) => string} */
export function codeOf(chat, message) {
  const { content, made, tokens = "" } = message;
  const ids = unpacked(tokens);
  const begun = ids.slice(0, made?.begun ?? 0);
  const messages = messagesBefore(chat, message).map((each) => `    ${python(each)},\n`);
  const settings = Object.entries(requestOf(message)).filter(([name, value]) => /^\w+$/.test(name) && value !== null && value !== undefined).map(([name, value]) => `    ${name}=${python(value)},\n`);
  if (begun.length) {
    messages.push("    {\"role\": \"assistant\", \"content\": \"\"},  # its first tokens are given\n");
    settings.push("    continue_final_message=True,\n", `    continue_token_ids=${python(begun)},\n`);
  }
  const lines = [
    "# Writes the answer again: the same prompt, settings and seed give the same tokens on the same device.",
    ...(made ? [`# It was written by ${made.model}, on the ${made.device}.`.replace(/[\r\n]/g, " ")] : []),
    `messages = [\n${messages.join("")}]`,
    `settings = dict(\n${settings.join("")})`,
    "tokens = []",
    "async for piece in model.chat(messages, **settings):",
    "    print(piece.text, end=\"\")",
    "    tokens += piece.token_ids",
    "print()",
  ];
  if (ids.length > begun.length) {
    lines.push(`expected = ${python(ids.slice(begun.length))}`, "print(\"The same tokens:\", tokens == expected)");
  } else lines.push(`print("The same text:", model.tokenizer.decode(tokens) == ${python(content)})`);
  return `${lines.join("\n")}\n`;
}
